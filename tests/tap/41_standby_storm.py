#!/usr/bin/env python3
"""Ends of a standby, of its primary and of each of their processes beside clients of the primary, changes of
their tables' definitions and readers of the standby: what is read there is of one point, and in the end the same
as on the primary.

STANDBY_CYCLES and STANDBY_SEED in the environment make it longer, and repeat an order of ends."""

import os
import random
import signal

import outage
from changes import Changer
from copies import catch_up, standby_of, wait_until_follows
from harness import ask, equal, eventually, node_pids, protocols, run, true
from storm import DIFFERENT_ACCOUNTS, NEW_SCHEMA, SCHEMA, Client, Reader, check_journal, check_tables, stop_all
from verify import verify

CYCLES = int(os.environ.get("STANDBY_CYCLES", "5"))
SEED = int(os.environ.get("STANDBY_SEED", str(random.randrange(1 << 30))))
SETTINGS = {"rdmacc.nodes": 2, "rdmacc.node_memory": "128MB", "rdmacc.checkpoint_timeout": "5s", "fsync": "on"}
TABLES = ("accounts", "hot", "journal", "heap_journal", "parents", "children", "heap_children")
MOST_WAL_HELD = 1 << 20  # bytes that a standby's slot keeps of a primary that writes nothing
randomness = random.Random(SEED)
cycle = 0
standby = None  # of all tests; the last one promotes it


class StandbyReader(Reader):
    """What one session sees only moves on; a server that crashed begins at an earlier point again."""

    explained = 0  # looks at all accounts

    def connect(self):
        self.seen = 0
        return super().connect()

    def step(self):
        super().step()
        if self.session is None:
            return
        said = self.session.run(DIFFERENT_ACCOUNTS + ";")
        if said.isdigit():  # it may have been told of a failure or of the end of the server
            equal(said, "0", "accounts on the standby that its journal does not explain")
            self.explained += 1


def primary_killed(box):
    outage.killed_whole(box)


def primary_stopped(box):
    outage.immediate_stop(box)


def primary_lost_a_node(box):
    outage.killed_node(box, randomness.choice((0, 1)))


def standby_killed(_):
    outage.killed_whole(standby)


def standby_stopped(_):
    randomness.choice((outage.fast_stop, outage.immediate_stop))(standby)


def standby_lost_a_node(_):
    os.kill(randomness.choice(node_pids(standby)), signal.SIGKILL)


def standby_lost_its_applier(_):
    """By a request to end, after which it is started again, or with the whole server."""
    randomness.choice((outage.ended_checkpointer, outage.killed_checkpointer))(standby)


def standby_lost_a_session(_):
    outage.killed_by_pid(standby, int(standby.psql(
        "SELECT max(pid) FROM pg_stat_activity WHERE backend_type = 'client backend'"
        " AND pid <> pg_backend_pid()")))


def standby_checkpointed(box):
    box.psql("CHECKPOINT")
    standby.psql("SELECT rdmacc.checkpoint()")


ENDS = [primary_killed, primary_stopped, primary_lost_a_node, standby_killed, standby_stopped,
        standby_lost_a_node, standby_lost_its_applier, standby_lost_a_session, standby_checkpointed]


def set_up(box):
    global standby
    print(f"  STANDBY_SEED={SEED}")
    randomness.shuffle(ENDS)
    box.psql(SCHEMA)
    standby = standby_of(box, SETTINGS)


def an_end(box):
    """One after the other of ENDS, under a protocol that is drawn."""
    global cycle
    cycle += 1
    end = ENDS[cycle % len(ENDS)]
    box.psql(NEW_SCHEMA)  # checks of a long journal take long
    catch_up(box, standby)
    setting = f"SET rdmacc.protocol = {randomness.choice(protocols(box))};"
    clients = [Client(box, i, setting) for i in range(3)]
    readers = [StandbyReader(standby, "") for _ in range(2)]
    changer = Changer(box, setting)

    def all_go_on(what):
        committed = [len(client.committed) for client in clients]
        reads = [reader.reads for reader in readers]
        eventually(lambda: all(len(client.committed) > n for client, n in zip(clients, committed)) and
                   all(reader.reads > n for reader, n in zip(readers, reads)), f"{end.__name__}: {what}", 60)

    try:
        all_go_on("clients and readers begin")
        end(box)
        outage.wait_for_rows(box)
        eventually(lambda: standby.psql("SELECT 1") == "1", "the standby is up")
        wait_until_follows(standby)
        all_go_on("clients and readers go on")
    finally:
        stop_all([*clients, *readers, changer])
    print(f"  {end.__name__}, {setting[:-1]}: {sum(len(client.committed) for client in clients)} committed,"
          f" {changer.done} changes, {sum(reader.reads for reader in readers)} reads", flush=True)
    true(all(reader.explained for reader in readers), "all accounts were looked at")
    check_journal(box, clients, all_kept=True)
    catch_up(box, standby)
    for table in TABLES:
        all_rows = f"SELECT count(*), md5(string_agg(t::text, ',' ORDER BY t::text)) FROM {table} AS t"
        equal(ask(standby, all_rows), ask(box, all_rows), f"{end.__name__}: {table}")
    verify(standby, f"the standby after {end.__name__}")


def wal_is_let_go(box):
    standby_checkpointed(box)
    catch_up(box, standby)
    standby.psql("SELECT rdmacc.checkpoint()")
    eventually(lambda: int(standby.psql(
        "SELECT pg_last_wal_replay_lsn() - restart_lsn FROM pg_replication_slots"
        " WHERE slot_name = 'rdmacc'")) < MOST_WAL_HELD, "the slot lets WAL go")


def promotion(box):
    outage.kill_everything(box)
    standby.run("pg_ctl", "-D", standby.data, "-w", "-t", "30", "promote", check=True)
    outage.wait_for_rows(standby)
    check_tables(standby)
    verify(standby, "the promoted standby")


run(set_up, *[an_end] * CYCLES, wal_is_let_go, promotion, settings=SETTINGS)
