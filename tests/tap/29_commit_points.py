#!/usr/bin/env python3
"""Sessions that are killed, or stand still, at the steps of a commit on disk. With all that they have
logged flushed by others, a record of rows alone decides, and one that names a transaction waits for
PostgreSQL's; what a reader was told is on disk; a checkpoint waits for what it would miss."""

import os
import signal
import time

import outage

from harness import Session, alive, equal, eventually, protocols, run, wait_until_up
from verify import verify

ROWS = "UPDATE ours SET v = v + 1 WHERE id = 1; INSERT INTO ours VALUES ({number}, 0);"
OTHERS = "UPDATE heap SET v = v + 1 WHERE id = 1; INSERT INTO heap VALUES ({number}, 0);"
STATE = ("SELECT (SELECT string_agg(id || ':' || v, ' ' ORDER BY id) FROM {0}),"
         " (SELECT count(*) FROM rdmacc.in_doubt), (SELECT count(*) FROM rdmacc.locks)")


def set_up(box):
    box.psql("CREATE TABLE ours (id int PRIMARY KEY, v int) USING rdmacc;"
             "CREATE TABLE heap (id int PRIMARY KEY, v int) USING heap;"
             "CREATE TABLE flushed (id serial); INSERT INTO ours VALUES (1, 0);"
             "INSERT INTO heap VALUES (1, 0)")


def stand_at(box, point, protocol, statements):
    """A session that stands there, and its backend."""
    seen = box.log_text().count("stands still")
    session = Session(box)
    session.run(f"SET rdmacc.protocol = {protocol}; SET rdmacc.debug_stop_at = {point};")
    backend = session.backend()
    session.send(f"BEGIN; {statements} COMMIT;")
    eventually(lambda: box.log_text().count("stands still") > seen, f"the session is at {point}")
    return session, backend


def kill_at(box, point, protocol, statements):
    """Others' commits go on while it stands there; their flush has its record."""
    session, backend = stand_at(box, point, protocol, statements)
    box.psql("INSERT INTO flushed DEFAULT VALUES")
    os.kill(backend, signal.SIGKILL)
    session.process.wait(timeout=20)
    eventually(lambda: box.psql("SELECT 1") == "1", "the server is up again")
    wait_until_up(box)


def rows_alone(box):
    kept = 0
    for number, protocol in enumerate(protocols(box), 100):
        for point in ("prepared", "recorded"):
            before = box.psql("SELECT count(*) FROM ours")
            kill_at(box, point, protocol, ROWS.format(number=number))
            kept += point == "recorded"
            equal(box.psql("SELECT v FROM ours WHERE id = 1"), str(kept), f"{protocol}, {point}")
            equal(int(box.psql("SELECT count(*) FROM ours")) - int(before),
                  int(point == "recorded"), f"{protocol}, {point}: rows")
    verify(box, "rows alone")


def rows_of_both_kinds(box):
    box.psql("DELETE FROM ours; DELETE FROM heap; INSERT INTO ours VALUES (1, 0);"
             "INSERT INTO heap VALUES (1, 0)")
    for number, protocol in enumerate(protocols(box), 200):
        for point in ("prepared", "recorded"):
            kill_at(box, point, protocol, (ROWS + OTHERS).format(number=number))
            ours = box.psql(STATE.format("ours"))
            equal(ours, box.psql(STATE.format("heap")), f"{protocol}, {point}: both halves")
            equal(f" {number}:" in ours, point == "recorded", f"{protocol}, {point}")
            equal(ours.split("|")[1:], ["0", "0"], f"{protocol}, {point}: doubts and locks")
    verify(box, "rows of both kinds")


def changes_of_the_catalog(box):
    """What is neither a row nor the definition of a table goes with the rows, too."""
    box.psql("CREATE TABLE moved (id int PRIMARY KEY) USING heap;"
             "INSERT INTO moved SELECT generate_series(1, 100)")
    for number, (statement, state) in enumerate((
            ("TRUNCATE moved", "SELECT count(*) FROM moved"),
            ("GRANT SELECT ON moved TO public",
             "SELECT relacl FROM pg_class WHERE oid = 'moved'::regclass"),
            ("COMMENT ON TABLE moved IS 'with rows'", "SELECT obj_description('moved'::regclass)"),
            ("REINDEX TABLE moved", "SELECT pg_relation_filenode('moved_pkey')")), 250):
        before = box.psql(state)
        kill_at(box, "recorded", "occ", f"INSERT INTO ours VALUES ({number}, 0); {statement};")
        equal((box.psql(f"SELECT count(*) FROM ours WHERE id = {number}"),
               box.psql(state) != before), ("1", True), statement)
    box.psql("DROP TABLE moved; DELETE FROM ours WHERE id >= 250")


def start_again(box, session):
    outage.kill_everything(box)
    session.close()
    box.start()
    wait_until_up(box)


def what_a_reader_was_told_is_on_disk(box):
    """Of a session that has installed its row and not flushed it."""
    for number, protocol in enumerate(protocols(box), 300):
        session, _ = stand_at(box, "installed", protocol, f"INSERT INTO ours VALUES ({number}, 7);")
        asked = f"SET rdmacc.protocol = {protocol}; SELECT v FROM ours WHERE id = {number}"
        equal(box.psql(asked), "7", f"{protocol}: what a reader sees")
        start_again(box, session)
        equal(box.psql(asked), "7", f"{protocol}: the row that it has seen")


def checkpoint_waits_for_rows_under_way(box):
    """Of a session whose record is in the WAL, and whose row is not in memory yet."""
    for number, protocol in enumerate(protocols(box), 400):
        asked = Session(box)
        session, backend = stand_at(box, "recorded", protocol,
                                    f"INSERT INTO ours VALUES ({number}, 7);")
        asked.send("SELECT rdmacc.checkpoint();")
        time.sleep(0.3)
        # Told to end, it ends once its commit is over.
        box.psql(f"SELECT pg_terminate_backend({backend})")
        eventually(lambda gone=backend: not alive(gone), "it has ended")
        asked.result()
        asked.close()
        start_again(box, session)
        equal(box.psql(f"SELECT v FROM ours WHERE id = {number}"), "7", f"{protocol}: its row")


run(set_up, rows_alone, rows_of_both_kinds, changes_of_the_catalog, what_a_reader_was_told_is_on_disk,
    checkpoint_waits_for_rows_under_way,
    settings={"rdmacc.nodes": 2, "rdmacc.node_memory": "256MB"})
