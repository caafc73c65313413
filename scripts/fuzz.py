#!/usr/bin/env python3
"""The programs of tests/fuzz, each for a while: any bytes of a peer must be refused or read, never
crash, hang or read beyond their end. What they learn is kept in build/fuzz/corpus for the next run;
an input that fails is kept in build/fuzz/found, and the program run with it repeats the failure.

    scripts/fuzz.py [--seconds N] [--jobs N]

The last line is "N passed, N failed"; a program is one test."""

import argparse
import os
import signal
import sys

import check

SECONDS = 10
# Beyond its time: to read the corpus, and what one input may take.
SLACK_S = 120
INPUT_BYTES_MAX = 8192
INPUT_SECONDS_MAX = 10
MEMORY_MB_MAX = 2048
FOLDER = os.path.join(check.ROOT, "build/fuzz")


def count_program(output):
    return (1, 0) if "Done " in output else (0, 1)


def part_of(name, seconds):
    corpus = os.path.join(FOLDER, "corpus", name)
    found = os.path.join(FOLDER, "found")
    os.makedirs(corpus, exist_ok=True)
    os.makedirs(found, exist_ok=True)
    command = [os.path.join(FOLDER, "tests", name), f"-max_total_time={seconds}",
               f"-max_len={INPUT_BYTES_MAX}", f"-timeout={INPUT_SECONDS_MAX}",
               f"-rss_limit_mb={MEMORY_MB_MAX}", f"-artifact_prefix={found}/{name}-",
               "-print_final_stats=1", corpus]
    return check.Part(f"fuzz {name}", command, count_program, seconds + SLACK_S)


def run(jobs, seconds=SECONDS):
    """Builds and runs all programs; returned for the caller to count."""
    os.makedirs(check.LOGS, exist_ok=True)
    built = check.build("fuzz", jobs, 900)
    if built.failed:
        return [built]
    names = sorted(name for name in os.listdir(os.path.join(FOLDER, "tests"))
                   if name.endswith("_fuzz"))
    return [built, *check.in_turn(part_of(name, seconds) for name in names)]


def main():
    for signal_number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signal_number, check.end_all)
    parser = argparse.ArgumentParser(description="any bytes for every parser")
    parser.add_argument("--seconds", type=int, default=SECONDS)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    flags = parser.parse_args()
    parts = run(flags.jobs, flags.seconds)
    failed = sum(part.failed for part in parts)
    print(f"{sum(part.passed for part in parts)} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
