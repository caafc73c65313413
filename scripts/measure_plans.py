#!/usr/bin/env python3
"""What the plans of pg_rdmacc/ save: the same answers by one plan and by others, side by side in one
run on a throw-away server.

    scripts/measure_plans.py [--fabric shm] [--rows 100000] [--outer 10000] [--rounds 7]

Prints the median time of each, as EXPLAIN ANALYZE has it without timing its nodes, and its ratio to
the first of its kind."""

import argparse
import re
import tempfile

from sandbox import Failure, Sandbox

JOIN = "SELECT count(t.v) FROM o JOIN t ON "
# What is asked, by which settings and in which words; what the plan has to have in it.
KINDS = {
    "join of {outer} rows with {rows} by primary key": [
        ("keys in batches", "", JOIN + "t.id = o.tid", "RdmaccKeyPrefetch"),
        ("key by key", "", JOIN + "t.id = ANY (ARRAY[o.tid])", "Nested Loop"),
        ("hash join", "SET enable_nestloop = off;", JOIN + "t.id = o.tid", "Hash Join"),
    ],
    "aggregates over {rows} rows": [
        ("stream of rows", "", "SELECT count(*), sum(v), max(v) FROM t", "RdmaccRowStream"),
        # An aggregate whose result depends on the order.
        ("scan in order", "", "SELECT count(*), sum(v), max(v), sum(0::float8) FROM t", "Seq Scan"),
        ("filtered stream", "", "SELECT count(*) FROM t WHERE v < 100", "RdmaccRowStream"),
        ("filtered scan", "", "SELECT count(*), sum(0::float8) FROM t WHERE v < 100", "Seq Scan"),
    ],
    "aggregates over a tenth as many rows of 4 KB": [
        ("without the rest", "", "SELECT count(*), sum(v) FROM l WHERE v < 900", "RdmaccRowStream"),
        ("whole rows", "", "SELECT count(*), sum(v), max(length(w)) FROM l WHERE v < 900",
         "RdmaccRowStream"),
    ],
}


def prepare(box, rows, outer):
    box.psql("CREATE EXTENSION rdmacc")
    box.psql("CREATE TABLE t (id int PRIMARY KEY, v int, w text) USING rdmacc;"
             "CREATE TABLE l (id int PRIMARY KEY, v int, w text) USING rdmacc;"
             "CREATE TABLE o (tid int);"
             f"INSERT INTO l SELECT i, i % 1000, repeat('w', 4000) FROM generate_series(1, {rows // 10}) i;"
             f"INSERT INTO t SELECT i, i % 1000, 'text ' || i FROM generate_series(1, {rows}) i;"
             f"INSERT INTO o SELECT 1 + i * 7919::bigint % {rows} FROM generate_series(1, {outer}) i;")
    box.psql("ANALYZE t, l, o")


def milliseconds(box, settings, query, node):
    plan = box.psql(f"{settings} SET jit = off;"
                    f"EXPLAIN (ANALYZE, TIMING OFF) {query}; EXPLAIN (ANALYZE, TIMING OFF) {query}")
    if node not in plan:
        raise Failure(f"{query} is not planned with {node}:\n{plan}")
    return float(re.findall(r"Execution Time: ([\d.]+) ms", plan)[-1])


def measure(box, args):
    for kind, ways in KINDS.items():
        seen = {name: [] for name, *_ in ways}
        for _ in range(args.rounds):
            for name, settings, query, node in ways:
                seen[name].append(milliseconds(box, settings, query, node))
        print(kind.format(outer=f"{args.outer:,}", rows=f"{args.rows:,}"))
        medians = {name: sorted(times)[len(times) // 2] for name, times in seen.items()}
        first = medians[ways[0][0]]
        for name, median in medians.items():
            print(f"  {name:<18}{median:>10.1f} ms{median / first:>8.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--fabric", default="shm", choices=("shm", "tcp"))
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--outer", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rdmacc-plans-") as directory:
        box = Sandbox(directory, settings={"rdmacc.fabric": args.fabric})
        box.create()
        try:
            box.start()
            prepare(box, args.rows, args.outer)
            print(f"fabric {args.fabric}, medians of {args.rounds} runs")
            measure(box, args)
        finally:
            box.stop()


if __name__ == "__main__":
    main()
