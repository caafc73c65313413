"""Runs PostgreSQL's own regression schedule on a sandbox and keeps what it said: each file's output
and what the server's log holds against it. pg_suite.py compares two such runs."""

import collections
import os
import re
import shutil
import subprocess

from sandbox import PG_CONFIG, ROOT, Sandbox, pgxs_program

DATABASE = "regression"
LOG_PREFIX = "@@%a@@%e@@ "
# The application's name is "pg_regress/FILE" in sessions of pg_regress.
LOG_LINE = re.compile(r"^@@(?:pg_regress/)?([^@]*)@@(\w{5})@@ (\w+):  (.*)$")
INTERNAL_ERROR = "XX"  # the class of SQLSTATE
SEVERITIES = ("ERROR", "FATAL", "PANIC")
CRASH = re.compile(r"was terminated by signal|PANIC:|TRAP: |was terminated by exception"
                   r"|ended with exit code|server closed the connection unexpectedly")
STATEMENT_TIMEOUT = "canceling statement due to statement timeout"
LIBRARIES = ("refint.so", "autoinc.so")  # what the tests load beside regress.so

PLACE = os.path.join(ROOT, "build/pg-suite")
OURS = os.path.join(ROOT, "tests/pg_suite")
# Files of ours between PostgreSQL's: they put right what a refused statement would do to others.
FOLLOWED_BY = {"publication": ["drop_publications"]}


class Run(collections.namedtuple("Run", "folder outputs internal crashes said")):
    """What one run left: {file: output}, internal errors, lines of crashes, pg_regress's words."""

    def path(self, name):
        return os.path.join(self.folder, "output/results", name + ".out")



def tests_of(inputs):
    """The schedule's files in their order, and ours between them."""
    with open(os.path.join(inputs, "parallel_schedule")) as file:
        lines = [line.split(":", 1)[1] for line in file if line.startswith("test:")]
    names = [name for line in lines for name in line.split()]
    return [one for name in names for one in (name, *FOLLOWED_BY.get(name, ()))]


def pg_config(what):
    return subprocess.run([PG_CONFIG, what], check=True, text=True,
                          stdout=subprocess.PIPE).stdout.strip()


def prepare_inputs(source):
    """The tests where the server's user may read them, with the libraries that they load."""
    tests = os.path.join(source, "src/test/regress")
    inputs = os.path.join(PLACE, "inputs")
    shutil.rmtree(inputs, ignore_errors=True)
    made = inputs + ".part"
    shutil.rmtree(made, ignore_errors=True)
    os.makedirs(made)
    for name in ("sql", "expected", "data"):
        shutil.copytree(os.path.join(tests, name), os.path.join(made, name))
    shutil.copy(os.path.join(tests, "parallel_schedule"), made)
    for name in sum(FOLLOWED_BY.values(), []):
        shutil.copy(os.path.join(OURS, name + ".sql"), os.path.join(made, "sql"))
        with open(os.path.join(made, "expected", name + ".out"), "w"):
            pass
    libraries = os.path.join(made, "lib")
    os.makedirs(libraries)
    subprocess.run(["gcc", "-O2", "-fPIC", "-shared", "-I", pg_config("--includedir-server"),
                    "-I", tests, "-o", os.path.join(libraries, "regress.so"),
                    os.path.join(tests, "regress.c")], check=True)
    for name in LIBRARIES:
        shutil.copy(os.path.join(pg_config("--pkglibdir"), name), libraries)
    subprocess.run(["chmod", "-R", "a+rX", made], check=True)
    os.rename(made, inputs)
    return inputs


def make_database(box, access_method, protocol):
    box.psql(f"CREATE DATABASE {DATABASE} TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
    box.psql("CREATE EXTENSION rdmacc", dbname=DATABASE)
    settings = {"lc_messages": "C", "lc_monetary": "C", "lc_numeric": "C", "lc_time": "C",
                "bytea_output": "hex", "timezone_abbreviations": "Default",
                "rdmacc.protocol": protocol, "default_table_access_method": access_method}
    box.psql("".join(f"ALTER DATABASE {DATABASE} SET {name} = '{value}';"
                     for name, value in settings.items()))


def settings_of(protocol, statement_seconds_max):
    return {"rdmacc.nodes": 2, "rdmacc.node_memory": "1GB", "autovacuum": "off",
            "log_line_prefix": LOG_PREFIX,
            "rdmacc.durability": "memory" if protocol == "calvin" else "disk",
            "statement_timeout": f"{statement_seconds_max}s", "max_connections": 60,
            # As pg_regress sets it for a server of its own.
            "max_prepared_transactions": 2, "log_autovacuum_min_duration": -1,
            "work_mem": "4MB"}


def read_log(text):
    """Internal errors by file and message, and lines that tell of a crash."""
    internal = collections.Counter()
    crashes = []
    for line in text.splitlines():
        match = LOG_LINE.match(line)
        if match and match.group(2).startswith(INTERNAL_ERROR) and match.group(3) in SEVERITIES:
            internal[match.group(1), match.group(4)] += 1
        if CRASH.search(line):
            crashes.append(line)
    return internal, crashes


def run(inputs, access_method, protocol, tests, statement_seconds_max, seconds_max):
    """Runs `tests` one after the other on a server of their own."""
    place = os.path.join(PLACE, f"{access_method}-{protocol}")
    box = Sandbox(os.path.join(place, "server"),
                  settings=settings_of(protocol, statement_seconds_max))
    box.remove()
    shutil.rmtree(place, ignore_errors=True)
    results = os.path.join(place, "output")
    try:
        box.create()
        box.make_private(results)
        box.start()
        make_database(box, access_method, protocol)
        command = [pgxs_program("test/regress/pg_regress"), "--use-existing",
                   f"--dbname={DATABASE}", f"--bindir={box.bin}", f"--inputdir={inputs}",
                   f"--outputdir={results}", f"--host={box.socket_dir}", f"--port={box.port}",
                   "--user=postgres", f"--dlpath={os.path.join(inputs, 'lib')}", *tests]
        said = run_bounded(box.as_server_user(command), box.environment(DATABASE), results,
                           seconds_max)
        log = box.log_text()
    finally:
        box.remove()
    outputs = {}
    for name in tests:
        path = os.path.join(results, "results", name + ".out")
        if os.path.exists(path):
            with open(path, errors="replace") as file:
                outputs[name] = file.read()
    with open(os.path.join(place, "server.log"), "w") as file:
        file.write(log)
    internal, crashes = read_log(log)
    return Run(place, outputs, internal, crashes, said)


def run_bounded(command, environment, cwd, seconds_max):
    """What pg_regress printed; a run that does not end is ended, and says so."""
    process = subprocess.Popen(command, env=environment, cwd=cwd, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        return process.communicate(timeout=seconds_max)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()[0] + f"\nno end within {seconds_max} s\n"
