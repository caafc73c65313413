#!/usr/bin/env python3
"""Crashes of everything under load: whatever was acknowledged is there afterwards, at most one
transaction more of each client, and nothing of what a reader was told is lost.

STORM_CYCLES, STORM_SEED and STORM_FSYNC (on) in the environment make it longer, repeat an order of
crashes, and sync to disk."""

import os
import random
import time

import outage
from harness import eventually, protocols, run
from storm import SCHEMA, Client, Reader, check_journal, check_tables, stop_all
from verify import verify

CYCLES = int(os.environ.get("STORM_CYCLES", "4"))
SEED = int(os.environ.get("STORM_SEED", str(random.randrange(1 << 30))))
CLIENTS = 6
READERS = 2
TABLES_LIVE = 6  # cycles; checks of a long journal take long
randomness = random.Random(SEED)
number = 0  # of the cycle


def killed_client(box):
    pids = box.psql("SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'"
                    " AND pid <> pg_backend_pid() AND query LIKE '%accounts%'").split("\n")
    outage.killed_by_pid(box, int(randomness.choice(pids)))


CRASHES = [outage.killed_whole, outage.immediate_stop, killed_client, outage.killed_node,
           outage.killed_checkpointer, outage.killed_supervisor, outage.killed_while_recovering]


def set_up(box):
    print(f"  STORM_SEED={SEED}")
    randomness.shuffle(CRASHES)
    box.psql(SCHEMA)


def start_all(box, settings):
    global number
    number += 1
    if number % TABLES_LIVE == 0:
        box.psql("DROP TABLE accounts, hot, journal, heap_journal;" + SCHEMA)
    clients = [Client(box, number * 100 + i, settings) for i in range(CLIENTS)]
    readers = [Reader(box, settings) for _ in range(READERS)]
    return clients, readers


def wait_for_load(box, clients):
    eventually(lambda: all(client.committed for client in clients), "all clients commit", 30)
    time.sleep(randomness.uniform(0.1, 1))
    if randomness.random() < 0.6:
        box.psql("CHECKPOINT")
        time.sleep(randomness.choice((0, 0.2)))


def check_all(box, clients, readers, what, all_kept=True):
    states = {}
    for client in clients:
        for state, count in client.states.items():
            states[state or "lost"] = states.get(state or "lost", 0) + count
    print(f"  {what}: {sum(len(client.committed) for client in clients)} committed,"
          f" {sum(len(client.unknown) for client in clients)} unknown, failures {states},"
          f" {sum(reader.reads for reader in readers)} reads", flush=True)
    check_journal(box, clients, all_kept)
    check_tables(box)
    verify(box, what, losses=True)
    # Backends whose clients have gone may still be at their last statement.
    eventually(lambda: box.psql("SELECT count(*) FROM rdmacc.locks") == "0", f"{what}: no locks")


def a_crash(box):
    crash = CRASHES[number % len(CRASHES)]
    protocol = randomness.choice([name for name in protocols(box) if name != "calvin"])
    clients, readers = start_all(box, f"SET rdmacc.protocol = {protocol};")
    try:
        wait_for_load(box, clients)
        crash(box)
        outage.wait_for_rows(box)
        before = [len(client.committed) for client in clients]
        eventually(lambda: all(len(client.committed) > count
                               for client, count in zip(clients, before)), "clients go on", 30)
    finally:
        stop_all(clients + readers)
    check_all(box, clients, readers, f"{crash.__name__}, {protocol}")


def asynchronous_commits(box):
    """Lose the last ones, without a gap: a prefix of each client's, and of the hot row's."""
    for protocol in ("occ", "nowait"):
        clients, readers = start_all(box, f"SET rdmacc.protocol = {protocol};"
                                    " SET synchronous_commit = off;")
        try:
            wait_for_load(box, clients)
            outage.kill_everything(box)
        finally:
            stop_all(clients + readers)
        box.start()
        outage.wait_for_rows(box)
        check_all(box, clients, readers, f"asynchronous commits, {protocol}", all_kept=False)


run(set_up, *[a_crash] * CYCLES, asynchronous_commits,
    settings={"rdmacc.nodes": 2, "rdmacc.node_memory": "256MB", "rdmacc.checkpoint_timeout": "5s",
              "fsync": os.environ.get("STORM_FSYNC", "off")})
