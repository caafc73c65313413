#!/usr/bin/env python3
"""make soak: the tests that take too long for make check, part after part. Prints what each
came to; exit code 1 if anything failed, and then the command that repeats it stands in its part."""

import argparse
import os
import signal
import sys
import time

import check
from check import ROOT, Part, build, campaign_part, gtest_parts, in_turn
from pg_suite import DEFAULT_PROTOCOL, PROTOCOLS

HOUR_S = 3600
SUMMARY = os.path.join(ROOT, "build/check/campaign.json")


def show_table(part):
    """What the campaign ran, for the log's reader."""
    lines = part.output.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith("protocol ")), len(lines))
    print("\n".join("    " + line for line in lines[start:]), flush=True)
    return part


# Each part takes the flags and gives the parts of check.py that it ran.

def release_build(flags):
    return [build("release", flags.jobs, HOUR_S)]


def campaign(flags):
    part = campaign_part("release", f"--seeds={flags.seeds}", f"--first={flags.first}",
                         f"--jobs={flags.jobs}", f"--json={SUMMARY}", limit_s=24 * HOUR_S)
    return [show_table(part.run())]


def packed(flags):
    """Many transactions on two keys."""
    part = campaign_part("release", "--packed", f"--seeds={flags.seeds}", f"--first={flags.first}",
                         f"--jobs={flags.jobs}", limit_s=24 * HOUR_S)
    part.name = "campaign packed"
    return [show_table(part.run())]


def mutants(_):
    """Those, too, that need many seeds to be noticed."""
    program = os.path.join(ROOT, "build/release/tests/sim_test")
    return in_turn([Part("mutants", [program, "--gtest_filter=*Mutant*"], check.count_gtest,
                         2 * HOUR_S, {"RARE_MUTANTS": "1"})])


def exploration(flags):
    program = os.path.join(ROOT, "build/release/tests/explore_test")
    return in_turn([Part("exploration", [program], check.count_gtest, 12 * HOUR_S,
                         {"EXPLORE_BUDGET": str(flags.explore_budget)})])


def sanitized(flags):
    """All seeds of the unit and simulator tests under ASan and UBSan, and some of the campaign."""
    targets = (*check.SANITIZED, "rdmacc_campaign")
    built = build("asan", flags.jobs, HOUR_S, targets)
    if built.failed:
        return [built]
    tests = in_turn(gtest_parts("asan", "sanitized ", check.SANITIZED, 2 * HOUR_S))
    runs = campaign_part("asan", f"--seeds={max(1, flags.seeds // 20)}", f"--first={flags.first}",
                         f"--jobs={flags.jobs}", limit_s=12 * HOUR_S)
    return [built, *tests, show_table(runs.run())]


def delays(flags):
    """Benchmarks whose verbs are delayed; other runs than the last time's unless told which."""
    first = flags.delay_first or int(time.time())
    return in_turn([check.python_part("delays", "scripts/delay_storm.py",
                                      f"--seconds={flags.delay_hours * HOUR_S}",
                                      f"--first={first}", f"--jobs={flags.jobs}",
                                      limit_s=int(flags.delay_hours * HOUR_S) + HOUR_S)])


def fuzz(flags):
    """Ten minutes for each program."""
    return in_turn([check.python_part("fuzz", "scripts/fuzz.py", "--seconds=600", "--jobs",
                                      str(flags.jobs), limit_s=4 * HOUR_S)])


def threads(flags):
    return in_turn([check.python_part("threads", "scripts/tsan.py", "--jobs", str(flags.jobs),
                                      limit_s=4 * HOUR_S)])


def assertions(flags):
    """The server's tests on a PostgreSQL with assertions."""
    return in_turn([check.python_part("assertions", "scripts/assert_server.py", "--jobs",
                                      str(flags.jobs), limit_s=8 * HOUR_S)])


def pg_suite(_):
    """All of PostgreSQL's regression files; then under each protocol, where only crashes, internal
    errors and hangs count."""
    whole = check.python_part("pg_suite", "scripts/pg_suite.py", limit_s=2 * HOUR_S)
    return in_turn([whole, *(check.python_part(f"pg_suite {protocol}", "scripts/pg_suite.py",
                                               "--survive", f"--protocol={protocol}",
                                               limit_s=2 * HOUR_S)
                             for protocol in PROTOCOLS if protocol != DEFAULT_PROTOCOL)])


def differential(flags):
    """Random statements beside heap; other seeds than the last time's unless told which."""
    first = flags.differential_first or int(time.time())
    return in_turn([check.python_part("differential", "scripts/differential.py",
                                      f"--seconds={flags.differential_hours * HOUR_S}",
                                      f"--seed={first}",
                                      limit_s=int(flags.differential_hours * HOUR_S) + HOUR_S)])


def kills(flags):
    """Of sessions, nodes and whole servers under load."""
    return in_turn([check.python_part("kills", "scripts/kills.py", f"--kills={flags.kills}",
                                      limit_s=12 * HOUR_S)])


def power_cuts(flags):
    """And tables of all kinds over power cuts in the place of the ends of all processes."""
    cycles = {"POWER_CYCLES": str(flags.power_cycles)}
    taps = (("30_power_cuts", cycles), *(
        (name, {"POWER_CUTS": "1", "STORM_CYCLES": str(flags.power_cycles)})
        for name in ("25_durability", "27_crash_storm", "29_commit_points")))
    return in_turn([Part(f"power cuts {name}", [sys.executable, f"tests/tap/{name}.py"],
                         check.count_counted, 12 * HOUR_S, environment)
                    for name, environment in taps])


def storms(flags):
    """Ends of servers beside standbys, and beside changes of the tables."""
    cycles = str(flags.storm_cycles)
    return in_turn([Part(name, [sys.executable, f"tests/tap/{name}.py"], check.count_counted, 12 * HOUR_S,
                         {variable: cycles})
                    for name, variable in (("41_standby_storm", "STANDBY_CYCLES"),
                                           ("42_changes_storm", "CHANGES_CYCLES"))])


# In this order; `make soak` runs all of them, --only some. A part that needs another build brings
# it along.
PARTS = {
    "build": release_build,
    "campaign": campaign,
    "packed": packed,
    "mutants": mutants,
    "exploration": exploration,
    "delays": delays,
    "kills": kills,
    "power_cuts": power_cuts,
    "storms": storms,
    "sanitized": sanitized,
    "fuzz": fuzz,
    "threads": threads,
    "pg_suite": pg_suite,
    "differential": differential,
    "assertions": assertions,
}


def main():
    for signal_number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signal_number, check.end_all)
    parser = argparse.ArgumentParser(description="run the long tests")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seeds", type=int, default=2000, help="of each protocol")
    parser.add_argument("--first", type=int, default=1, help="the first of them")
    parser.add_argument("--explore-budget", type=int, default=1_000_000,
                        help="states of each program of the exploration")
    parser.add_argument("--delay-hours", type=float, default=2,
                        help="how long benchmarks run with delayed verbs")
    parser.add_argument("--delay-first", type=int, help="number of the first of those runs")
    parser.add_argument("--differential-hours", type=float, default=1,
                        help="how long random statements are compared with heap")
    parser.add_argument("--differential-first", type=int, help="the first of their seeds")
    parser.add_argument("--kills", type=int, default=500, help="how many processes are killed")
    parser.add_argument("--power-cycles", type=int, default=200,
                        help="how many power cuts, and failures of the disk")
    parser.add_argument("--storm-cycles", type=int, default=200,
                        help="how many ends, each of storms beside standbys and changes")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    flags = parser.parse_args()
    os.makedirs(check.LOGS, exist_ok=True)
    begin = time.monotonic()
    done = []
    for name, part in PARTS.items():
        if name not in flags.only:
            continue
        print(f"{name}:", flush=True)
        done += part(flags)
        if name == "build" and done[-1].failed:
            break
    failed = [part for part in done if part.failed]
    print(f"{time.monotonic() - begin:.0f} seconds; logs are in build/check")
    for part in failed:
        print(check.colour(f"failed: {part.name}", 31))
    print(f"{sum(part.passed for part in done)} passed, {sum(part.failed for part in done)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
