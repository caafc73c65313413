#!/usr/bin/env python3
"""The native drivers from SQL, rdmacc.bench() and its like: under every protocol, beside SQL, and whatever
ends a run before its time, its tables go."""

import os
import signal

from harness import (Session, cluster_name, equal, eventually, fails_with, matches, node_pids, run,
                     wait_until_up)

SMALL = {"smallbank": "records=1000", "ycsb": "records=1000,operations=4",
         "tpcc": "warehouses=1,items=100,customers=10,full-mix=1", "tatp": "records=500",
         "tpce": "records=100"}
LONG = "rdmacc.bench('ycsb', duration => '1 h', settings => 'records=1000')"


def tables(box):
    """-1: the server does not say."""
    told = box.psql("SELECT sum(tables) FROM rdmacc.stat_nodes", check=False)
    return int(told.stdout) if told.returncode == 0 and told.stdout.strip() else -1


def bench_pids(box):
    """Processes of this server's runs, by what they were told its cluster is."""
    cluster = f"--cluster={cluster_name(box)}"
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().decode(errors="replace").split("\0")
        except OSError:
            continue
        if words[0] == "rdmacc_bench" and cluster in words:
            found.append(int(pid))
    return found


def every_protocol(box):
    box.psql("CREATE EXTENSION rdmacc_workloads")
    wait_until_up(box)
    before = tables(box)
    offered = box.psql("SELECT unnest(enumvals) FROM pg_settings WHERE name = 'rdmacc.protocol'")
    for protocol in offered.split("\n"):
        for workload, settings in SMALL.items():
            rows = box.psql(f"SELECT second, committed > 0, latency_p99_us >= latency_p50_us"
                            f" FROM rdmacc.bench('{workload}', '{protocol}', duration => '0.2 s',"
                            f" settings => '{settings}')")
            equal(rows, "1|t|t", f"{workload} under {protocol}")
    equal(tables(box), before, "tables after the runs")


def a_report(box):
    """What rdmacc_bench prints; what the session has set is what is run."""
    told = box.psql(
        "SET rdmacc.protocol = sundial; SET rdmacc.stages = rpc;"
        " SELECT r->>'protocol', r->>'stages', r->>'threads', r->>'seed', r->'settings'->>'records',"
        " jsonb_array_length(r->'timeline'), r->>'invariant',"
        " (SELECT sum((s->>'committed')::bigint) FROM jsonb_array_elements(r->'timeline') s)"
        "   = (r->>'committed')::bigint"
        " FROM rdmacc.bench_report('smallbank', duration => '1.2 s', threads => 2, seed => 7,"
        "                          settings => 'records=500') r")
    equal(told.splitlines()[-1], "sundial|0|2|7|500|2|ok|t", "the report")


def presets(box):
    """What is given beside a preset wins; the session's settings do not."""
    shown = ("r->>'protocol', r->>'lock_mode', r->>'invariant'"
             " FROM rdmacc.bench_report('smallbank', duration => '0.2 s', settings => 'records=500'")
    set_up = "SET rdmacc.protocol = mvcc; SET rdmacc.lock_mode = shared; SELECT "
    for preset, more, expected in (
            (None, "", "mvcc|exclusive|ok"), ("farm", "", "occ|exclusive|ok"),
            ("farm", ", protocol => 'nowait', lock_mode => 'shared'", "nowait|shared|ok")):
        given = f", preset => '{preset}'" if preset else ""
        equal(box.psql(f"{set_up}{shown}{given}{more}) r").splitlines()[-1], expected,
              f"preset {preset}{more}")
    equal(box.psql("SELECT count(*) > 1 FROM rdmacc.enumerate('smallbank', preset => 'farm',"
                   " duration => '0.01 s', settings => 'records=500')"), "t", "its codes")
    for preset in ("none such", "help"):
        fails_with(box, f"SELECT rdmacc.bench('ycsb', preset => '{preset}')", "22023")


def all_codes(box):
    ranked = box.psql("SELECT count(*), min(rank), max(rank), count(DISTINCT stages),"
                      " bool_and(committed_per_second > 0), max(over_one_sided) FILTER (WHERE stages = 29),"
                      " string_agg(by_rpc, '') FILTER (WHERE stages = 28)"
                      " FROM rdmacc.enumerate('smallbank', 'nowait', duration => '0.1 s',"
                      " settings => 'records=1000')")
    equal(ranked, "16|1|16|16|t|1|lock", "the hybrid codes of NOWAIT")


def beside_sql(box):
    """Sessions and a run of the same protocol do not wait for each other."""
    box.psql("CREATE TABLE beside (id int PRIMARY KEY, v int) USING rdmacc")
    session = Session(box)
    try:
        session.send("SELECT sum(committed) > 0 FROM rdmacc.bench('ycsb', 'occ', duration => '2 s',"
                     " settings => 'records=1000');")
        for i in range(20):
            box.psql(f"INSERT INTO beside VALUES ({i}, {i})")
        matches("t", session.result(), "what the run gives")
    finally:
        session.close()
    equal(box.psql("SELECT count(*), sum(v) FROM beside"), "20|190", "rows beside the run")


def refused(box):
    for call, state in (("bench('no_such')", "22023"), ("bench('limits')", "22023"),
                        ("bench('--help')", "22023"), ("bench(NULL)", "22004"),
                        ("bench('ycsb', protocol => 'none')", "22023"),
                        ("bench('ycsb', protocol => 'occ,mvcc')", "22023"),
                        ("bench('ycsb', stages => '')", "22023"),
                        ("bench('ycsb', stages => '512')", "22023"),
                        ("bench('ycsb', settings => 'config=1')", "22023"),
                        ("bench('ycsb', settings => 'records=x')", "22023"),
                        ("bench('ycsb', threads => 0)", "22023"),
                        ("bench('ycsb', threads => 256)", "22023"),  # more than worker ids
                        ("bench('ycsb', duration => '-1 s')", "22023"),
                        ("enumerate('ycsb', duration => NULL)", "22004")):
        fails_with(box, f"SELECT * FROM rdmacc.{call}", state)
    fails_with(box, f"BEGIN; SELECT count(*) FROM beside; SELECT * FROM {LONG}", "25001")
    box.psql("CREATE ROLE bystander")
    fails_with(box, f"SET ROLE bystander; SELECT * FROM {LONG}", "42501")


def cancelled(box):
    before = tables(box)
    fails_with(box, f"SET statement_timeout = '1 s'; SELECT * FROM {LONG}", "57014")
    equal(bench_pids(box), [], "processes of a run that was cancelled")
    eventually(lambda: tables(box) == before, "its tables are gone")


def cancelled_beside_a_stopped_node(box):
    before = tables(box)
    stopped = node_pids(box)[-1]
    session = Session(box)
    try:
        session.send(f"SET statement_timeout = '3 s'; SELECT * FROM {LONG};")
        eventually(lambda: bench_pids(box) and tables(box) > before, "the run has begun")
        os.kill(stopped, signal.SIGSTOP)
        matches("statement timeout", session.result(), "what the session is told")
    finally:
        os.kill(stopped, signal.SIGCONT)
        session.close()
    equal(bench_pids(box), [], "processes of a run that was cancelled")
    eventually(lambda: tables(box) == before, "its tables are gone", seconds=60)


def killed(box):
    before = tables(box)
    session = Session(box)
    try:
        session.send(f"SELECT * FROM {LONG};")
        eventually(lambda: bench_pids(box) and tables(box) > before, "the run has begun")
        for pid in bench_pids(box):
            os.kill(pid, signal.SIGKILL)
        matches("was ended by signal 9", session.result(), "what the session is told")
    finally:
        session.close()
    eventually(lambda: tables(box) == before, "its tables are gone", seconds=60)


def session_killed(box):
    """The program ends with its session, and the server starts again as after any such crash."""
    before = tables(box)
    session = Session(box)
    try:
        backend = int(session.run("SELECT pg_backend_pid();"))
        session.send(f"SELECT * FROM {LONG};")
        eventually(lambda: bench_pids(box) and tables(box) > before, "the run has begun")
        os.kill(backend, signal.SIGKILL)
        eventually(lambda: not bench_pids(box), "the program has ended")
    finally:
        session.close()
    eventually(lambda: tables(box) == before, "the server is back, and its tables are gone",
               seconds=60)


run(every_protocol, a_report, presets, all_codes, beside_sql, refused, cancelled,
    cancelled_beside_a_stopped_node, killed, session_killed, settings={"rdmacc.nodes": 2})
