#!/usr/bin/env python3
"""Transactions over rdmacc tables and others, with sessions killed between the phases of their
commit and under load: both kinds of rows change, or neither."""

import os
import signal
import time

from harness import (Session, equal, eventually, fails_with, kill_a_client_backend, matches, run,
                     true, wait_until_up)
from protocol_list import WITHOUT_ORDER as PROTOCOLS
from transfers import INITIAL, check_total, set_up, start_transfers

GTID = "SELECT gtid FROM rdmacc.in_doubt"


def kill_at(box, point, protocol, statements):
    """A session that stands still in its commit is killed; the server starts anew."""
    seen = box.log_text().count("stands still")
    session = Session(box)
    session.run(f"SET rdmacc.protocol = {protocol}; SET rdmacc.debug_stop_at = {point};")
    backend = session.backend()
    session.send(f"BEGIN; {statements} COMMIT;")
    eventually(lambda: box.log_text().count("stands still") > seen, f"the session is at {point}")
    os.kill(backend, signal.SIGKILL)
    session.process.wait(timeout=20)
    eventually(lambda: box.psql("SELECT 1") == "1", "the server is up again")
    wait_until_up(box)


def killed_between_the_phases(box):
    for number, protocol in enumerate(PROTOCOLS):
        for point in ("prepared", "recorded"):
            row = 2 * number + (1 if point == "prepared" else 2)
            kill_at(box, point, protocol,
                    f"UPDATE ours SET v = v - 7 WHERE id = {row}; DELETE FROM ours WHERE id = -1;"
                    f"INSERT INTO ours VALUES ({100 + row}, 0);"
                    f"UPDATE heap SET v = v + 7 WHERE id = {row};")
            check_total(box)
            committed = point == "recorded"
            equal(box.psql(f"SELECT o.v, h.v, (SELECT count(*) FROM ours WHERE id = {100 + row})"
                           f" FROM ours o JOIN heap h USING (id) WHERE id = {row}"),
                  "993|1007|1" if committed else "1000|1000|0", f"{protocol}, killed when {point}")
    matches("was in doubt: it is committed", box.log_text(), "the server log")
    matches("was in doubt: it is aborted", box.log_text(), "the server log")


def killed_with_catalog_changes(box):
    box.psql("CREATE TABLE other (id int) USING rdmacc; INSERT INTO other VALUES (1)")
    for point, there in (("prepared", "f"), ("recorded", "t")):
        kill_at(box, point, "occ",
                "CREATE TABLE made (id int PRIMARY KEY) USING rdmacc;"
                "INSERT INTO made SELECT generate_series(1, 5);"
                "UPDATE ours SET v = v WHERE id = 1; TRUNCATE other;"
                "INSERT INTO other VALUES (2), (3);")
        check_total(box)
        equal(box.psql("SELECT to_regclass('made') IS NOT NULL"), there, "the new table is there")
        equal(box.psql("SELECT count(*), sum(id) FROM other"), "2|5" if there == "t" else "1|1",
              "rows of the truncated table")
    equal(box.psql("SELECT count(*), sum(id) FROM made"), "5|15", "rows of the new table")


def tables_in_engine(box):
    return int(box.psql("SELECT max(tables) FROM rdmacc.stat_nodes"))


def resolver_has_ended(box):
    return box.psql("SELECT count(*) FROM pg_stat_activity"
                    " WHERE backend_type LIKE 'rdmacc resolver'") == "0"


def tables_follow_the_catalog(box):
    """What a crash, or DROP DATABASE, leaves in the nodes goes; what is in use stays."""
    eventually(lambda: resolver_has_ended(box), "what crashes before have left is dropped")
    before = tables_in_engine(box)
    box.psql("CREATE DATABASE other_one")
    box.psql("CREATE EXTENSION rdmacc; CREATE TABLE kept (id int PRIMARY KEY) USING rdmacc;"
             "INSERT INTO kept VALUES (1)", "other_one")
    made = tables_in_engine(box)
    true(made > before, "a table more")
    kill_at(box, "prepared", "occ", "CREATE TABLE lost (id int PRIMARY KEY) USING rdmacc;"
                                    "INSERT INTO lost VALUES (1);")
    eventually(lambda: "which no catalog knows" in box.log_text(), "the lost table was noticed")
    eventually(lambda: tables_in_engine(box) == made, "the lost table is dropped")
    equal(box.psql("SELECT count(*) FROM kept", "other_one"), "1", "rows of another database")
    check_total(box)
    box.psql("DROP DATABASE other_one")
    eventually(lambda: tables_in_engine(box) == before, "the database's tables are dropped")
    check_total(box)


def crashes_under_load(box):
    for protocol in PROTOCOLS:
        load = start_transfers(box, protocol)
        time.sleep(1)
        kill_a_client_backend(box)
        output = load.communicate(timeout=60)[0]
        eventually(lambda: box.psql("SELECT 1") == "1", "the server is up again")
        wait_until_up(box)
        check_total(box)
        matches("server process|connection", output, "what pgbench says of the crash")


def transfers_without_crashes(box):
    for protocol in PROTOCOLS:
        load = start_transfers(box, protocol)
        output = load.communicate(timeout=60)[0]
        equal(load.returncode, 0, output[-1000:])
        check_total(box)


def calvin_cannot_prepare(box):
    set_up(box)
    said = fails_with(box, "SET rdmacc.protocol = calvin; BEGIN;"
                           "UPDATE ours SET v = v - 1 WHERE id = 1;"
                           "UPDATE heap SET v = v + 1 WHERE id = 1; COMMIT", "0A000")
    matches("calvin cannot prepare", said, "DETAIL")
    check_total(box)


def decided_by_a_person(box):
    """Without a process that could do it, transactions stay in doubt until they are decided."""
    box.psql("ALTER SYSTEM SET max_worker_processes = 2")  # the supervisor's, and replication's
    box.stop()
    box.start()
    set_up(box)
    for point, right, wrong in (("prepared", "false", "true"), ("recorded", "true", "false")):
        kill_at(box, point, "occ", "UPDATE ours SET v = v - 7 WHERE id = 1;"
                                   "UPDATE heap SET v = v + 7 WHERE id = 1;")
        eventually(lambda: box.psql(GTID) != "", "the transaction is listed")
        gtid = box.psql(GTID)
        equal(box.psql("SELECT state, xid IS NOT NULL, since <= now(),"
                       " since > now() - interval '1 minute' FROM rdmacc.in_doubt"),
              "in doubt|t|t|t", "what is shown of it")
        true(int(box.psql("SELECT count(*) FROM rdmacc.locks JOIN rdmacc.in_doubt USING (worker)"
                          " WHERE relation = 'ours'::regclass AND pid IS NULL")) > 0,
             "its locks are shown")
        fails_with(box, "SET rdmacc.protocol = occ; UPDATE ours SET v = 0 WHERE id = 1", "40001")
        fails_with(box, f"SELECT rdmacc.resolve('{gtid}', {wrong})", "55000")
        box.psql(f"SELECT rdmacc.resolve('{gtid}', {right})")
        fails_with(box, f"SELECT rdmacc.resolve('{gtid}', {right})", "42704")
        check_total(box)
    equal(box.psql("SELECT v FROM ours WHERE id = 1"), str(INITIAL - 7), "the row")


run(set_up, killed_between_the_phases, killed_with_catalog_changes,
    tables_follow_the_catalog, transfers_without_crashes,
    crashes_under_load, calvin_cannot_prepare, decided_by_a_person,
    settings={"rdmacc.nodes": 2, "rdmacc.durability": "memory", "rdmacc.node_memory": "256MB"})
