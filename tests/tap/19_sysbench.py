#!/usr/bin/env python3
"""sysbench's OLTP workloads as Debian ships them, on rdmacc tables, under every protocol: it finds
its tables by default_table_access_method, and retries serialization failures by itself."""

import re
import subprocess

from harness import equal, protocols, run, true

ROWS = 500
TABLES = 2
THREADS = 4
SECONDS = 1
OPTIONS = ("--db-driver=pgsql", f"--tables={TABLES}", f"--table-size={ROWS}",
           f"--threads={THREADS}", f"--time={SECONDS}", "--pgsql-user=postgres",
           "--pgsql-db=postgres")


def sysbench(box, workload, command, settings):
    environment = box.environment()
    environment["PGOPTIONS"] = " ".join(f"-c {name}={value}" for name, value in settings.items())
    done = subprocess.run(["sysbench", workload, *OPTIONS, f"--pgsql-host={box.socket_dir}",
                           f"--pgsql-port={box.port}", command],
                          env=environment, cwd="/", text=True, capture_output=True, timeout=60)
    equal(done.returncode, 0, f"{workload} {command}: {(done.stdout + done.stderr)[-1500:]}")
    return done.stdout


def check_tables(box, protocol):
    """Each transaction of oltp_read_write deletes a row and inserts it again."""
    for table in range(1, TABLES + 1):
        equal(box.psql(f"SET statement_timeout = '30s'; SELECT count(*), min(id), max(id),"
                       f" count(DISTINCT id) FROM sbtest{table}"),
              f"{ROWS}|1|{ROWS}|{ROWS}", f"rows of sbtest{table} under {protocol}")


def run_workload(box, workload, protocol):
    said = sysbench(box, workload, "run", {"rdmacc.protocol": protocol})
    counts = {name: int(count) for name, count in
              re.findall(r"(transactions|queries|ignored errors):\s+(\d+)", said)}
    true(counts["transactions"] > 0, f"{workload} under {protocol}: no transactions: {said}")
    print(f"  {workload}, {protocol}: {counts['transactions'] / SECONDS:.0f} tps,"
          f" {counts['ignored errors']} conflicts", flush=True)


def oltp(box):
    sysbench(box, "oltp_read_write", "prepare", {"default_table_access_method": "rdmacc"})
    equal(box.psql("SELECT string_agg(DISTINCT amname, ',') FROM pg_class c JOIN pg_am a"
                   " ON a.oid = relam WHERE relname LIKE 'sbtest%' AND relkind = 'r'"),
          "rdmacc", "access method")
    check_tables(box, "prepare")
    for protocol in protocols(box):
        run_workload(box, "oltp_point_select", protocol)
        run_workload(box, "oltp_read_write", protocol)
        check_tables(box, protocol)


run(oltp, settings={"rdmacc.nodes": 2, "rdmacc.node_memory": "256MB"})
