#!/usr/bin/env python3
"""The server over tcp: with nodes of its own, and as front end of nodes that others run."""

import os
import re
import signal
import stat
import subprocess
import time

from harness import (Session, alive, check_money, equal, eventually, fails_with,
                     kill_a_client_backend, matches, node_pids, retried, run, shm_objects, sqlstate,
                     true, wait_until_up)
from operated_nodes import OperatedNodes
from sandbox import Failure, Sandbox
from smallbank import SmallBank

CUSTOMERS = 1000
CLIENTS = 4
PROTOCOLS = ("occ", "nowait")
FOLDER = "pgsql_tmp_rdmacc"
CLUSTER = f"tap_{os.getpid()}"
OWN = {"rdmacc.fabric": "tcp", "rdmacc.nodes": 2, "rdmacc.node_memory": "128MB",
       "rdmacc.max_workers": 40}


def own_objects():
    return shm_objects("rdmacc.tcp.pg_") - before_us


def load(box, protocol, seconds, stages="one_sided"):
    return SmallBank(box, CUSTOMERS).start(CLIENTS, seconds, protocol, stages)


def check_bank(box):
    check_money(SmallBank(box, CUSTOMERS))


def native_drivers_run_there(box):
    told = box.psql("CREATE EXTENSION IF NOT EXISTS rdmacc_workloads;"
                    "SELECT r->>'fabric', r->>'nodes', r->>'invariant', (r->>'committed')::int > 0"
                    " FROM rdmacc.bench_report('smallbank', 'occ', duration => '0.5 s',"
                    "                          settings => 'records=500') r")
    equal(told.splitlines()[-1], "tcp|2|ok|t", "a run of a native driver")


# ---- Nodes of the server's own

def money_is_kept_under_two_protocols(box):
    wait_until_up(box)
    equal(box.psql("SHOW rdmacc.fabric"), "tcp", "fabric")
    bank = SmallBank(box, CUSTOMERS)
    bank.create()
    bank.load()
    for protocol in PROTOCOLS:
        for stages in ("one_sided", "rpc"):
            under_load = load(box, protocol, 1, stages)
            output = under_load.communicate(timeout=60)[0]
            equal(under_load.returncode, 0, output[-1000:])
            committed = int(re.search(r"actually processed: (\d+)", output).group(1))
            true(committed > 0, f"{protocol}, {stages}: nothing committed")
            print(f"  {protocol}, {stages}: {committed}/s")
            check_bank(box)
    native_drivers_run_there(box)


def files_of_the_cluster_are_private(box):
    folder = os.path.join(box.data, FOLDER)
    equal(stat.S_IMODE(os.stat(folder).st_mode), 0o700, "mode of the folder")
    for name in ("config", "secret"):
        equal(stat.S_IMODE(os.stat(os.path.join(folder, name)).st_mode), 0o600, name)
    with open(os.path.join(folder, "config")) as file:
        addresses = re.search(r"nodes = (.*)", file.read()).group(1).split(", ")
    true(all(address.startswith("127.0.0.1:") for address in addresses), f"{addresses}")
    equal(box.psql("SELECT host || ':' || port FROM rdmacc.stat_nodes ORDER BY node").split("\n"),
          addresses, "addresses shown")


def a_node_and_a_backend_may_be_killed(box):
    for node in (1, 0):
        under_load = load(box, "occ", 3)
        time.sleep(1)
        os.kill(node_pids(box)[node], signal.SIGKILL)
        under_load.communicate(timeout=60)
        wait_until_up(box)
        check_bank(box)
    pids = node_pids(box)
    under_load = load(box, "nowait", 2)
    time.sleep(1)
    kill_a_client_backend(box)
    under_load.communicate(timeout=60)
    eventually(lambda: box.psql("SELECT 1") == "1", "the server is up again")
    wait_until_up(box)
    true(not set(node_pids(box)) & set(pids), "nodes are made anew from what is on disk")
    check_bank(box)


def a_stop_leaves_rows_alone(box):
    true(own_objects(), "there is shared memory")
    for mode in ("fast", "immediate"):
        pids = node_pids(box)
        session = Session(box)
        session.run("BEGIN; UPDATE savings SET bal = bal + 1 WHERE custid = 1;")
        box.stop(mode)
        session.close()
        eventually(lambda: not any(alive(pid) for pid in pids), f"{mode}: nodes have ended")
        eventually(lambda: not own_objects(), f"{mode}: shared memory is removed")
        if mode == "fast":
            true(not os.path.exists(os.path.join(box.data, FOLDER)), "the folder is removed")
        box.start()
        wait_until_up(box)
        check_bank(box)  # rows are on disk


# ---- Nodes that others run

def remote(box, state="remote"):
    return box.psql("SELECT count(*) FROM rdmacc.stat_nodes"
                    f" WHERE state = '{state}' AND pid IS NULL") == "2"


def a_front_end_of_other_nodes(box):
    global nodes
    box.psql("CREATE TABLE earlier (id int PRIMARY KEY) USING rdmacc;"
             "INSERT INTO earlier VALUES (1)")
    box.stop()
    nodes = OperatedNodes(box, CLUSTER)
    nodes.start(0, 1)
    box.settings = nodes.settings()
    box.start()
    eventually(lambda: remote(box), "both nodes are seen")
    equal(box.psql("SELECT host || ':' || port, rows IS NOT NULL FROM rdmacc.stat_nodes"
                   " ORDER BY node").split("\n"), [f"{address}|t" for address in nodes.addresses],
          "nodes shown")
    equal(box.psql("SHOW rdmacc.nodes"), "2", "number of nodes")
    box.psql("CREATE TABLE front (id int PRIMARY KEY, v int) USING rdmacc;"
             "INSERT INTO front SELECT i, i FROM generate_series(1, 1000) i")
    equal(box.psql("SELECT count(*), sum(v) FROM front"), "1000|500500", "rows")
    equal(box.psql("SELECT count(*) FROM earlier"), "0", "rows that its own nodes had")
    native_drivers_run_there(box)


def a_stop_of_the_front_end_keeps_rows(box):
    box.stop()
    true(all(process.poll() is None for process in nodes.processes), "nodes go on")
    box.start()
    equal(box.psql("SELECT count(*), sum(v) FROM front"), "1000|500500", "rows")
    supervisor = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'rdmacc supervisor'"
    before = box.psql(supervisor)
    box.psql(f"SELECT pg_terminate_backend({before})")
    eventually(lambda: box.psql(supervisor) not in ("", before), "a new supervisor")
    eventually(lambda: remote(box), "both nodes are seen")
    equal(box.psql("SELECT count(*), sum(v) FROM front"), "1000|500500", "rows")


def another_server_has_tables_of_its_own(box):
    other = Sandbox(os.path.join(box.dir, "other"), settings=nodes.settings(), build=box.build)
    try:
        other.create()
        other.start()
        other.psql("CREATE EXTENSION rdmacc; CREATE TABLE front (id int PRIMARY KEY, v int)"
                   " USING rdmacc; INSERT INTO front VALUES (1, -1), (5000, -5)")
        equal(other.psql("SELECT count(*), sum(v) FROM front"), "2|-6", "rows of the other")
        equal(box.psql("SELECT count(*), sum(v) FROM front"), "1000|500500", "rows")
        other.psql("DROP TABLE front")
    finally:
        other.remove()
    equal(box.psql("SELECT count(*), sum(v) FROM front"), "1000|500500", "rows")


def a_node_that_is_away_is_an_error(box):
    session = Session(box)
    session.run("SELECT count(*) FROM front;")
    nodes.end(1, by=signal.SIGKILL)
    eventually(lambda: box.psql("SELECT state FROM rdmacc.stat_nodes WHERE node = 1") == "away",
               "the node is seen to be away")
    said = fails_with(box, "UPDATE front SET v = v", "57P03")
    matches("not reachable", said, "message")
    matches("Away: node 1 \\(127.0.0.1:", said, "detail")
    # A wait for the node ends when it is told to.
    result = box.psql("SET statement_timeout = '1s'; UPDATE front SET v = v", check=False)
    equal(sqlstate(result), "57014", f"statement_timeout: {result.stderr}")
    nodes.start(1)
    eventually(lambda: remote(box), "it is back")
    retried(box, "UPDATE front SET v = v")
    equal(box.psql("SELECT count(*), sum(v) FROM front"), "1000|500500", "rows")
    eventually(lambda: session.run("SELECT count(*) FROM front;") == "1000", "the older session")
    session.close()


def a_node_that_lost_its_memory_alone(box):
    nodes.end(1)
    nodes.forget("node1")
    nodes.start(1)
    eventually(lambda: remote(box), "both nodes are seen")
    # Half of the rows are gone: no statement that needs them may pass for complete.
    said = fails_with(box, "SELECT count(*) FROM front", "55000")
    matches("TRUNCATE the table", said, "hint")
    box.psql("TRUNCATE front; INSERT INTO front SELECT i, i FROM generate_series(1, 1000) i")
    equal(box.psql("SELECT count(*), sum(v) FROM front"), "1000|500500", "rows")


def nodes_that_lost_their_memory(box):
    before = len(box.log_text())
    session = Session(box)
    session.run("SELECT count(*) FROM front;")
    nodes.remove()
    nodes.start(0, 1)
    eventually(lambda: remote(box), "both nodes are seen")
    equal(retried(box, "SELECT count(*) FROM front").stdout.strip(), "0", "rows")
    box.psql("INSERT INTO front VALUES (1, 1)")
    fails_with(box, "INSERT INTO front VALUES (1, 2)", "23505")
    eventually(lambda: session.run("SELECT count(*) FROM front;") == "1", "an older session")
    session.close()
    eventually(lambda: "WARNING:  rdmacc tables are empty after a stop" in box.log_text()[before:],
               "warning in the server log")


def refused_at_first_use(box):
    for name, value, words in (
            ("rdmacc.node_memory", "256MB", "memory_mb = 256 in a cluster with 128"),
            ("rdmacc.max_workers", 41, "workers_max = 41 in a cluster with 40"),
            ("rdmacc.node_threads", 2, "threads_per_node = 2 in a cluster with 1"),
            ("rdmacc.cluster_secret_file", os.path.join(nodes.folder, "guess"),
             "another secret, cluster name")):
        nodes.write(os.path.join(nodes.folder, "guess"), os.urandom(24).hex())
        box.stop()
        box.settings = {**nodes.settings(), name: value}
        box.start()
        # A process that shows no key is not told that it is the key.
        state = "08004" if " in a cluster with " in words else "57P03"
        matches(words, fails_with(box, "SELECT count(*) FROM front", state), name)


def refused_at_the_start(box):
    box.stop()
    nodes.write(os.path.join(nodes.folder, "open"), os.urandom(24).hex(), "644")
    nodes.write(os.path.join(nodes.folder, "short"), "secret")
    for changes, words in (
            ({"rdmacc.fabric": "shm"}, "must not be shm when rdmacc.cluster is set"),
            ({"rdmacc.fabric": "pigeon"}, "Available values: shm, tcp"),
            ({"rdmacc.cluster": "nowhere"}, "is not host:port"),
            ({"rdmacc.nodes": 3}, "rdmacc.cluster names 2 nodes"),
            ({"rdmacc.cluster_secret_file": ""}, "needs rdmacc.cluster_secret_file"),
            ({"rdmacc.cluster_secret_file": "/nonexistent/secret"}, "cannot be opened"),
            ({"rdmacc.cluster_secret_file": os.path.join(nodes.folder, "open")}, "mode 0600"),
            ({"rdmacc.cluster_secret_file": os.path.join(nodes.folder, "short")}, "less than 32"),
            ({"rdmacc.cluster": ""}, "rdmacc.cluster is not")):
        before = len(box.log_text())
        box.settings = {**nodes.settings(), **changes}
        try:
            box.start()
            started = True
        except Failure:
            started = False
        true(not started, f"{changes} must end the start")
        matches(words, box.log_text()[before:], str(changes))
    nodes.remove()


def rows_on_the_nodes_own_disks(box):
    """The nodes are killed and lose their memory; the server goes on."""
    with open(nodes.config, encoding="ascii") as file:
        config = file.read()
    nodes.write(nodes.config, config + "durability = disk\ndata_dir = rows\n")
    box.make_private(os.path.join(nodes.folder, "rows"))
    nodes.start(0, 1)
    box.settings = nodes.settings()
    box.start()
    eventually(lambda: remote(box), "both nodes are seen")
    others = box.psql("SELECT string_agg(c.oid::regclass::text, ', ') FROM pg_class c JOIN pg_am a ON a.oid = relam"
                      " WHERE amname = 'rdmacc' AND relkind = 'r'")
    box.psql(f"DROP TABLE {others};"  # of other clusters
             "CREATE TABLE kept (id int PRIMARY KEY, v text) USING rdmacc;"
             "INSERT INTO kept SELECT i, repeat('x', i) FROM generate_series(1, 500) i;"
             "UPDATE kept SET v = 'y' WHERE id % 3 = 0; DELETE FROM kept WHERE id % 5 = 0;"
             "CREATE TABLE made USING rdmacc AS SELECT id FROM kept;"
             "CREATE INDEX ON kept (v); CREATE TABLE gone (id int PRIMARY KEY) USING rdmacc;"
             "INSERT INTO gone VALUES (1); DROP TABLE gone")
    look = ("SELECT count(*), sum(id), sum(length(v)), (SELECT count(*) FROM made),"
            " (SELECT count(*) FROM kept WHERE v = 'y') FROM kept")
    before = box.psql(look)
    for lost in ((0, 1), (0, 1), (1,), (0,)):  # where one has lost its memory, the other gives its own up
        nodes.end(*lost, by=signal.SIGKILL)
        for number in lost:
            nodes.forget_memory_of(number)
        nodes.start(*lost)
        eventually(lambda: remote(box), "both nodes are seen")
        eventually(lambda: box.psql(look) == before, f"rows {before}")
        box.psql("INSERT INTO kept VALUES (1000, ''); DELETE FROM kept WHERE id = 1000")
    rows_of_both_kinds(box)
    box.stop()
    nodes.remove()


def rows_of_both_kinds(box):
    """PostgreSQL's commit record decides; the nodes ask for it when they have lost their memory."""
    before = len(box.log_text())
    box.psql("BEGIN; CREATE TABLE plain (id int PRIMARY KEY, v text) USING heap;"
             "INSERT INTO plain VALUES (0, 'x'); INSERT INTO kept VALUES (0, 'x'); COMMIT")
    sums = "SELECT (SELECT string_agg(id || v, ',' ORDER BY id) FROM {} WHERE id <= 0)"
    rows = sums.format("kept") + "," + sums.format("plain")[len("SELECT "):]
    expected = ["0x"]
    for number, point in enumerate(("prepared", "recorded"), 1):
        seen = box.log_text().count("stands still")
        session = Session(box)
        session.run(f"SET rdmacc.debug_stop_at = {point};")
        backend = session.backend()
        session.send(f"BEGIN; INSERT INTO kept VALUES (-{number}, 'y'); INSERT INTO plain VALUES (-{number}, 'y');"
                     " COMMIT;")
        eventually(lambda: box.log_text().count("stands still") > seen, f"the session is at {point}")
        nodes.end(0, 1, by=signal.SIGKILL)
        nodes.forget()
        os.kill(backend, signal.SIGKILL)
        session.process.wait(timeout=20)
        nodes.start(0, 1)
        eventually(lambda: box.psql("SELECT 1") == "1", "the server is up again")
        eventually(lambda: remote(box), "both nodes are seen")
        if point == "recorded":
            expected = [f"-{number}y", *expected]  # of the lowest id
        told = "|".join([",".join(expected)] * 2)
        eventually(lambda: box.psql(rows) == told, f"rows {told} after a kill when {point}")
        equal(box.psql("SELECT count(*) FROM rdmacc.in_doubt"), "0", "transactions in doubt")
    matches("1 transactions were prepared when memory was lost", nodes.log_text(0), "the log of node 0")
    box.psql("DELETE FROM kept WHERE id <= 0; DROP TABLE plain")
    true("tables are empty after a stop" not in box.log_text()[before:], "a warning of rows that are there")


nodes = None
before_us = shm_objects("rdmacc.tcp.pg_")
try:
    run(money_is_kept_under_two_protocols, files_of_the_cluster_are_private,
        a_node_and_a_backend_may_be_killed, a_stop_leaves_rows_alone, a_front_end_of_other_nodes,
        a_stop_of_the_front_end_keeps_rows, another_server_has_tables_of_its_own,
        a_node_that_is_away_is_an_error,
        a_node_that_lost_its_memory_alone, nodes_that_lost_their_memory, refused_at_first_use,
        refused_at_the_start, rows_on_the_nodes_own_disks, settings=OWN)
finally:
    if nodes is not None:
        nodes.remove()
