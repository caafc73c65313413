#!/usr/bin/env python3
"""Tables that were loaded in one transaction, by COPY and by INSERT ... SELECT: every row is found
by its key, in a bounded number of round trips, with nothing written afterwards, and one
transaction deletes all of them; what a load leaves to the session is bounded. LONG_LOADS=1: a million rows by both."""

import json
import os
import re
import time

from harness import Session, equal, run, true, wait_until_up

# Bucket and record where the cached root array is right. Where a group has been split since, that
# look finds nothing, a walk over the group finds its header changed, and one over its half the row.
ROUND_TRIPS_MAX = 6
LOOK_UPS = 100
ROWS, MANY_ROWS = 100_000, 1_000_000
# Entries of the index wait there: 19 MB, where a write set of rows and entries has 115.
NEW_TABLE_KB_MAX = 40_000


def round_trips(session, table, key):
    """Of a look-up in a transaction that has entered the gate already."""
    plan = session.run(f"BEGIN; SELECT 1 FROM {table} WHERE id = -1;"
                       "EXPLAIN (ANALYZE, COSTS off, SUMMARY off, FORMAT json)"
                       f" SELECT value FROM {table} WHERE id = {key}; COMMIT;")
    node = json.loads(plan[plan.index("["):plan.rindex("]") + 1])[0]["Plan"]
    equal(node["Actual Rows"], 1, f"rows of key {key}")
    return node["Engine Round Trips"]


def look_ups_are_short(box, table, rows):
    session = Session(box)
    try:
        session.run("SET rdmacc.protocol = nowait;")
        for key in range(1, 10):  # the table and every node's root array
            round_trips(session, table, key)
        most = max(round_trips(session, table, 10 + i * (rows // LOOK_UPS - 1))
                   for i in range(LOOK_UPS))
        true(most <= ROUND_TRIPS_MAX, f"{table}: a look-up took {most} round trips")
        equal(session.run(f"SELECT count(*) FROM {table};"), str(rows), "rows")
    finally:
        session.close()


def loaded(box, rows, load):
    table = f"loaded_{rows}"
    box.psql(f"CREATE TABLE {table} (id int PRIMARY KEY, value int) USING rdmacc")
    load(table)
    look_ups_are_short(box, table, rows)
    equal(box.psql(f"WITH gone AS (DELETE FROM {table} RETURNING id) SELECT count(*) FROM gone;"
                   f" SELECT count(*) FROM {table}"), f"{rows}\n0", "rows that were deleted, left")
    box.psql(f"DROP TABLE {table}")


def copied(box, rows):
    def load(table):
        box.psql(f"COPY {table} FROM PROGRAM 'seq 1 {rows} | sed s/$/,7/' (FORMAT csv)")
    loaded(box, rows, load)


def selected(box, rows):
    def load(table):
        box.psql(f"INSERT INTO {table} SELECT i, 7 FROM generate_series(1, {rows}) i")
    loaded(box, rows, load)


def copied_rows_are_found_at_once(box):
    copied(box, ROWS)


def a_million_copied_rows_are_found_at_once(box):
    copied(box, MANY_ROWS)


def selected_rows_are_found_at_once(box):
    selected(box, ROWS)


def a_million_selected_rows_are_found_at_once(box):
    selected(box, MANY_ROWS)


def most_memory_kb(session):
    """Without the pages of nodes that it has touched, which are mapped."""
    with open(f"/proc/{session.backend()}/status") as status:
        fields = dict(re.findall(r"(VmHWM|RssShmem):\s+(\d+) kB", status.read()))
    return int(fields["VmHWM"]) - int(fields["RssShmem"])


def rows_of_a_new_table_stay_out_of_the_session(box):
    """Its own transaction has made or emptied it, with a primary key that has an order: its index
    is built before the load."""
    copy = f"COPY loaded FROM PROGRAM 'seq 1 {ROWS} | sed s/$/,7/' (FORMAT csv);"
    for begin in ("CREATE TABLE loaded (id int PRIMARY KEY, value int) USING rdmacc;",
                  "TRUNCATE loaded;"):
        session = Session(box)
        try:
            session.run("SELECT count(*) FROM pg_class;")
            before = most_memory_kb(session)
            session.run(f"BEGIN; {begin} {copy} COMMIT;")
            grown = most_memory_kb(session) - before
            true(grown < NEW_TABLE_KB_MAX, f"{begin} the session has grown by {grown} kB")
            equal(session.run("SELECT count(*), min(id), max(id) FROM loaded;"),
                  f"{ROWS}|1|{ROWS}", "rows of the new table")
        finally:
            session.close()
    equal(box.psql("SELECT * FROM rdmacc.verify('loaded'); DROP TABLE loaded"), "", "verify")


def a_checkpoint_during_a_load_loses_nothing(box):
    """A batch is on its way while the statement is about something else, for longer than a checkpoint takes."""
    session = Session(box)
    try:
        session.send("CREATE TABLE slow USING rdmacc AS SELECT i, repeat('x', 1000) AS x,"
                     " CASE WHEN i > 1024 THEN pg_sleep(2)::text END AS slept"
                     " FROM generate_series(1, 1025) i;")
        time.sleep(1)
        box.psql("SELECT rdmacc.checkpoint()")
        session.result()
    finally:
        session.close()
    box.stop("immediate")
    box.start()
    wait_until_up(box)
    equal(box.psql("SELECT count(*), sum(length(x)) FROM slow"), "1025|1025000", "rows")
    box.psql("DROP TABLE slow")


MANY = (a_million_copied_rows_are_found_at_once, a_million_selected_rows_are_found_at_once)
run(copied_rows_are_found_at_once, selected_rows_are_found_at_once,
    rows_of_a_new_table_stay_out_of_the_session, a_checkpoint_during_a_load_loses_nothing,
    *(MANY if "LONG_LOADS" in os.environ else MANY[:1]),
    settings={"rdmacc.nodes": 2, "rdmacc.node_memory": "1GB", "rdmacc.max_write_set": "4GB"})
