#!/usr/bin/env python3
"""The workloads of extension rdmacc_workloads by pgbench: heaps beside rdmacc tables, plain
statements beside PL/pgSQL and native functions, in turns on one server.

    scripts/workload_bench.py [--seconds 4] [--rounds 5] [--clients 8] [MIX …]

Prints of each way the median of committed transactions a second, the processor's time of the
sessions for one of them, and both as ratios to PL/pgSQL on heaps, READ COMMITTED."""

import argparse
import os
import statistics
import subprocess
import tempfile
import time

from sandbox import Sandbox
from workload_mixes import MIXES, TIMEOUT_S, check, create, kind_of, paths_of, run

KINDS = {  # arguments of ..._create(), variables of the scripts
    "smallbank": ("100000", {"customers": 100000}),
    "ycsb": ("100000", {"records": 100000}),
    "tatp": ("100000", {"subscribers": 100000}),
    "tpcc": ("4", {"warehouses": 4, "items": 100000, "customers": 3000}),
    "tpce": ("5000", {"customers": 5000}),
}
SERIALIZABLE = "default_transaction_isolation=serializable"
BASE = ("plpgsql", "heap", "")
POLLS_MAX = 100
EMPTY = "SELECT pg_backend_pid();\n"


def seconds_of_ended_sessions(box):
    """Processor's time of the server's children that have ended, once pgbench's have."""
    for _ in range(POLLS_MAX):
        if box.psql("SELECT count(*) FROM pg_stat_activity"
                    " WHERE application_name = 'pgbench'") == "0":
            break
        time.sleep(0.1)
    time.sleep(0.1)  # for the last session's end to be seen
    with open(f"/proc/{box.postmaster_pid()}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")


def ways_of(mix):
    for path in paths_of(mix):
        if path != "native":
            yield path, "heap", ""
            yield path, "heap", SERIALIZABLE
        yield path, "rdmacc", ""


def load(box, kind, access_method):
    create(box, kind, f"{kind}_{access_method}",
           f"{KINDS[kind][0]}, access_method => '{access_method}'")
    box.psql(f"SET search_path = {kind}_{access_method}; ANALYZE; CHECKPOINT")


def measure(box, mix, way, clients, seconds, more=()):
    """Committed a second, microseconds of the sessions' for one. `more`: options of pgbench."""
    path, access_method, setting = way
    kind = kind_of(mix)
    before = seconds_of_ended_sessions(box)
    rate, _ = run(box, mix, path, f"{kind}_{access_method}", KINDS[kind][1], clients,
                  f"-T{seconds}", [setting] if setting else [], more)
    return rate, (seconds_of_ended_sessions(box) - before) * 1e6 / (rate * seconds)


def measure_empty(box, clients, seconds):
    """A client's round trip and a statement around a C function that does nothing."""
    before = seconds_of_ended_sessions(box)
    printed = subprocess.run(
        box.command("pgbench", "-n", "-M", "prepared", "-c", str(clients), "-j", "1",
                    f"-T{seconds}", "-f", "/dev/stdin"),
        input=EMPTY, env=box.environment(), cwd="/", text=True, capture_output=True, check=True,
        timeout=TIMEOUT_S).stdout
    rate = float(printed.partition("tps = ")[2].split()[0])
    return rate, (seconds_of_ended_sessions(box) - before) * 1e6 / (rate * seconds)


def compare(box, mix, flags):
    ways = [*ways_of(mix), None]
    taken = {way: [] for way in ways}
    for round_number in range(flags.rounds):
        for way in ways if round_number % 2 == 0 else reversed(ways):
            taken[way].append(measure_empty(box, flags.clients, flags.seconds) if way is None
                              else measure(box, mix, way, flags.clients, flags.seconds))
    medians = {way: [statistics.median(column) for column in zip(*runs)]
               for way, runs in taken.items()}
    base = medians[BASE]
    print(f"{mix}: committed/s (ratio), sessions' us for one (ratio)")
    for way, (rate, cost) in medians.items():
        name = "an empty call" if way is None else " ".join(way).replace(SERIALIZABLE,
                                                                         "SERIALIZABLE")
        print(f"  {name:28} {rate:8.0f} ({rate / base[0]:.2f})  {cost:7.1f}"
              f" ({base[1] / cost:.2f})", flush=True)
    for line in check(box, kind_of(mix), f"{kind_of(mix)}_rdmacc").split("\n"):
        if line:
            print(f"  violated: {line}")


def main():
    parser = argparse.ArgumentParser(description="workloads in SQL, heaps beside rdmacc tables")
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("mixes", nargs="*", metavar="MIX", help=", ".join(MIXES))
    flags = parser.parse_args()
    mixes = flags.mixes or ["smallbank", "ycsb-a", "ycsb-f", "tatp", "tpcc-papers"]
    with tempfile.TemporaryDirectory(prefix="rdmacc-workloads-") as directory:
        box = Sandbox(directory, settings={"rdmacc.nodes": 2, "max_wal_size": "4GB"})
        try:
            box.create()
            box.start()
            box.psql("SET client_min_messages = warning;"
                     "CREATE EXTENSION rdmacc_workloads CASCADE")
            for kind in dict.fromkeys(map(kind_of, mixes)):
                for access_method in ("heap", "rdmacc"):
                    load(box, kind, access_method)
            for mix in mixes:
                compare(box, mix, flags)
        finally:
            box.remove()


if __name__ == "__main__":
    main()
