#!/usr/bin/env python3
"""PostgreSQL's own regression tests with rdmacc as the default access method, against the same
server with heap: what differs has to be in tests/pg_suite/allowed.txt. See tests/pg_suite/README.md.

    scripts/pg_suite.py [--share | --tests=LIST] [--protocol=occ] [--survive] [--show=N]

--share runs the files of tests/pg_suite/share.txt; --tests=a,b those and test_setup. With --survive
outputs are not compared: the server must neither crash nor hang nor report an internal error.
Prints a line for each file that differs, and the reasons by count; the last line is "N passed, N
failed". Needs PostgreSQL's source, which it fetches by apt into build/debian-source; where that cannot
be had, it says "skipped: " and why, and counts nothing."""

import argparse
import collections
import os
import sys

import debian_source
from pg_suite_allowed import Allowed
from pg_suite_choice import CHOICE, ORDER
from pg_suite_judge import differences
from pg_suite_server import OURS, PLACE, STATEMENT_TIMEOUT, prepare_inputs, run, tests_of
from protocol_list import PROTOCOLS
from sandbox import ROOT

SHOWN_CHARACTERS = 1500
# Of one statement, and of one run. The slowest statement of the control takes a few seconds.
STATEMENT_SECONDS_MAX = 60
RUN_SECONDS_MAX = 3600
DEFAULT_PROTOCOL = "occ"


def listed(name):
    with open(os.path.join(OURS, name)) as file:
        lines = [line.split("#")[0].strip() for line in file]
    return [line for line in lines if line]


def chosen_tests(flags, schedule):
    """In the schedule's order, with what every file builds on."""
    if flags.share:
        names = set(listed("share.txt"))
    elif flags.tests:
        names = set(flags.tests.split(",")) | {"test_setup"}
    else:
        return schedule
    unknown = names - set(schedule)
    if unknown:
        sys.exit(f"pg_suite: the schedule has no {', '.join(sorted(unknown))}")
    return [name for name in schedule if name in names]


def broken(ours, control, tests, allowed):
    """{file: why it fails whatever else it says}; files of "" are of the server as a whole."""
    found = collections.defaultdict(list)
    for name, message in ours.internal - control.internal:
        if not allowed.internal(name, message):
            found[name].append(f"internal error: {message}")
    for line in ours.crashes:
        found[""].append(f"crash: {line}")
    for name in tests:
        output = ours.outputs.get(name)
        if output is None:
            found[name].append("did not run to its end")
        elif output.count(STATEMENT_TIMEOUT) > control.outputs.get(name, "").count(
                STATEMENT_TIMEOUT):
            found[name].append(f"a statement took longer than {STATEMENT_SECONDS_MAX} s")
    return found


def show(difference, reason):
    print(f"  {difference.file}:{difference.line} [{difference.key}] {reason}\n"
          f"    {difference.sql[:SHOWN_CHARACTERS]}")
    for mark, text in (("-", difference.control), ("+", difference.ours)):
        print("\n".join(f"    {mark}{line}" for line in
                        text[:SHOWN_CHARACTERS].rstrip("\n").split("\n")))


def reason_of(difference, rule, follows):
    if rule is None:
        return "unexpected: " + difference.kind
    return ("pending: " if rule.kind == "pending" else "") + rule.reason + (
        " (follows)" if follows else "")


def compare(tests, control, ours, inputs, allowed, shown):
    """{file: number of unexpected differences} of those that differ, and the others; prints the
    differences and the reasons. What SQL leaves open is no difference (pg_suite_choice.py)."""
    unexpected = collections.Counter()
    reasons = collections.Counter()
    files = collections.defaultdict(set)
    equal = {}  # and in what they differ all the same
    for name in tests:
        if name not in ours.outputs or name not in control.outputs:
            continue
        if ours.outputs[name] == control.outputs[name]:
            equal[name] = None
            continue
        script = os.path.join(inputs, "sql", name + ".sql")
        told_apart = differences(name, script, control.path(name), ours.path(name))
        found = [each for each in told_apart if not each.open]
        if told_apart and not found:
            kinds = {each.open for each in told_apart}
            equal[name] = CHOICE if CHOICE in kinds else ORDER
            continue
        unexpected[name] = 0
        counts = collections.Counter()
        for difference, rule, follows in allowed.judge(found):
            reason = reason_of(difference, rule, follows)
            reasons[reason] += 1
            files[reason].add(name)
            expected = rule is not None and rule.kind != "pending"
            counts["allowed" if expected else "unexpected"] += 1
            if not expected:
                unexpected[name] += 1
                if shown and unexpected[name] <= shown:
                    show(difference, reason)
        if not found:
            # Where both differ in layout alone, the judge has nothing to name.
            unexpected[name] += 1
            counts["unexpected"] += 1
        print(f"{name}: {counts['allowed']} allowed, {counts['unexpected']} unexpected",
              flush=True)
    print("Reasons, by the statements that differ:")
    for reason, count in reasons.most_common():
        print(f"{count:6} in {len(files[reason]):3} files: {reason}")
    open_in = collections.Counter(equal.values())
    print(f"{len(equal)} of {len(tests)} files as the control ({open_in[None]} to the letter, "
          f"{open_in[ORDER]} but for the order of rows, {open_in[CHOICE]} but for which rows a "
          "statement without ORDER BY takes); "
          f"{sum(1 for count in unexpected.values() if count == 0)} with allowed differences, "
          f"{sum(1 for count in unexpected.values() if count)} with unexpected ones")
    return unexpected, set(equal)


def main():
    parser = argparse.ArgumentParser(description="PostgreSQL's regression tests on rdmacc tables")
    parser.add_argument("--share", action="store_true", help="what make check runs")
    parser.add_argument("--tests", help="names of files, by commas")
    parser.add_argument("--protocol", choices=PROTOCOLS, default=DEFAULT_PROTOCOL)
    parser.add_argument("--survive", action="store_true", help="crashes and hangs alone count")
    parser.add_argument("--show", type=int, default=0, metavar="N",
                        help="print N unexpected differences of each file")
    flags = parser.parse_args()
    try:
        source = debian_source.fetch(debian_source.POSTGRESQL)
    except debian_source.Unavailable as reason:
        print(f"skipped: PostgreSQL's source cannot be fetched: {reason}\n0 passed, 0 failed")
        return 0
    inputs = prepare_inputs(source)
    allowed = Allowed(os.path.join(OURS, "allowed.txt"))
    schedule = tests_of(inputs)
    tests = chosen_tests(flags, schedule)
    limits = (STATEMENT_SECONDS_MAX, RUN_SECONDS_MAX)
    control = run(inputs, "heap", flags.protocol, tests, *limits)
    ours = run(inputs, "rdmacc", flags.protocol, tests, *limits)
    failures = broken(ours, control, tests, allowed)
    equal = set()
    if not flags.survive:
        unexpected, equal = compare(tests, control, ours, inputs, allowed, flags.show)
        for name in +unexpected:
            failures[name].append(f"{unexpected[name]} unexpected differences")
    if not (flags.share or flags.tests or flags.survive):
        for name in listed("equal.txt"):
            if name not in equal:
                failures[name].append("is in equal.txt, and differs")
    for name, why in sorted(failures.items()):
        print(f"not ok - {name or 'the server'}: {'; '.join(why)}")
    print(f"outputs are in {os.path.relpath(PLACE, ROOT)}")
    failed = len(failures)
    print(f"{len(tests) - len([name for name in failures if name])} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
