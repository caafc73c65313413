#!/usr/bin/env python3
"""Definitions change while clients write and read the same tables, under every protocol; and while the
server, its processes and nodes end.

CHANGES_CYCLES and CHANGES_SEED in the environment make it longer, and repeat an order of ends."""

import contextlib
import os
import random
import time

import outage
from changes import LOST, Changer
from harness import eventually, run, true
from protocol_list import WITHOUT_ORDER
from storm import NEW_SCHEMA, SCHEMA, Client, Reader, check_journal, check_tables, stop_all
from verify import verify

CYCLES = int(os.environ.get("CHANGES_CYCLES", "3"))
SEED = int(os.environ.get("CHANGES_SEED", str(random.randrange(1 << 30))))
SECONDS = 1.5
randomness = random.Random(SEED)
KILLS = [kill for kill in outage.kills(randomness) if kill is not outage.killed_parallel_worker]
cycle = 0


def set_up(box):
    print(f"  CHANGES_SEED={SEED}")
    randomness.shuffle(KILLS)
    box.psql(SCHEMA)


@contextlib.contextmanager
def storm(box, setting, access_method="rdmacc"):
    """Its clients and changers, at work."""
    box.psql(NEW_SCHEMA.replace("USING rdmacc", f"USING {access_method}"))
    clients = [Client(box, number, setting) for number in range(4)]
    changers = [Changer(box, setting, access_method) for _ in range(2)]
    readers = [Reader(box, setting)] if access_method == "rdmacc" else []
    try:
        eventually(lambda: all(client.committed for client in clients) and
                   all(reader.reads for reader in readers) and
                   all(changer.done for changer in changers), f"{setting} all get on", 60)
        yield clients, changers, readers
    finally:
        stop_all(clients + changers + readers)


def tell(what, clients, changers, readers):
    print(f"  {what}: {sum(len(client.committed) for client in clients)} committed, "
          f"{sum(changer.done for changer in changers)} changes, {sum(changer.lost for changer in changers)} lost, "
          f"{sum(reader.reads for reader in readers)} reads", flush=True)


def check(box, what, clients, changers, readers, losses=False):
    tell(what, clients, changers, readers)
    check_journal(box, clients, all_kept=True)
    check_tables(box)
    verify(box, what, losses=losses)
    eventually(lambda: box.psql("SELECT count(*) FROM rdmacc.locks") == "0", f"{what}: no locks")


def on_heaps(box):
    """How much of it PostgreSQL's own tables do. What they come to is not judged: SERIALIZABLE knows nothing of
    a table that is dropped for another one, and shows that one empty to a transaction that began before."""
    with storm(box, "SET default_transaction_isolation = serializable;", "heap") as workers:
        time.sleep(SECONDS)
    tell("heap", *workers)


def under(protocol):
    def test(box):
        """Nothing that waits stands in the way of what it waits for: no client runs into a timeout."""
        with storm(box, f"SET rdmacc.protocol = {protocol};") as workers:
            time.sleep(SECONDS)
        check(box, protocol, *workers)
        for client in workers[0]:
            told = set(client.states) - {"23503", *LOST}
            true(not told and not client.unknown, f"{protocol}: clients were told {told}")

    test.__name__ = f"under_{protocol}"
    return test


def an_end(box):
    global cycle
    cycle += 1
    kill = KILLS[cycle % len(KILLS)]
    protocol = randomness.choice(WITHOUT_ORDER)
    with storm(box, f"SET rdmacc.protocol = {protocol};") as workers:
        time.sleep(randomness.uniform(0, SECONDS))
        kill(box)
        outage.wait_for_rows(box)
        before = [len(client.committed) for client in workers[0]]
        eventually(lambda: all(len(client.committed) > count for client, count in zip(workers[0], before)),
                   "clients go on", 30)
    check(box, f"{kill.__name__}, {protocol}", *workers, losses=True)


run(set_up, on_heaps, *map(under, WITHOUT_ORDER), *[an_end] * CYCLES,
    settings={"rdmacc.nodes": 2, "rdmacc.node_memory": "256MB", "rdmacc.checkpoint_timeout": "5s",
              "max_worker_processes": 24})
