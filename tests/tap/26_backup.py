#!/usr/bin/env python3
"""Copies of a server under load: base backups, recoveries to a time and to a named point. They have
the rows that were committed, and rdmacc rows agree with heap rows."""

import contextlib
import os
import shutil
import subprocess
import threading
import time

import outage
from copies import base_backup, copy_of
from harness import Session, ask, equal, eventually, run, sqlstate, true
from sandbox import Failure
from storm import SCHEMA, Client, check_journal, check_tables, stop_all
from verify import verify

SETTINGS = {"rdmacc.nodes": 2, "rdmacc.node_memory": "128MB", "fsync": "on",
            "rdmacc.checkpoint_timeout": "5s", "wal_sender_timeout": "10s"}
SETTLED_ROWS = 20000  # in a table that is copied while others change
clients_made = 0  # their numbers are used once


def set_up(box):
    box.psql(SCHEMA)
    box.psql("CREATE TABLE settled (id int PRIMARY KEY, note text) USING rdmacc;"
             "INSERT INTO settled SELECT i, md5(i::text)"
             f" FROM generate_series(1, {SETTLED_ROWS}) AS i")


@contextlib.contextmanager
def load(box, protocol="occ"):
    """Clients at work; they have stopped afterwards."""
    global clients_made
    clients_made += 10
    clients = [Client(box, clients_made + i, f"SET rdmacc.protocol = {protocol};")
               for i in range(3)]
    try:
        eventually(lambda: all(client.committed for client in clients), "all clients commit", 30)
        yield clients
    finally:
        stop_all(clients)


def acknowledged(clients):
    return {client.number: len(client.committed) for client in clients}


def check_copy(other, clients, before, what):
    """What was acknowledged before it was begun is in it, and nothing that was not sent."""
    check_tables(other)
    equal(ask(other, "SELECT count(*), count(DISTINCT note) FROM settled"),
          f"{SETTLED_ROWS}|{SETTLED_ROWS}", f"{what}: settled rows")
    for client in clients:
        here = int(ask(other, "SELECT coalesce(max(n), 0) FROM journal"
                              f" WHERE client = {client.number}"))
        true(here >= client.committed[before[client.number] - 1],
             f"{what}: {here} of client {client.number}")
    check_journal(other, clients, all_kept=False)
    verify(other, what)
    eventually(lambda: other.psql("SELECT count(*) FROM rdmacc.locks") == "0", f"{what}: no locks")


def check_alive(other, what):
    """It takes new rows, and keeps all over a crash."""
    with load(other) as clients:
        time.sleep(0.3)
    outage.killed_whole(other)
    outage.wait_for_rows(other)
    check_journal(other, clients, all_kept=True)
    check_tables(other)
    verify(other, what)


def base_backup_under_load(box):
    with copy_of(box, SETTINGS, "backup") as other:
        with load(box) as clients:
            before = acknowledged(clients)
            checkpoints = threading.Thread(target=lambda: [
                (time.sleep(0.3), box.psql("CHECKPOINT")) for _ in range(6)])
            checkpoints.start()
            base_backup(box, other, "--max-rate=16M")
            checkpoints.join(60)
            time.sleep(0.2)
        other.start()
        outage.wait_for_rows(other)
        check_copy(other, clients, before, "a base backup")
        check_alive(other, "a base backup")
        check_tables(box)


def backup_by_functions(box):
    """Files are copied one by one between pg_backup_start() and pg_backup_stop()."""
    with copy_of(box, SETTINGS, "copied", restore_command=f"cp {box.data}/pg_wal/%f %p") as other:
        with load(box, "nowait") as clients:
            before = acknowledged(clients)
            session = Session(box)
            session.run("SELECT pg_backup_start('copied', true);")
            copy_files(box, other)
            label = session.run("SELECT labelfile FROM pg_backup_stop(false);")
            true("START WAL LOCATION" in label, f"the label: {label}")
            session.close()
        box.psql("SELECT pg_switch_wal()")
        other.write_as_server("backup_label", label + "\n")
        other.write_as_server("recovery.signal", "")
        other.start()
        eventually(lambda: other.psql("SELECT pg_is_in_recovery()") == "f", "recovery ends")
        outage.wait_for_rows(other)
        check_copy(other, clients, before, "a copy")


def copy_files(box, other):
    """With checkpoints between them; those of rows first, so that newer ones come in between."""
    names = sorted(os.listdir(box.data), key=lambda name: (name != "pg_rdmacc", name))
    for name in names:
        if name in ("pg_wal", "postmaster.pid", "postmaster.opts", "pg_replslot"):
            continue
        subprocess.run(box.as_server_user(["cp", "-a", os.path.join(box.data, name), other.data]),
                       check=False, stderr=subprocess.DEVNULL, cwd="/")
        if name in ("pg_rdmacc", "base"):
            box.psql("CHECKPOINT")
    for folder in ("pg_wal/archive_status", "pg_replslot"):
        subprocess.run(box.as_server_user(["mkdir", "-p", os.path.join(other.data, folder)]),
                       check=True, cwd="/")


def copy_without_its_rows(box):
    """One that lacks the folder shows no empty tables."""
    with copy_of(box, SETTINGS, "partial") as other:
        base_backup(box, other)
        shutil.rmtree(os.path.join(other.data, "pg_rdmacc"))
        try:
            other.start()
        except Failure:
            return  # that is as good
        result = other.psql("SET statement_timeout = '3s'; SELECT count(*) FROM settled",
                            check=False)
        true(sqlstate(result) in ("57014", "57P03"), f"rows without their files: {result}")


def recovery_to_a_time(box):
    """Where rdmacc rows alone are written: exact but for the first second in which rows are written
    after that time."""
    with copy_of(box, SETTINGS, "time", restore_command=f"cp {box.data}/pg_wal/%f %p",
                 recovery_target_action="promote") as other:
        base_backup(box, other)
        box.psql("CREATE TABLE times (name text PRIMARY KEY) USING rdmacc")
        box.psql("INSERT INTO times VALUES ('before')")
        time.sleep(2)
        other.settings["recovery_target_time"] = box.psql("SELECT now()")
        for name in ("within", "after"):
            box.psql(f"INSERT INTO times VALUES ('{name}')")
            time.sleep(2)
        box.psql("SELECT pg_switch_wal()")
        other.write_as_server("recovery.signal", "")
        other.start()
        eventually(lambda: other.psql("SELECT pg_is_in_recovery()") == "f", "recovery ends")
        outage.wait_for_rows(other)
        equal(ask(other, "SELECT string_agg(name, ' ') FROM times WHERE name <> 'within'"),
              "before", "rows")


def recovery_to_a_named_point(box):
    box.psql("CREATE TABLE IF NOT EXISTS points (name text PRIMARY KEY) USING rdmacc")
    with copy_of(box, SETTINGS, "point", restore_command=f"cp {box.data}/pg_wal/%f %p",
                 recovery_target_name="here", recovery_target_action="promote") as other:
        base_backup(box, other)
        with load(box, "mvcc") as clients:
            time.sleep(0.3)
            before = acknowledged(clients)
            box.psql("INSERT INTO points VALUES ('before')")
            box.psql("SELECT pg_create_restore_point('here')")
            box.psql("INSERT INTO points VALUES ('after'); CHECKPOINT")
            time.sleep(0.3)
        box.psql("SELECT pg_switch_wal()")
        other.write_as_server("recovery.signal", "")
        other.start()
        eventually(lambda: other.psql("SELECT pg_is_in_recovery()") == "f", "recovery ends")
        outage.wait_for_rows(other)
        equal(ask(other, "SELECT string_agg(name, ' ') FROM points"), "before", "points")
        check_copy(other, clients, before, "a named point")


run(set_up, base_backup_under_load, backup_by_functions, copy_without_its_rows,
    recovery_to_a_time, recovery_to_a_named_point, settings=SETTINGS)
