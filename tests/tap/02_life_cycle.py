#!/usr/bin/env python3
"""Start, stop and restart of the server, and what becomes of rows and shared memory."""

import os
import signal

from harness import (Session, alive, cluster_name, equal, eventually, fails_with, matches,
                     node_pids, run, shm_objects, sqlstate, true, wait_until_up)

CLEAN_STOP_SECONDS_MAX = 5


def not_preloaded(box):
    box.stop()
    box.settings["shared_preload_libraries"] = ""
    box.start()
    try:
        said = fails_with(box, "CREATE TABLE t (id int PRIMARY KEY) USING rdmacc", "55000")
        matches("shared_preload_libraries = 'pg_rdmacc'", said, "hint")
        fails_with(box, "SELECT * FROM rdmacc.stat_nodes", "55000")
        equal(box.psql("SET rdmacc.protocol = 'nowait'; SHOW rdmacc.protocol"), "nowait",
              "settings of the session")
    finally:
        box.stop()
        del box.settings["shared_preload_libraries"]
        box.start()
        wait_until_up(box)


def stop_is_quick_with_open_transactions(box):
    box.psql("CREATE TABLE open_txn (id int PRIMARY KEY, v int) USING rdmacc;"
             "INSERT INTO open_txn SELECT i, 0 FROM generate_series(1, 100) i")
    sessions = [Session(box) for _ in range(3)]
    for number, session in enumerate(sessions):
        session.run(f"BEGIN; UPDATE open_txn SET v = 1 WHERE id = {number + 1};")
    pids, cluster = node_pids(box), cluster_name(box)
    took = box.stop("fast")
    true(took < CLEAN_STOP_SECONDS_MAX, f"the stop took {took:.1f} s")
    true(not any(alive(pid) for pid in pids), "nodes have ended")
    equal(shm_objects(cluster), set(), "shared memory left")
    for session in sessions:
        session.close()
    box.start()
    wait_until_up(box)


def stop_empties_tables_and_says_so(box):
    box.psql("CREATE TABLE emptied (id int PRIMARY KEY, v text) USING rdmacc;"
             "INSERT INTO emptied SELECT i, 'x' FROM generate_series(1, 10) i")
    before = len(box.log_text())
    box.stop()
    box.start()
    wait_until_up(box)
    equal(box.psql("SELECT count(*) FROM emptied"), "0", "rows after a stop")
    box.psql("INSERT INTO emptied VALUES (1, 'again')")
    fails_with(box, "INSERT INTO emptied VALUES (1, 'twice')", "23505")
    equal(box.psql("SELECT * FROM emptied"), "1|again", "the table works")
    eventually(lambda: "WARNING:  rdmacc tables are empty after a stop" in box.log_text()[before:],
               "warning in the server log")


def crash_restart_keeps_rows_and_nodes(box):
    box.psql("CREATE TABLE kept (id int PRIMARY KEY, v int) USING rdmacc;"
             "INSERT INTO kept SELECT i, i FROM generate_series(1, 1000) i")
    pids = node_pids(box)
    session = Session(box)
    os.kill(session.backend(), signal.SIGKILL)
    session.close()
    eventually(lambda: box.psql("SELECT 1") == "1", "the server is up again")
    wait_until_up(box)
    equal(box.psql("SELECT count(*), sum(v) FROM kept"), "1000|500500", "rows")
    equal(node_pids(box), pids, "the same nodes")
    box.psql("UPDATE kept SET v = v + 1")


def supervisor_can_be_replaced(box):
    pids = node_pids(box)
    box.psql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
             " WHERE backend_type = 'rdmacc supervisor'")
    eventually(lambda: box.psql("SELECT count(*) FROM pg_stat_activity WHERE backend_type ="
                                " 'rdmacc supervisor'") == "1", "a new supervisor")
    equal(node_pids(box), pids, "the same nodes")
    equal(box.psql("SELECT count(*) FROM kept"), "1000", "rows")


def databases_can_be_dropped(box):
    box.psql("CREATE DATABASE other")
    box.psql("CREATE EXTENSION rdmacc", "other")
    box.psql("CREATE TABLE t (id int PRIMARY KEY) USING rdmacc; INSERT INTO t VALUES (1)", "other")
    box.psql("DROP DATABASE other", timeout=30)


def postmaster_death_ends_the_nodes(box):
    pids, cluster = node_pids(box), cluster_name(box)
    postmaster = box.postmaster_pid()
    os.kill(postmaster, signal.SIGKILL)
    eventually(lambda: not any(alive(pid) for pid in pids), "nodes have ended", 10)
    eventually(lambda: not shm_objects(cluster), "shared memory is removed", 10)
    # PostgreSQL takes a zombie for a running server until init has reaped it.
    eventually(lambda: not os.path.exists(f"/proc/{postmaster}"), "the postmaster is gone", 60)
    box.start()
    wait_until_up(box)
    equal(box.psql("SELECT count(*) FROM kept"), "0", "rows after the postmaster's death")


def immediate_stop_ends_the_nodes(box):
    pids, cluster = node_pids(box), cluster_name(box)
    box.stop("immediate")
    eventually(lambda: not any(alive(pid) for pid in pids), "nodes have ended", 10)
    eventually(lambda: not shm_objects(cluster), "shared memory is removed", 10)
    box.start()
    wait_until_up(box)


def missing_program_is_reported(box):
    box.stop()
    box.settings["rdmacc.node_program"] = "/nonexistent/rdmacc_node"
    before = len(box.log_text())
    box.start()
    try:
        eventually(lambda: "could not find program" in box.log_text()[before:], "log")
        result = box.psql("SET statement_timeout = '1s'; CREATE TABLE t (i int) USING rdmacc",
                          check=False)
        true(sqlstate(result) in ("57014", "57P03"), f"SQLSTATE: {result.stderr}")
    finally:
        took = box.stop()
        true(took < CLEAN_STOP_SECONDS_MAX, f"the stop took {took:.1f} s")
        del box.settings["rdmacc.node_program"]
        box.start()
        wait_until_up(box)


def memory_is_private(box):
    cluster = cluster_name(box)
    true(shm_objects(cluster), "shared memory objects")
    for name in shm_objects(cluster):
        equal(os.stat("/dev/shm/" + name).st_mode & 0o777, 0o600, name)


run(memory_is_private, not_preloaded, stop_is_quick_with_open_transactions,
    stop_empties_tables_and_says_so, crash_restart_keeps_rows_and_nodes,
    supervisor_can_be_replaced, databases_can_be_dropped, postmaster_death_ends_the_nodes,
    immediate_stop_ends_the_nodes, missing_program_is_reported,
    settings={"rdmacc.nodes": 2, "rdmacc.durability": "memory", "rdmacc.node_memory": "256MB"})
