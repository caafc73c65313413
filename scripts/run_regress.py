#!/usr/bin/env python3
"""Runs sql/ (pg_regress) or specs/ (pg_isolation_regress) on a sandbox of its own.

    scripts/run_regress.py regress|isolation [--dir DIR] [--keep] [NAME …]

Every test starts in a database that has the extension; isolation tests run under every protocol,
whose outcomes may differ (expected/NAME_1.out) where both are serializable. Prints the runner's lines and, of what
failed, the differences; the last line is "N passed, N failed"."""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

from sandbox import ROOT, Sandbox

RUNNERS = "/usr/lib/postgresql/15/lib/pgxs/src/test"
SUITES = {
    # suite: (runner, folder of the tests, their suffix)
    "regress": (f"{RUNNERS}/regress/pg_regress", "sql", ".sql"),
    "isolation": (f"{RUNNERS}/isolation/pg_isolation_regress", "specs", ".spec"),
}
DIFF_LINES_MAX = 400
TIMEOUT_S = 600
DATABASE = {"regress": "rdmacc_regression", "isolation": "isolation_regression"}


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
    """Isolation tests under every protocol, whatever else once."""
    if suite != "isolation":
        return run_once(box, suite, names, "", suite)
    protocols = box.psql("SELECT unnest(enumvals) FROM pg_settings"
                         " WHERE name = 'rdmacc.protocol'").split("\n")
    passed = failed = 0
    for protocol in protocols:
        print(f"Under {protocol}")
        counts = run_once(box, suite, names, f"-c rdmacc.protocol={protocol}",
                          f"{suite}-{protocol}")
        passed += counts[0]
        failed += counts[1]
    return passed, failed


def run_once(box, suite, names, options, label):
    runner, folder, _ = SUITES[suite]
    inputs = copy_inputs(box, folder)
    output = os.path.join(box.dir, "results-" + label)
    shutil.rmtree(output, ignore_errors=True)
    os.makedirs(output)
    database = DATABASE[suite]
    box.psql(f"DROP DATABASE IF EXISTS {database}")
    box.psql(f"CREATE DATABASE {database} TEMPLATE template0")
    box.psql("CREATE EXTENSION rdmacc", dbname=database)
    box.psql(f"ALTER DATABASE {database} SET timezone = 'PST8PDT';"
             f"ALTER DATABASE {database} SET datestyle = 'Postgres, MDY';"
             f"ALTER DATABASE {database} SET lc_messages = 'C'")
    command = [
        runner, "--use-existing", f"--dbname={database}", f"--bindir={box.bin}",
        f"--inputdir={inputs}", f"--outputdir={output}", f"--host={box.socket_dir}",
        f"--port={box.port}", "--user=postgres", "--max-connections=1", *names]
    environment = dict(box.environment(database), PGOPTIONS=options)
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
    flags = parser.parse_args()
    _, folder, suffix = SUITES[flags.suite]
    names = flags.names or names_of(folder, suffix)
    if not names:
        print("0 passed, 0 failed")
        return 0
    directory = flags.dir or tempfile.mkdtemp(prefix="rdmacc-" + flags.suite + "-")
    box = Sandbox(directory, settings={"rdmacc.nodes": 2, "max_prepared_transactions": 5},
                  build=flags.build)
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
