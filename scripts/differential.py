#!/usr/bin/env python3
"""The differential tester: random schemas and statements on rdmacc tables and on heaps of one throw-away server,
which have to say the same. A seed decides all of it; every third one has several sessions.

    scripts/differential.py [--seed=N] [--seeds=K | --seconds=S] [--protocol=NAME] [--sessions=one|several]

Prints each difference with the fewest statements that show it and the command that repeats it; the last line
is "N passed, N failed", a seed being one. scripts/side_by_side/ has a README."""

import argparse
import collections
import os
import sys
import time

PYTHON = "/usr/bin/python3"  # which Debian's psycopg2 is for
try:
    import psycopg2  # noqa: F401
except ModuleNotFoundError:
    if sys.executable == PYTHON:
        sys.exit("differential: there is no module psycopg2 (packages-test.txt)\n0 passed, 1 failed")
    os.execv(PYTHON, [PYTHON, *sys.argv])

from pg_suite_server import CRASH
from protocol_list import PROTOCOLS

from side_by_side.alone import Alone, Failed
from side_by_side.sides import Server
from side_by_side.together import FailedTogether, Together

PROGRESS_SECONDS = 30
FAILURES_MAX = 10


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--seed", type=int, default=1, help="the first one")
    parser.add_argument("--seeds", type=int, help="how many; 1 unless --seconds says how long")
    parser.add_argument("--seconds", type=float, help="no seed is begun after that")
    parser.add_argument("--protocol", choices=PROTOCOLS, help="a seed has its own otherwise")
    parser.add_argument("--sessions", choices=("one", "several"), help="likewise")
    parser.add_argument("--instead", metavar="LEVEL", choices=("read committed", "repeatable read", "serializable"),
                        help="heaps at this isolation level in the place of rdmacc tables: whether this is noticed")
    parser.add_argument("--build", help="build/release by default")
    flags = parser.parse_args()
    if flags.seeds is None:
        flags.seeds = 1 if flags.seconds is None else sys.maxsize
    return flags


class Servers:
    """One whose rows are on disk, and one for CALVIN, which keeps them in memory; started when needed."""

    def __init__(self, flags):
        self.flags = flags
        self.started = {}

    def of(self, protocol):
        durability = "memory" if protocol == "calvin" else "disk"
        if durability not in self.started:
            self.started[durability] = Server(durability, self.flags.build, self.flags.instead)
        return self.started[durability]

    def crashes(self):
        """Lines of their logs that tell of any process's."""
        return [line for server in self.started.values() for line in server.box.log_text().splitlines()
                if CRASH.search(line)]

    def close(self):
        for server in self.started.values():
            server.close()


def chosen(seed, flags):
    """Protocol and number of sessions of a seed."""
    return (flags.protocol or PROTOCOLS[seed % len(PROTOCOLS)],
            flags.sessions or ("several" if seed // len(PROTOCOLS) % 3 == 2 else "one"))


def print_failure(failed, seed, protocol, sessions):
    print(f"not ok - seed {seed}, {protocol}, {sessions} session{'s' * (sessions == 'several')}", flush=True)
    if isinstance(failed, Failed):
        print(f"difference ({failed.difference.kind}) at: {failed.difference.statement}")
        statements, batch = failed.statements, []
    else:
        print(f"difference ({failed.kind})")
        statements, batch = failed.before, failed.batch
    print(failed, "\nsettings: " + " ".join(f"{name}={value}" for name, value in failed.settings.items()))
    if not failed.repeated:
        print("it did not come again when the same statements were run once more, all of which follow:")
    for line in [*statements, *batch]:
        print(f"  {line}")
    print(f"again: scripts/differential.py --seed={seed} --protocol={protocol} --sessions={sessions}", flush=True)


def run(flags, servers):
    begin = shown = time.monotonic()
    counts, passed, failed = collections.Counter(), 0, 0
    for seed in range(flags.seed, flags.seed + flags.seeds):
        if flags.seconds is not None and time.monotonic() - begin > flags.seconds or failed >= FAILURES_MAX:
            break
        protocol, sessions = chosen(seed, flags)
        test = (Alone if sessions == "one" else Together)(servers.of(protocol), seed, protocol)
        try:
            counts += test.run()
            passed += 1
        except (Failed, FailedTogether) as failure:
            failed += 1
            print_failure(failure, seed, protocol, sessions)
        if time.monotonic() - shown > PROGRESS_SECONDS:
            shown = time.monotonic()
            print(f"{shown - begin:.0f} s: seed {seed}, {passed} passed, {failed} failed; {told(counts)}", flush=True)
    print(told(counts))
    return passed, failed


def told(counts):
    return ", ".join(f"{count:,} {name}" for name, count in sorted(counts.items()))


def main():
    flags = arguments()
    servers = Servers(flags)
    try:
        passed, failed = run(flags, servers)
        for line in servers.crashes():
            failed += 1
            print(f"not ok - a process has crashed: {line}")
    finally:
        servers.close()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
