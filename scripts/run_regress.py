#!/usr/bin/env python3
"""Runs sql/ (pg_regress) or specs/ (isolationtester, see isolation.py) on a sandbox of its own.

    scripts/run_regress.py regress|isolation [--dir DIR] [--keep] [NAME …]

Regression tests run in a database that has the extension; isolation tests under every protocol, at
every isolation level. Prints the tests' lines and, of what failed, the differences or the rule that
does not hold; the last line is "N passed, N failed"."""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

import isolation
from sandbox import ROOT, Sandbox, pgxs_program

SUITES = {"regress": ("sql", ".sql"), "isolation": ("specs", ".spec")}  # folder, suffix
DIFF_LINES_MAX = 400
TIMEOUT_S = 600
DATABASE = "rdmacc_regression"


def names_of(folder, suffix):
    path = os.path.join(ROOT, folder)
    if not os.path.isdir(path):
        return []
    return sorted(name[:-len(suffix)] for name in os.listdir(path) if name.endswith(suffix))


def copy_inputs(box, folder):
    """Where COPY of the server's user can read them, too."""
    inputs = os.path.join(box.dir, "tests")
    shutil.rmtree(inputs, ignore_errors=True)
    os.makedirs(inputs)
    for name in (folder, "expected"):
        shutil.copytree(os.path.join(ROOT, name), os.path.join(inputs, name))
    subprocess.run(["chmod", "-R", "a+rX", inputs], check=True)
    return inputs


def run_suite(box, suite, names):
    output = os.path.join(box.dir, "results-" + suite)
    shutil.rmtree(output, ignore_errors=True)
    os.makedirs(output)
    if suite == "isolation":
        return isolation.run(box, names, output)
    return run_regress(box, names, output)


def run_regress(box, names, output):
    inputs = copy_inputs(box, SUITES["regress"][0])
    box.psql(f"DROP DATABASE IF EXISTS {DATABASE}")
    box.psql(f"CREATE DATABASE {DATABASE} TEMPLATE template0")
    box.psql("CREATE EXTENSION rdmacc", dbname=DATABASE)
    box.psql(f"ALTER DATABASE {DATABASE} SET timezone = 'PST8PDT';"
             f"ALTER DATABASE {DATABASE} SET datestyle = 'Postgres, MDY';"
             f"ALTER DATABASE {DATABASE} SET lc_messages = 'C'")
    command = [
        pgxs_program("test/regress/pg_regress"),
        "--use-existing", f"--dbname={DATABASE}", f"--bindir={box.bin}",
        f"--inputdir={inputs}", f"--outputdir={output}", f"--host={box.socket_dir}",
        f"--port={box.port}", "--user=postgres", "--max-connections=1", *names]
    environment = box.environment(DATABASE)
    result = subprocess.run(command, env=environment, cwd=output, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=TIMEOUT_S)
    print(result.stdout)
    differences = os.path.join(output, "regression.diffs")
    if os.path.exists(differences):
        with open(differences, errors="replace") as file:
            print("".join(file.readlines()[:DIFF_LINES_MAX]))
    passed = len(re.findall(r"^(?:test| {5}) .*\.\.\. ok\b", result.stdout, re.M))
    failed = len(re.findall(r"\.\.\. (?:FAILED|failed)", result.stdout))
    if passed + failed < len(names):
        failed = len(names) - passed
    return passed, failed


def main():
    parser = argparse.ArgumentParser(description="regression and isolation tests")
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("--dir", help="sandbox to use (default: a temporary one)")
    parser.add_argument("--keep", action="store_true", help="leave the sandbox running")
    parser.add_argument("--build")
    parser.add_argument("names", nargs="*")
    flags = parser.parse_intermixed_args()
    folder, suffix = SUITES[flags.suite]
    names = flags.names or names_of(folder, suffix)
    if not names:
        print("0 passed, 0 failed")
        return 0
    directory = flags.dir or tempfile.mkdtemp(prefix="rdmacc-" + flags.suite + "-")
    settings = {"rdmacc.nodes": 2, "max_prepared_transactions": 5, "max_worker_processes": 24}
    if flags.suite == "isolation":  # under every protocol, calvin included
        settings["rdmacc.durability"] = "memory"
    box = Sandbox(directory, settings=settings, build=flags.build)
    try:
        box.stop()
        box.create()
        box.start()
        passed, failed = run_suite(box, flags.suite, names)
        if failed:
            print("Server log:\n" + box.log_text()[-3000:])
    finally:
        if not flags.keep:
            box.remove()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
