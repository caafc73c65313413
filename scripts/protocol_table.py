#!/usr/bin/env python3
"""The protocols on equal terms: lines, verbs, instructions and rates of each.

    make protocol-table ARGS='[--seconds 2] [--rounds 5] [--protocols nowait,occ] [--write]'

One YCSB transaction is RCBench's: 10 operations, 20 % of them updates, Zipf 0.2, two nodes, all stages one-sided.
Its verbs are counted in the simulator, with one coroutine, most places of rows known: the same in every run. RCBench's
sigma is beside them (its Table 4). Instructions are those of docs/ledger.tsv (`make ledger`). Rates are of runs on
shared memory with uniform keys, in turns; what is printed are medians of the ratios to NOWAIT and to OCC, which is
Silo's protocol (docs/protocols.md), of the same round, and the least and the largest. --write puts the table into
docs/protocols.md."""

import argparse
import csv
import glob
import json
import os
import statistics
import subprocess
import sys

from protocol_list import PROTOCOLS, ROOT

BENCH = os.path.join(ROOT, "build/release/bin/rdmacc_bench")
BOOK = os.path.join(ROOT, "docs/ledger.tsv")
PAGE = os.path.join(ROOT, "docs/protocols.md")
BEGIN, END = "<!-- protocol-table -->", "<!-- end of protocol-table -->"
COUNTED = ("ycsb", "--fabric=sim", "--records=2000", "--zipf=0.2", "-c1", "-t3000", "--nodes=2")
TIMED = ("ycsb", "--records=100000", "--nodes=2")
TIMEOUT_S = 120
# RCBench's Table 4: verbs for each transaction of its one-sided versions. Its OCC is Silo, its T/O is TIMESTAMP.
RCBENCH = {"nowait": 23.5, "waitdie": 30.2, "woundwait": 31.2, "timestamp": 25.4, "mvcc": 22.8,
           "occ": 17.7, "cicada": 32.2, "maat": 51.3}
HEADING = ("protocol", "lines", "READ", "WRITE", "CAS, FAA", "messages", "σ", "RCBench's σ", "rounds",
           "instructions", "of NOWAIT's rate", "of OCC's rate")
BASES = ("nowait", "occ")


def run(protocol, *options):
    printed = subprocess.run([BENCH, *options, f"--protocol={protocol}", "--format=json", "-P0",
                              "--check=workload"], text=True, capture_output=True,
                             timeout=TIMEOUT_S, check=False)
    if printed.returncode != 0:
        sys.exit(f"rdmacc_bench {' '.join(options)} --protocol={protocol}: {printed.stderr.strip()}")
    return json.loads(printed.stdout)


def lines_of(protocol):
    """Of its file, and of the folder of its own if it has one."""
    paths = [os.path.join(ROOT, f"engine/protocols/{protocol}.cc"),
             *glob.glob(os.path.join(ROOT, f"engine/protocols/{protocol}/*.cc")),
             *glob.glob(os.path.join(ROOT, f"engine/protocols/{protocol}/*.h"))]
    total = 0
    for path in paths:
        with open(path, encoding="utf-8") as file:
            total += sum(1 for _ in file)
    return total


def instructions():
    with open(BOOK, encoding="utf-8") as file:
        return {row["protocol"]: int(row["instructions"]) for row in csv.DictReader(file, delimiter="\t")
                if row["workload"] == "ycsb" and row["stages"] == "one_sided"}


def measure_rates(protocols, rounds, seconds):
    """Of each round: committed a second by protocol."""
    measured = []
    for number in range(rounds):
        rates = {}
        for protocol in protocols:
            print(f"round {number + 1} of {rounds}: {protocol}", file=sys.stderr, flush=True)
            rates[protocol] = run(protocol, *TIMED, f"-T{seconds}")["committed_per_second"]
        measured.append(rates)
    return measured


def ratio_text(measured, protocol, base):
    if protocol == base:
        return "1"
    ratios = [rates[protocol] / rates[base] for rates in measured]
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})"


def row_of(protocol, counted, noted, measured):
    verbs = counted["per_transaction"]
    return (protocol.upper(), str(lines_of(protocol)),
            *(f"{verbs[kind]:.1f}" for kind in ("reads", "writes", "atomics", "messages")),
            f"{counted['verbs_per_transaction']:.1f}", str(RCBENCH.get(protocol, "")),
            f"{verbs['round_trips']:.1f}",
            f"{noted[protocol] / 1000:.1f} K" if protocol in noted else "",
            *(ratio_text(measured, protocol, base) for base in BASES))


def markdown(rows):
    lines = ["| " + " | ".join(HEADING) + " |", "|" + " --- |" * len(HEADING)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def write(table):
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        sys.exit(f"{PAGE} has no place for the table")
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(f"{before}{BEGIN}\n\n{table}\n{END}{after}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--protocols", default=",".join(PROTOCOLS), help="nowait and occ are among them")
    parser.add_argument("--write", action="store_true", help="put the table into docs/protocols.md")
    given = parser.parse_args()
    protocols = given.protocols.split(",")
    missing = set(BASES) - set(protocols) or set(protocols) - set(PROTOCOLS)
    if missing or given.rounds < 1:
        parser.error(f"--protocols: {', '.join(sorted(missing))}" if missing else "--rounds: at least 1")
    counted = {}
    for protocol in protocols:
        print(f"verbs: {protocol}", file=sys.stderr, flush=True)
        counted[protocol] = run(protocol, *COUNTED)
    measured = measure_rates(protocols, given.rounds, given.seconds)
    noted = instructions()
    table = markdown([row_of(protocol, counted[protocol], noted, measured) for protocol in protocols])
    print(table, end="")
    if given.write:
        write(table)


if __name__ == "__main__":
    main()
