"""Django's own suite, from the source of its Debian package: the applications that use a database."""

import os
import re
import tempfile

import debian_source
from clients.python import require
from clients.side import Unavailable, output_of

LIMIT_S = 2400
SETTINGS = """\
import os
side = os.environ["ACCESS_METHOD"]
def database(name):
    return {"ENGINE": "django.db.backends.postgresql", "NAME": "postgres", "USER": "postgres",
            "HOST": os.environ["PGHOST"], "PORT": os.environ["PGPORT"],
            "OPTIONS": {"options": os.environ["SERVER_SETTINGS"]},
            "TEST": {"NAME": f"django_{name}_{side}"}}
DATABASES = {name: database(name) for name in ("default", "other")}
SECRET_KEY = "of a test"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
USE_TZ = False
"""
SHARE = ["basic", "delete_regress", "get_or_create", "select_for_update", "transactions"]
# Those that have nothing to do with tables, or need what is not installed.
NOT_RUN = {
    "__pycache__", "absolute_url_overrides", "admin_autodiscover", "admin_checks", "admin_docs",
    "admin_scripts", "admin_utils", "apps", "asgi", "bash_completion", "builtin_server", "cache",
    "check_framework", "conditional_processing", "context_processors", "csrf_tests", "decorators",
    "deprecation", "dispatch", "file_storage", "file_uploads", "files", "flatpages_tests",
    "forms_tests", "gis_tests", "handlers", "httpwrappers", "humanize_tests", "i18n",
    "import_error_package", "logging_tests", "mail", "messages_tests", "middleware",
    "project_template", "requests", "requirements", "resolve_url", "responses", "servers",
    "settings_tests", "shell", "signing", "sitemaps_tests", "staticfiles_tests",
    "syndication_tests", "template_backends", "template_tests", "templates", "test_client",
    "test_client_regress", "test_exceptions", "test_runner", "test_runner_apps", "urlpatterns",
    "urlpatterns_reverse", "user_commands", "utils_tests", "version", "view_tests", "wsgi",
}


class Django:
    name = "django"
    settings = {"rdmacc.lock_writes": "at_write"}

    def prepare(self, whole):
        self.python = require("django", "psycopg2")
        try:
            self.tests = os.path.join(debian_source.fetch("python-django"), "tests")
        except debian_source.Unavailable as reason:
            raise Unavailable(str(reason)) from None
        self.labels = sorted(
            name for name in os.listdir(self.tests)
            if os.path.isdir(os.path.join(self.tests, name)) and name not in NOT_RUN)
        if not whole:
            self.labels = SHARE

    def run(self, side, whole):
        del whole
        # A test may wait for what its own thread holds on another connection.
        options = {**side.settings, "statement_timeout": "20s"}
        settings = " ".join(f"-c {name}={value}" for name, value in options.items())
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "rdmacc_settings.py"), "w", encoding="ascii") as file:
                file.write(SETTINGS)
            printed = output_of(
                [self.python, "runtests.py", "--settings=rdmacc_settings", "--parallel=1",
                 "--noinput", "-v", "2", *self.labels],
                side.environment(ACCESS_METHOD=side.access_method, SERVER_SETTINGS=settings,
                                 PYTHONPATH=folder, PYTHONDONTWRITEBYTECODE="1"),
                self.tests, LIMIT_S)
        return outcomes_of(printed)

    def notes(self):
        return []


def outcomes_of(printed):
    """{class.test: outcome}. A test with a description has it on a line of its own."""
    outcomes, name = {}, None
    for line in printed.splitlines():
        started = re.match(r"^(\w+) \(([\w.]+)\)", line)
        if started:
            test, where = started.groups()
            name = where if where.endswith("." + test) else f"{where}.{test}"
        ended = re.search(r" \.\.\. (ok|FAIL|ERROR|skipped|expected failure)", line)
        if ended and name is not None:
            outcomes[name] = ended.group(1)
            name = None
    # What a test with sub-tests or interleaved output has ended with is told at the end.
    for outcome, test, where in re.findall(r"^(ERROR|FAIL): (\w+) \(([\w.]+)\)", printed, re.M):
        outcomes[where if where.endswith("." + test) else f"{where}.{test}"] = outcome
    return outcomes
