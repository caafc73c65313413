#!/usr/bin/env python3
"""pgbench's own TPC-B-like workload on rdmacc tables, and SmallBank, under every protocol."""

import re
import subprocess

from harness import equal, run, true
from smallbank import SmallBank

CLIENTS = 8
SECONDS = 2


def protocols(box):
    return box.psql("SELECT unnest(enumvals) FROM pg_settings"
                    " WHERE name = 'rdmacc.protocol'").split("\n")


def tpcb(box):
    """Four sums agree: every transaction adds one amount to an account, a teller, a branch and
    the history."""
    environment = box.environment()
    environment["PGOPTIONS"] = "-c default_table_access_method=rdmacc"
    subprocess.run(box.command("pgbench", "-i", "-q"), env=environment, cwd="/", check=True,
                   capture_output=True, timeout=100)
    equal(box.psql("SELECT string_agg(DISTINCT amname, ',') FROM pg_class c JOIN pg_am a"
                   " ON a.oid = relam WHERE relname LIKE 'pgbench%' AND relkind = 'r'"),
          "rdmacc", "access method")
    for protocol in protocols(box):
        environment["PGOPTIONS"] = f"-c rdmacc.protocol={protocol}"
        done = subprocess.run(
            box.command("pgbench", "-n", "-c", str(CLIENTS), "-j", "2", "-T", str(SECONDS),
                        "--max-tries=200"),
            env=environment, cwd="/", text=True, capture_output=True, timeout=100)
        equal(done.returncode, 0, done.stderr[-1000:])
        processed = int(re.search(r"actually processed: (\d+)", done.stdout).group(1))
        true(processed > 0, "transactions processed")
        print(f"  {protocol}: {processed / SECONDS:.0f} tps")
        sums = box.psql("SELECT (SELECT sum(abalance) FROM pgbench_accounts),"
                        " (SELECT sum(tbalance) FROM pgbench_tellers),"
                        " (SELECT sum(bbalance) FROM pgbench_branches),"
                        " (SELECT sum(delta) FROM pgbench_history)").split("|")
        equal(len(set(sums)), 1, f"the four sums {sums} under {protocol}")


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


run(tpcb, smallbank, settings={"rdmacc.nodes": 2, "rdmacc.node_memory": "512MB"})
