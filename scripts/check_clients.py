#!/usr/bin/env python3
"""make check-clients: suites and programs that were written elsewhere, or for nothing of rdmacc, on
heaps and on rdmacc tables (default_table_access_method), and how their outcomes differ.

    scripts/check_clients.py [--share] [CLIENT …]

Prints a line for each client: tests, those with equal outcomes, those that differ for a documented
reason (tests/clients/allowed.txt), the others, and the seconds of both sides; then each test that
differs, and the rates of load programs. --share: what make check runs. The last line is "N passed, N
failed". A client that cannot be had here says "skipped: " and why."""

import argparse
import os
import shutil
import sys
import tempfile
import time

from clients.allowed import Allowed
from clients.django import Django
from clients.load import Pgbench, Sysbench
from clients.node import NODE_CLIENTS
from clients.sqlalchemy import SqlAlchemy
from clients.side import SIDES, Side, Unavailable
from sandbox import Failure, Sandbox

ALL = [SqlAlchemy(), *NODE_CLIENTS, Pgbench(), Sysbench(), Django()]
SHARE = ("sqlalchemy",)
SETTINGS = {
    "rdmacc.nodes": 2,
    "fsync": "off",
    "max_connections": 100,
    "max_locks_per_transaction": 2048,  # all tables of all of Django's applications at once
}


def run_client(client, box, whole):
    """{side: outcomes}, {side: seconds}."""
    outcomes, seconds = {}, {}
    client.prepare(whole)
    for name in SIDES:
        begin = time.monotonic()
        outcomes[name] = client.run(Side(box, name, client), whole)
        seconds[name] = time.monotonic() - begin
    return outcomes, seconds


def compare(client, outcomes, allowed):
    """(equal, documented, [lines of the others])."""
    equal, documented, different = 0, 0, []
    heap, ours = (outcomes[name] for name in SIDES)
    for test in dict.fromkeys([*heap, *ours]):
        expected, found = heap.get(test, "not run"), ours.get(test, "not run")
        if expected == found:
            equal += 1
        elif allowed.takes(client.name, test):
            documented += 1
        else:
            different.append(f"  {test}\n    heap:   {expected}\n    rdmacc: {found}")
    return equal, documented, different


def report(client, box, whole, allowed):
    """(passed, failed)."""
    try:
        outcomes, seconds = run_client(client, box, whole)
    except Unavailable as reason:
        print(f"skipped: {client.name}: {reason}", flush=True)
        return 0, 0
    equal, documented, different = compare(client, outcomes, allowed)
    if equal + documented == 0:
        different.append("  no test ended alike: did it run at all?")
    print(f"{client.name:12}{equal + documented + len(different):7}{equal:7}{documented:12}"
          f"{len(different):11}{seconds['heap']:9.1f} s{seconds['rdmacc']:9.1f} s", flush=True)
    for line in [*different, *client.notes()]:
        print(line, flush=True)
    return equal + documented, len(different)


def main():
    parser = argparse.ArgumentParser(description="client suites on heap and on rdmacc tables")
    parser.add_argument("--share", action="store_true", help="what make check runs")
    parser.add_argument("clients", nargs="*", metavar="CLIENT",
                        help=", ".join(client.name for client in ALL))
    flags = parser.parse_args()
    names = flags.clients or (SHARE if flags.share else [client.name for client in ALL])
    unknown = set(names) - {client.name for client in ALL}
    if unknown:
        parser.error(f"no such client: {', '.join(sorted(unknown))}")
    allowed = Allowed()
    passed = failed = 0
    directory = tempfile.mkdtemp(prefix="rdmacc-clients-")
    os.chmod(directory, 0o755)
    box = Sandbox(directory, settings=SETTINGS)
    try:
        box.create()
        box.start()
        # Databases that a suite makes for itself are copies of this one.
        for database in ("template1", "postgres"):
            box.psql("CREATE EXTENSION rdmacc", database)
        print("client        tests  equal  documented  different      heap     rdmacc", flush=True)
        for client in ALL:
            if client.name in names:
                done = report(client, box, not flags.share, allowed)
                passed, failed = passed + done[0], failed + done[1]
    finally:
        box.stop("immediate")
        shutil.rmtree(directory, ignore_errors=True)
    if not flags.clients and not flags.share:
        for line in allowed.unused():
            print(f"allowed.txt: nothing differs as this says: {line}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        sys.exit(f"check_clients: {failure}")
