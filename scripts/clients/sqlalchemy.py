"""SQLAlchemy's suite for dialects, which its Debian package has: types, reflection, limits, DDL."""

import os
import re
import tempfile
import urllib.parse

from clients.python import require
from clients.side import output_of

LIMIT_S = 300
FILES = {
    "conftest.py": """\
import pytest
pytest.register_assert_rewrite("sqlalchemy.testing.assertions")
from sqlalchemy.testing.plugin.pytestplugin import *
""",
    "test_suite.py": "from sqlalchemy.testing.suite import *\n",
    "setup.cfg": """\
[tool:pytest]
addopts = -v --tb no --maxfail=100000 -p no:warnings -p no:cacheprovider
[sqla_testing]
requirement_cls = sqlalchemy.testing.requirements:SuiteRequirements
profile_file = profiles.txt
""",
}
OUTCOME = re.compile(r"^test_suite\.py::(\w+?)_postgresql\S*?(::\S+.*?) "
                     r"(PASSED|FAILED|ERROR|SKIPPED)", re.M)


class SqlAlchemy:
    name = "sqlalchemy"
    settings = {}

    def prepare(self, whole):
        del whole
        self.python = require("sqlalchemy", "psycopg2", "pytest")

    def run(self, side, whole):
        del whole
        side.psql("CREATE SCHEMA test_schema; CREATE SCHEMA test_schema_2")
        where = urllib.parse.urlencode({"host": side.box.socket_dir, "port": side.box.port})
        uri = f"postgresql+psycopg2://postgres@/{side.database}?{where}"
        with tempfile.TemporaryDirectory() as folder:
            for name, text in FILES.items():
                with open(os.path.join(folder, name), "w", encoding="ascii") as file:
                    file.write(text)
            printed = output_of([self.python, "-m", "pytest", "test_suite.py", "--dburi", uri],
                                side.environment(), folder, LIMIT_S)
        return {suite + test: outcome for suite, test, outcome in OUTCOME.findall(printed)}

    def notes(self):
        return []
