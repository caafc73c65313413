#!/usr/bin/env python3
"""Processes killed under load: no money is lost, no lock is left, nothing hangs."""

import os
import random
import signal
import time

from harness import (Session, check_money, equal, eventually, kill_a_client_backend, matches,
                     node_pids, run, true, wait_until_up)
from smallbank import SmallBank
from verify import verify

CUSTOMERS = 2000
CLIENTS = 4
LOAD_SECONDS = 4
PROTOCOLS = ("nowait", "occ")


def load_under(box, protocol, seconds):
    return SmallBank(box, CUSTOMERS).start(CLIENTS, seconds, protocol)


def check_bank(box, protocol):
    check_money(SmallBank(box, CUSTOMERS), protocol)
    equal(box.psql("SELECT (SELECT count(*) FROM accounts), (SELECT count(*) FROM savings),"
                   " (SELECT count(*) FROM checking)"), "|".join([str(CUSTOMERS)] * 3), "rows")


def set_up(box):
    bank = SmallBank(box, CUSTOMERS)
    bank.create()
    bank.load()
    check_bank(box, "occ")


def killed_backends(box):
    for protocol in PROTOCOLS:
        for _ in range(2):
            load = load_under(box, protocol, LOAD_SECONDS)
            time.sleep(1 + random.random())
            kill_a_client_backend(box)
            load.communicate(timeout=60)
            eventually(lambda: box.psql("SELECT 1") == "1", "the server is up again")
            wait_until_up(box)
            check_bank(box, protocol)
            verify(box, protocol, losses=True)


def killed_nodes(box):
    restarts = "SELECT sum(restarts) FROM rdmacc.stat_nodes"
    for number, protocol in enumerate(PROTOCOLS):
        for node in (0, 1):
            before = int(box.psql(restarts))
            load = load_under(box, protocol, LOAD_SECONDS)
            time.sleep(1 + random.random())
            os.kill(node_pids(box)[node], signal.SIGKILL)
            # A transaction under way may fail; no client may hang.
            load.communicate(timeout=60)
            wait_until_up(box)
            true(int(box.psql(restarts)) > before, "the node was started again")
            check_bank(box, protocol)
            verify(box, protocol, losses=True)


def stopped_node_only_delays(box):
    load = load_under(box, "occ", LOAD_SECONDS)
    time.sleep(1)
    pid = node_pids(box)[1]
    os.kill(pid, signal.SIGSTOP)
    time.sleep(1)
    os.kill(pid, signal.SIGCONT)
    output = load.communicate(timeout=60)[0]
    equal(load.returncode, 0, output[-1000:])
    check_bank(box, "occ")


def cancels_end_beside_a_stopped_node(box):
    """Whatever a node does, or does not do: what a timeout, a cancel or a termination ends has ended
    long before the 30 s for which a session waits for a node by itself."""
    names = ("timeout", "cancel", "terminate", "commit", "view")
    touch = {name: f"UPDATE savings SET bal = bal WHERE custid BETWEEN {100 * i + 1} AND {100 * i + 99};"
             for i, name in enumerate(names)}
    sessions = {name: Session(box) for name in names}
    pids = {name: session.backend() for name, session in sessions.items()}
    for name, session in sessions.items():
        session.run("SET rdmacc.protocol = nowait; SET rdmacc.stages = 'rpc';" + touch[name])
    sessions["commit"].run("BEGIN;" + touch["commit"])
    stopped = node_pids(box)[1]
    watcher = Session(box)
    os.kill(stopped, signal.SIGSTOP)
    try:
        sessions["timeout"].send("SET statement_timeout = '500ms';" + touch["timeout"])
        sessions["view"].send("SET statement_timeout = '500ms'; SELECT * FROM rdmacc.stat_nodes;")
        sessions["cancel"].send(touch["cancel"])
        sessions["terminate"].send(touch["terminate"])
        sessions["commit"].send("COMMIT;")
        time.sleep(1)
        for name, how in (("cancel", "cancel"), ("commit", "cancel"), ("terminate", "terminate")):
            equal(watcher.run(f"SELECT pg_{how}_backend({pids[name]});"), "t", how)
        gone = f"SELECT count(*) FROM pg_stat_activity WHERE pid = {pids['terminate']};"
        eventually(lambda: watcher.run(gone) == "0", "the terminated session is gone", 10)
        busy = ("SELECT count(*) FROM pg_stat_activity WHERE state <> 'idle' AND pid IN"
                f" ({', '.join(str(pid) for pid in pids.values())});")
        eventually(lambda: watcher.run(busy) == "0", "all statements have ended", 10)
    finally:
        os.kill(stopped, signal.SIGCONT)
    for name in ("timeout", "cancel"):
        matches("57014", sessions[name].result(), name)
    matches("08007|57014|40001", sessions["commit"].result(), "commit")
    for session in sessions.values():
        session.close()
    eventually(lambda: check_bank(box, "nowait") or True, "no lock is left", 60)
    verify(box, "nowait", losses=True)


def views_do_not_wait_for_a_stopped_node(box):
    columns = ("SELECT node, state, pid = {pid}, rows IS NULL, requests IS NULL, region_bytes IS NULL"
               " FROM rdmacc.stat_nodes WHERE node = 1;")
    used = Session(box)  # a session that has asked before, and one that has not
    used.run("SET statement_timeout = '20s'; SELECT * FROM rdmacc.stat_nodes;")
    stopped = node_pids(box)[1]
    fresh = Session(box)
    fresh.run("SET statement_timeout = '20s';")
    os.kill(stopped, signal.SIGSTOP)
    try:
        for session in (used, fresh, used):
            equal(session.run(columns.format(pid=stopped)), "1|not answering|t|t|t|t", "the node")
        equal(used.run("SELECT state, rows IS NOT NULL FROM rdmacc.stat_nodes WHERE node = 0;"),
              "running|t", "the other one")
        used.run("BEGIN; UPDATE savings SET bal = bal WHERE custid = 1;")
        matches("node 1 does not tell its locks", used.run("SELECT count(*) FROM rdmacc.locks;"),
                "locks")
        for _ in range(6):  # questions that are left unanswered do not add up
            used.run("SELECT count(*) FROM rdmacc.stat_nodes;")
    finally:
        os.kill(stopped, signal.SIGCONT)
    # What was not answered has done the transaction no harm.
    equal(used.run("ROLLBACK;"), "", "the transaction")
    eventually(lambda: used.run("SELECT string_agg(state, ' '), count(rows) FROM rdmacc.stat_nodes;")
               == "running running|2", "the node answers again")
    for session in (used, fresh):
        session.close()
    check_bank(box, "occ")


def clients_that_vanish_leave_no_lock(box):
    for protocol in PROTOCOLS:
        session = Session(box)
        session.run(f"SET rdmacc.protocol = {protocol};")
        session.run("BEGIN; UPDATE savings SET bal = bal + 1 WHERE custid <= 100;")
        session.process.kill()
        session.process.wait()
        eventually(lambda: box.psql("SELECT count(*) FROM pg_stat_activity WHERE state ="
                                    " 'idle in transaction'") == "0", "the backend has ended")
        check_bank(box, protocol)


run(set_up, killed_backends, killed_nodes, stopped_node_only_delays, cancels_end_beside_a_stopped_node,
    views_do_not_wait_for_a_stopped_node, clients_that_vanish_leave_no_lock,
    settings={"rdmacc.nodes": 2, "rdmacc.node_memory": "256MB"})
