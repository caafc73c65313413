#!/usr/bin/env python3
"""pgbench's own scripts on rdmacc tables, and SmallBank, under every protocol; the table of make bench-sql."""

import json
import os
import re
import subprocess
import sys

from harness import equal, matches, protocols, run, true
from sandbox import ROOT
from smallbank import SmallBank

CLIENTS = 8
SECONDS = 1


def initialize(box):
    """As any user does it: the tables are ours by default_table_access_method. The rows come in one
    transaction, too large for the protocol that may be open from before."""
    environment = box.environment()
    environment["PGOPTIONS"] = "-c default_table_access_method=rdmacc -c rdmacc.protocol=occ"
    subprocess.run(box.command("pgbench", "-i", "-q"), env=environment, cwd="/", check=True,
                   capture_output=True, timeout=100)
    equal(box.psql("SELECT string_agg(DISTINCT amname, ',') FROM pg_class c JOIN pg_am a"
                   " ON a.oid = relam WHERE relname LIKE 'pgbench%' AND relkind = 'r'"),
          "rdmacc", "access method")


def run_scripts(box, protocol, *scripts):
    """Committed transactions of each of pgbench's built-in scripts. A machine that stands still for a while
    is given more time."""
    counts, whole = [0] * len(scripts), 0
    for seconds in (SECONDS, 5 * SECONDS, 10 * SECONDS):
        whole += seconds
        counts = [sum(pair) for pair in zip(counts, run_for(box, protocol, seconds, scripts))]
        if min(counts) > 0:
            break
    for script, count in zip(scripts, counts):
        true(count > 0, f"{protocol}: no transaction of {script} got through")
    print(f"  {protocol}: " + ", ".join(f"{count / whole:.0f} {script}/s"
                                        for script, count in zip(scripts, counts)), flush=True)
    return counts


def run_for(box, protocol, seconds, scripts):
    environment = box.environment()
    environment["PGOPTIONS"] = f"-c rdmacc.protocol={protocol}"
    named = [f"--builtin={script}" for script in scripts]
    # One thread: several count the transactions of a script without a lock.
    done = subprocess.run(
        box.command("pgbench", "-n", "-c", str(CLIENTS), "-j", "1", "-T", str(seconds),
                    "--max-tries=200", *named),
        env=environment, cwd="/", text=True, capture_output=True, timeout=100)
    equal(done.returncode, 0, done.stderr[-1000:])
    total = int(re.search(r"actually processed: (\d+)", done.stdout).group(1))
    counts = [int(count) for count in re.findall(r"^ - (\d+) transactions", done.stdout, re.M)]
    counts = counts if len(scripts) > 1 else [total]
    equal((len(counts), sum(counts)), (len(scripts), total), done.stdout)
    return counts


def sums(box):
    """Of accounts, tellers, branches and history, and the history's rows."""
    *amounts, rows = box.psql(
        "SELECT (SELECT sum(abalance) FROM pgbench_accounts),"
        " (SELECT sum(tbalance) FROM pgbench_tellers),"
        " (SELECT sum(bbalance) FROM pgbench_branches),"
        " (SELECT coalesce(sum(delta), 0) FROM pgbench_history),"
        " (SELECT count(*) FROM pgbench_history)").split("|")
    return amounts, int(rows)


def tpcb(box):
    """Four sums agree: every transaction adds one amount to an account, a teller, a branch and
    the history."""
    initialize(box)
    for protocol in protocols(box):
        before = sums(box)[1]
        counts = run_scripts(box, protocol, "tpcb-like")
        amounts, rows = sums(box)
        equal(len(set(amounts)), 1, f"the four sums {amounts} under {protocol}")
        equal(rows - before, counts[0], f"rows of the history under {protocol}")


def all_builtins(box):
    """simple-update leaves tellers and branches alone; select-only writes nothing."""
    initialize(box)
    for protocol in protocols(box):
        before = sums(box)[1]
        counts = run_scripts(box, protocol, "tpcb-like", "simple-update", "select-only")
        (accounts, tellers, branches, history), rows = sums(box)
        equal((accounts, tellers), (history, branches), f"sums under {protocol}")
        equal(rows - before, counts[0] + counts[1], f"rows of the history under {protocol}")


def smallbank(box):
    bank = SmallBank(box, 2000)
    bank.create()
    bank.load()
    for protocol in protocols(box):
        for stages in ("one_sided", "rpc", "lock=rpc,read=one_sided,log=rpc", "auto"):
            result = bank.run(4, 1, protocol, stages)
            true(result["committed_per_second"] > 0, f"{protocol}, {stages}: nothing committed")
            equal(result["failed"], 0, f"{protocol}, {stages}: failed transactions")
            equal(bank.money(), bank.expected_money(), f"money under {protocol}, {stages}")


BENCH_LINES = {"SELECT by primary key, prepared": "1/s", "LIMIT 1": "ms"}


def bench_sql_prints_its_table(box):
    """A line of load, and one of a statement; on a server of its own."""
    path = os.path.join(box.dir, "bench.json")
    done = subprocess.run(
        [sys.executable, os.path.join(ROOT, "scripts/bench_sql.py"), "--rows=1000", "--rounds=1",
         "--seconds=0.2", "--only=^load: SELECT by.*prepared|^all rows: LIMIT", f"--json={path}",
         f"--build={box.build}"], cwd="/", text=True, capture_output=True, timeout=100)
    equal(done.returncode, 0, (done.stdout + done.stderr)[-1500:])
    with open(path, encoding="utf-8") as file:
        lines = json.load(file)["lines"]
    equal({line["name"]: line["unit"] for line in lines}, BENCH_LINES, "lines")
    for line in lines:
        true(line["verdict"] in ("pass", "short"), f"what became of a line: {line}")
        heap, rdmacc = line["heap"][0], line["rdmacc"][0]
        speeds = (heap, rdmacc) if line["unit"] == "ms" else (rdmacc, heap)
        true(abs(line["ratio"] - speeds[0] / speeds[1]) < 1e-6, f"the ratio of speeds: {line}")
        equal(line["verdict"] == "pass", line["ratio"] >= line["target"], f"verdict: {line}")
        matches(re.escape(line["name"]) + r" +[\d,.]+ +[\d,.]+ " + line["unit"]
                + rf" +{line['ratio']:.2f} +[\d.]+-[\d.]+ +[\d.]+  {line['verdict']}\b",
                done.stdout, "a row of the table")


run(tpcb, all_builtins, smallbank, bench_sql_prints_its_table, settings={"rdmacc.nodes": 2, "rdmacc.durability": "memory",
                                             "rdmacc.node_memory": "512MB"})
