#!/usr/bin/env python3
"""make check-verbs: the suites of the verbs fabric, the engine's and SQL on it, in a guest that has
two RDMA devices (scripts/verbs_guest.py). The last line is "N passed, N failed"; where there can be
no guest it says why and counts nothing."""

import argparse
import os
import re
import signal
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
EXIT_SKIPPED = 77
TESTS = os.path.join(ROOT, "build/release/tests")
PASSED = re.compile(r"^\[  PASSED  \] (\d+) tests?\.")
COUNTED = re.compile(r"^(\d+) passed, (\d+) failed$")
FAILED = re.compile(r"^\[  FAILED  \] (\d+) tests?, listed below")
STARTED = re.compile(r"^verbs-suite (\S+)$")
ENDED = re.compile(r"^verbs-suite-ended (\S+) (\d+)$")

# (program, most seconds, arguments)
SUITES = [
    ("fabric_test", 200, ["--gtest_filter=*/verbs"]),
    ("rdmacc_verbs_tests", 200, []),
    ("rdmacc_verbs_engine_tests", 300, []),
    ("sql.py", 240, []),
]


def path_of(program):
    folder = os.path.join(ROOT, "tests/verbs") if program.endswith(".py") else TESTS
    return os.path.join(folder, program)


def script(suites):
    lines = ["export FABRIC=verbs VERBS_DEVICES=rxe0,rxe1 GTEST_COLOR=no"]
    for program, limit_s, arguments in suites:
        command = " ".join([path_of(program), *arguments])
        lines += [f"echo verbs-suite {program}", f"timeout -k 5 {limit_s} {command}",
                  f"echo verbs-suite-ended {program} $?"]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description="test the verbs fabric in a guest")
    parser.add_argument("--timeout", type=int, default=480, help="seconds for all of it (480)")
    parser.add_argument("--only", help="run this program alone")
    parser.add_argument("--filter", help="with --only: of its tests, those that match")
    flags = parser.parse_args()
    suites = [suite for suite in SUITES if flags.only in (None, suite[0])]
    if flags.filter:
        suites = [(program, limit_s, ["--gtest_filter=" + flags.filter])
                  for program, limit_s, _ in suites]
    missing = [program for program, _, _ in suites
               if not os.path.exists(path_of(program))]
    if missing:
        print("skipped: not built, for want of libibverbs or of a build: " + ", ".join(missing))
        print("0 passed, 0 failed")
        return 0
    command = [sys.executable, os.path.join(ROOT, "scripts/verbs_guest.py"), "--timeout",
               str(flags.timeout), "--", "sh", "-c", script(suites)]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    passed = failed = 0
    open_suites = {program for program, _, _ in suites}
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True,
                          errors="replace") as guest:
        counted = 0
        try:
            for line in guest.stdout:
                print(line, end="", flush=True)
                if found := PASSED.match(line):
                    passed += int(found.group(1))
                elif found := FAILED.match(line):
                    counted = int(found.group(1))
                    failed += counted
                elif found := COUNTED.match(line):
                    passed += int(found.group(1))
                    counted = int(found.group(2))
                    failed += counted
                elif STARTED.match(line):
                    counted = 0
                elif found := ENDED.match(line):
                    open_suites.discard(found.group(1))
                    # It broke down, or took too long, before it could count.
                    failed += int(found.group(2)) != 0 and counted == 0
        except SystemExit:
            guest.terminate()  # it ends its guest
            raise
    if guest.returncode == EXIT_SKIPPED:
        print("0 passed, 0 failed")
        return 0
    failed += len(open_suites)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
