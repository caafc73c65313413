#!/usr/bin/env python3
"""make compare: SmallBank, YCSB, TATP, TPC-C and TPC-E on heaps and on rdmacc tables, in SQL as statements,
PL/pgSQL and native functions, and natively by rdmacc.bench() within the server and by rdmacc_bench without
one, in turns, as one page for a browser.

    scripts/compare.py [--seconds 3] [--rounds 3] [--clients 8] [--protocols nowait,occ,mvcc]
                       [--output build/compare/compare.html] [WORKLOAD …]

Beside the page are the runs as JSON (engine/report/README.md), of each way the one with the median of
committed transactions a second."""

import argparse
import json
import os
import subprocess
import sys
import tempfile

import pgbench_log
from sandbox import ROOT, Failure, Sandbox
from workload_bench import SERIALIZABLE, load, measure
from workload_mixes import check, kind_of, paths_of

BIN = os.path.join(ROOT, "build/release/bin")
# The mix in SQL, and settings of the native drivers: KINDS of workload_bench has the sizes.
WORKLOADS = {
    "smallbank": ("smallbank", "records=100000"),
    "ycsb": ("ycsb", "records=100000,operations=10,writes=20,record-bytes=1000"),
    "tatp": ("tatp", "records=100000"),
    "tpcc": ("tpcc-papers", "warehouses=4"),
    "tpce": ("tpce", "records=5000"),
}
NODE_MEMORY_MB = 4000  # reserved, and taken as it is needed
PATHS = {"plain": "statements", "plpgsql": "PL/pgSQL", "native": "native functions"}
WITHIN = "rdmacc.bench()"
NATIVE = "rdmacc_bench"


class Way:
    """One way to run a workload. `path` is workload_mixes', WITHIN or NATIVE."""

    def __init__(self, workload, path, access_method, setting, name):
        self.workload = workload
        self.path = path
        self.access_method = access_method
        self.setting = setting
        self.name = name
        self.runs = []

    def run_once(self, box, flags):
        if self.path == NATIVE:
            return self._run_natively(flags)
        if self.path == WITHIN:
            return self._run_within(box, flags)
        mix = WORKLOADS[self.workload][0]
        with tempfile.TemporaryDirectory(prefix="rdmacc-log-") as folder:
            os.chmod(folder, 0o777)  # pgbench runs as the server's user
            rate, cost_us = measure(box, mix, (self.path, self.access_method, self.setting),
                                    flags.clients, flags.seconds, pgbench_log.options(folder))
            logged = pgbench_log.summary(folder, flags.seconds)
        return {"committed_per_second": rate, "session_cpu_us": cost_us,
                "committed": round(rate * flags.seconds), "seconds": flags.seconds, **logged}

    def _run_natively(self, flags):
        settings = [f"--{setting}" for setting in WORKLOADS[self.workload][1].split(",")]
        command = [os.path.join(BIN, "rdmacc_bench"), self.workload, *settings,
                   f"--protocol={self.setting}", "-j1", f"-c{flags.clients}", f"-T{flags.seconds}",
                   f"--memory={NODE_MEMORY_MB}", "-P0", "--format=json"]
        done = subprocess.run(command, text=True, capture_output=True, timeout=600)
        if not done.stdout.strip():
            raise Failure(f"{' '.join(command)}: {done.stderr[-1000:]}")
        return json.loads(done.stdout)

    def _run_within(self, box, flags):
        return json.loads(box.psql(
            f"SELECT rdmacc.bench_report('{self.workload}', '{self.setting}',"
            f" duration => '{flags.seconds} s', coroutines => {flags.clients},"
            f" settings => '{WORKLOADS[self.workload][1]}')"))

    def median(self):
        run = sorted(self.runs, key=lambda run: run["committed_per_second"])[len(self.runs) // 2]
        return {**run, "workload": self.workload, "name": self.name}


def ways_of(workload, protocols):
    paths = paths_of(WORKLOADS[workload][0])
    for path in paths:
        if path != "native":
            for setting, level in (("", "READ COMMITTED"), (SERIALIZABLE, "SERIALIZABLE")):
                yield Way(workload, path, "heap", setting, f"heap, {PATHS[path]}, {level}")
    for path in paths:
        for protocol in protocols:
            yield Way(workload, path, "rdmacc", f"rdmacc.protocol={protocol}",
                      f"rdmacc, {PATHS[path]}, {protocol}")
    for path, where in ((WITHIN, "within the server"), (NATIVE, "without SQL")):
        for protocol in protocols:
            yield Way(workload, path, "rdmacc", protocol, f"{path}, {where}, {protocol}")


def say(text, end="\n"):
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end=end, file=sys.stderr, flush=True)
    else:
        print(text, file=sys.stderr, flush=True)


def measure_all(box, ways, flags):
    """Each way once in a round, every other round backwards: a slow moment meets all of them."""
    for turn in range(flags.rounds):
        for number, way in enumerate(ways if turn % 2 == 0 else reversed(ways)):
            say(f"round {turn + 1} of {flags.rounds}, {number + 1} of {len(ways)}: "
                f"{way.workload}, {way.name}", end="")
            way.runs.append(way.run_once(box, flags))
    say(f"{flags.rounds} rounds of {len(ways)} ways")


def check_all(box, workloads, runs):
    """What rdmacc's tables must keep. Heaps at READ COMMITTED do not."""
    for workload in workloads:
        kind = kind_of(WORKLOADS[workload][0])
        violated = check(box, kind, f"{kind}_rdmacc")
        for run in runs:
            if run["workload"] == workload and run["name"].startswith("rdmacc,"):
                run["invariant"] = violated.replace("\n", "; ") or "ok"


def show(runs, workloads):
    for workload in workloads:
        of_workload = [run for run in runs if run["workload"] == workload]
        base = of_workload[0]["committed_per_second"]
        print(f"{workload}: committed/s, ratio to {of_workload[0]['name']}")
        for run in of_workload:
            rate = run["committed_per_second"]
            print(f"  {run['name']:42} {rate:10,.0f} {rate / base:8.2f}")


def write_page(runs, output):
    os.makedirs(os.path.dirname(os.path.abspath(output)), exist_ok=True)
    source = os.path.splitext(output)[0] + ".json"
    with open(source, "w") as file:
        json.dump(runs, file, indent=1)
    subprocess.run([os.path.join(BIN, "rdmacc_report"), source, "-o", output, "--title",
                    "pg_rdmacc beside heap"], check=True, timeout=60)
    print(f"{output}: the page; {source}: its runs")


def start_loaded(box, workloads):
    box.create()
    box.start()
    box.psql("SET client_min_messages = warning; CREATE EXTENSION rdmacc_workloads CASCADE")
    for kind in (kind_of(WORKLOADS[workload][0]) for workload in workloads):
        for access_method in ("heap", "rdmacc"):
            say(f"loading {kind}, {access_method}", end="")
            load(box, kind, access_method)


def main():
    parser = argparse.ArgumentParser(description="heaps, rdmacc tables and rdmacc_bench as a page")
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--protocols", default="nowait,occ,mvcc")
    parser.add_argument("--output", default=os.path.join(ROOT, "build/compare/compare.html"))
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=", ".join(WORKLOADS))
    flags = parser.parse_args()
    workloads = list(dict.fromkeys(flags.workloads)) or list(WORKLOADS)
    for workload in workloads:
        if workload not in WORKLOADS:
            parser.error(f"{workload} is not one of {', '.join(WORKLOADS)}")
    ways = [way for workload in workloads for way in ways_of(workload, flags.protocols.split(","))]
    with tempfile.TemporaryDirectory(prefix="rdmacc-compare-") as directory:
        box = Sandbox(directory, settings={"rdmacc.nodes": 2, "max_wal_size": "4GB",
                                           "rdmacc.node_memory": f"{NODE_MEMORY_MB}MB"})
        try:
            start_loaded(box, workloads)
            version = box.psql("SHOW server_version")
            measure_all(box, ways, flags)
            runs = [way.median() for way in ways]
            check_all(box, workloads, runs)
        finally:
            box.remove()
    host = next((run["host"] for run in runs if run.get("host")), None)
    command = " ".join(["scripts/compare.py", *sys.argv[1:]])
    for run in runs:
        run["host"] = run.get("host") or host
        run["command"] = f"{command}  (PostgreSQL {version}, {flags.clients} clients or coroutines)"
    show(runs, workloads)
    write_page(runs, flags.output)
    return 0 if all(run.get("invariant", "ok") == "ok" for run in runs) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        sys.exit(f"compare: {failure}")
