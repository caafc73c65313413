#!/usr/bin/env python3
"""Processes killed under load: no money is lost, no lock is left, nothing hangs."""

import os
import random
import signal
import subprocess
import time

from harness import Session, equal, eventually, node_pids, run, true, wait_until_up
from smallbank import SmallBank

CUSTOMERS = 2000
CLIENTS = 4
LOAD_SECONDS = 4
PROTOCOLS = ("nowait", "occ")


def load_under(box, protocol, seconds):
    environment = box.environment()
    environment["PGOPTIONS"] = f"-c rdmacc.protocol={protocol}"
    return subprocess.Popen(SmallBank(box, CUSTOMERS).command(CLIENTS, seconds), cwd="/",
                            env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            text=True)


def no_lock_is_left(box, protocol):
    """Writes every row once: that needs every lock."""
    box.psql(f"SET rdmacc.protocol = {protocol}; SET statement_timeout = '60s';"
             "UPDATE savings SET bal = bal; UPDATE checking SET bal = bal")


def check_money(box):
    bank = SmallBank(box, CUSTOMERS)
    equal(bank.money(), bank.expected_money(), "money")
    equal(box.psql("SELECT (SELECT count(*) FROM accounts), (SELECT count(*) FROM savings),"
                   " (SELECT count(*) FROM checking)"), "|".join([str(CUSTOMERS)] * 3), "rows")


def set_up(box):
    bank = SmallBank(box, CUSTOMERS)
    bank.create()
    bank.load()
    check_money(box)


def killed_backends(box):
    for protocol in PROTOCOLS:
        for _ in range(2):
            load = load_under(box, protocol, LOAD_SECONDS)
            time.sleep(1 + random.random())
            backends = box.psql("SELECT pid FROM pg_stat_activity WHERE application_name ="
                                " 'pgbench'").split("\n")
            os.kill(int(random.choice(backends)), signal.SIGKILL)
            load.communicate(timeout=60)
            eventually(lambda: box.psql("SELECT 1") == "1", "the server is up again")
            wait_until_up(box)
            no_lock_is_left(box, protocol)
            check_money(box)


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
            no_lock_is_left(box, protocol)
            check_money(box)


def stopped_node_only_delays(box):
    load = load_under(box, "occ", LOAD_SECONDS)
    time.sleep(1)
    pid = node_pids(box)[1]
    os.kill(pid, signal.SIGSTOP)
    time.sleep(1)
    os.kill(pid, signal.SIGCONT)
    output = load.communicate(timeout=60)[0]
    equal(load.returncode, 0, output[-1000:])
    check_money(box)


def clients_that_vanish_leave_no_lock(box):
    for protocol in PROTOCOLS:
        session = Session(box)
        session.run(f"SET rdmacc.protocol = {protocol};")
        session.run("BEGIN; UPDATE savings SET bal = bal + 1 WHERE custid <= 100;")
        session.process.kill()
        session.process.wait()
        eventually(lambda: box.psql("SELECT count(*) FROM pg_stat_activity WHERE state ="
                                    " 'idle in transaction'") == "0", "the backend has ended")
        no_lock_is_left(box, protocol)
        check_money(box)


run(set_up, killed_backends, killed_nodes, stopped_node_only_delays,
    clients_that_vanish_leave_no_lock,
    settings={"rdmacc.nodes": 2, "rdmacc.node_memory": "256MB"})
