#!/usr/bin/env python3
"""Sessions that are killed at the steps of a commit on disk, with all that they have logged flushed by
others: a record of rows alone decides, one that names a transaction waits for PostgreSQL's."""

import os
import signal

from harness import Session, equal, eventually, protocols, run, wait_until_up
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


def kill_at(box, point, protocol, statements):
    """Others' commits, and a checkpoint, go on while it stands there; their flush has its record."""
    seen = box.log_text().count("stands still")
    session = Session(box)
    session.run(f"SET rdmacc.protocol = {protocol}; SET rdmacc.debug_stop_at = {point};")
    backend = session.backend()
    session.send(f"BEGIN; {statements} COMMIT;")
    eventually(lambda: box.log_text().count("stands still") > seen, f"the session is at {point}")
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


run(set_up, rows_alone, rows_of_both_kinds,
    settings={"rdmacc.nodes": 2, "rdmacc.node_memory": "256MB"})
