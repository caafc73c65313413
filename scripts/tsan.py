#!/usr/bin/env python3
"""make check-tsan: the tests that use threads, and rdmacc_bench with several, under
ThreadSanitizer (preset tsan). Part of a soak, not of make check: the build takes long. The last
line is "N passed, N failed"; a race makes its part fail.

What it cannot see: ThreadSanitizer knows the memory and the order of one process, and memory by
its address. Two processes that share a region, or one that has mapped it twice, are not seen to
race there; the ones that are seen are threads of one process that share a mapping: a node's
threads, the coordinators of rdmacc_bench, and the tests' clusters of threads. Order between
processes is what tests/explore and tests/sim are for."""

import argparse
import os
import re
import signal
import subprocess
import sys

import check

TESTS = ("fabric_test", "storage_test", "cluster_test", "engine_test")
PROGRAMS = ("rdmacc_bench", "rdmacc_node")
STAGES = ("one_sided", "rpc")
BUILD_SECONDS_MAX = 3600
TEST_SECONDS_MAX = 1200
BENCH_SECONDS = 2
# A test that goes on after a report shows the others, too; its exit code says that there was one.
# The tests of processes that die start others from one that has had threads.
OPTIONS = "halt_on_error=0 exitcode=66 history_size=4 die_after_fork=0"


def count_bench(output):
    """A run is one test: its invariant is checked, and its exit code is the sanitizer's."""
    kept = re.search(r'"invariant": "ok"', output) and "ThreadSanitizer" not in output
    return (1, 0) if kept else (0, 1)


def bench_parts():
    program = os.path.join(check.ROOT, "build/tsan/bin/rdmacc_bench")
    protocols = registered_protocols(program)
    # Few accounts: what does not collide finds nothing.
    command = [program, "smallbank", "--fabric=shm", "--nodes=2", "--threads-per-node=2",
               "--threads=3", "--coroutines=4", f"--time={BENCH_SECONDS}", "--accounts=1000",
               "--format=json"]
    return [check.Part(f"threads smallbank {protocol} {stages}",
                       [*command, f"--protocol={protocol}", f"--stages={stages}"], count_bench, 300)
            for protocol in protocols for stages in STAGES]


def registered_protocols(program):
    """Every name that the program knows."""
    said = subprocess.run([program, "smallbank", "--help"], text=True, check=True, timeout=60,
                          capture_output=True).stdout
    return re.search(r"--protocol .*?one of ([\w, ]+)", said).group(1).split(", ")


def run(jobs):
    """Builds and runs all parts; returned for the caller to count."""
    os.makedirs(check.LOGS, exist_ok=True)
    os.environ["TSAN_OPTIONS"] = OPTIONS
    built = check.build("tsan", jobs, BUILD_SECONDS_MAX, (*TESTS, *PROGRAMS))
    if built.failed:
        return [built]
    return [built, *check.in_turn(check.gtest_parts("tsan", "threads ", TESTS, TEST_SECONDS_MAX)),
            *check.in_turn(bench_parts())]


def main():
    for signal_number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signal_number, check.end_all)
    parser = argparse.ArgumentParser(description="tests with threads under ThreadSanitizer")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    flags = parser.parse_args()
    parts = run(flags.jobs)
    failed = sum(part.failed for part in parts)
    print(f"{sum(part.passed for part in parts)} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
