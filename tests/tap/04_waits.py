#!/usr/bin/env python3
"""Waits that end: timeouts and cancels at the protocol gate, and memory that is used up."""

import os
import time

from harness import Session, equal, eventually, fails_with, matches, retried, run, sqlstate, true

GATE_TIMEOUT_SECONDS_MAX = 3


def set_up(box):
    box.psql("CREATE TABLE t (id int PRIMARY KEY, v int) USING rdmacc;"
             "INSERT INTO t SELECT i, 0 FROM generate_series(1, 1000) i")


def holder_of(box, protocol):
    """A session that keeps the gate open for `protocol`."""
    session = Session(box)
    session.run(f"SET rdmacc.protocol = {protocol};")
    session.run("BEGIN; SELECT v FROM t WHERE id = 1;")
    return session


def statement_timeout_ends_a_wait(box):
    holder = holder_of(box, "nowait")
    begin = time.monotonic()
    fails_with(box, "SET rdmacc.protocol = occ; SET statement_timeout = '500ms';"
                    " SELECT v FROM t WHERE id = 1", "57014")
    true(time.monotonic() - begin < GATE_TIMEOUT_SECONDS_MAX, "in time")
    equal(holder.run("UPDATE t SET v = v + 1 WHERE id = 1; COMMIT; SELECT v FROM t WHERE id = 1;"),
          "1", "the holder goes on")
    holder.close()


def gate_timeout_ends_a_wait(box):
    holder = holder_of(box, "nowait")
    fails_with(box, "SET rdmacc.protocol = occ; SET rdmacc.gate_timeout = '300ms';"
                    " SELECT v FROM t WHERE id = 1", "55P03")
    fails_with(box, "SET rdmacc.protocol = occ; SET lock_timeout = '300ms';"
                    " SELECT v FROM t WHERE id = 1", "55P03")
    holder.run("COMMIT;")
    holder.close()


def cancel_ends_a_wait(box):
    holder = holder_of(box, "nowait")
    waiter = Session(box)
    pid = waiter.backend()
    waiter.run("SET rdmacc.protocol = occ;")
    waiter.send("SELECT v FROM t WHERE id = 1;")
    time.sleep(0.5)
    equal(box.psql(f"SELECT wait_event_type FROM pg_stat_activity WHERE pid = {pid}"),
          "Extension", "wait event")
    equal(box.psql(f"SELECT pg_cancel_backend({pid})"), "t", "cancel")
    matches("57014", waiter.result(), "the waiter")
    holder.run("COMMIT;")
    matches("^1$", waiter.run("SELECT v FROM t WHERE id = 1;"), "the session goes on")
    waiter.close()
    holder.close()


def waiting_ends_when_the_gate_opens(box):
    holder = holder_of(box, "nowait")
    waiter = Session(box)
    waiter.run("SET rdmacc.protocol = occ;")
    waiter.send("UPDATE t SET v = v + 1 WHERE id = 2; SELECT v FROM t WHERE id = 2;")
    time.sleep(0.3)
    holder.run("COMMIT;")
    equal(waiter.result(), "1", "the waiter")
    waiter.close()
    holder.close()


def never_set_protocol_joins(box):
    holder = holder_of(box, "nowait")
    equal(box.psql("SET statement_timeout = '5s'; SELECT v FROM t WHERE id = 2"), "1", "joined")
    holder.run("COMMIT;")
    holder.close()


def cancels_at_random_points_leave_no_lock(box):
    session = Session(box)
    pid = session.backend()
    for round_number in range(30):
        session.send("UPDATE t SET v = v + 1;")
        time.sleep(0.002 * round_number)
        box.psql(f"SELECT pg_cancel_backend({pid})")
        session.result()
    session.close()
    box.psql("SET statement_timeout = '30s'; UPDATE t SET v = 7")
    equal(box.psql("SELECT count(*), sum(v) FROM t"), "1000|7000", "rows")


def used_up_memory_is_an_error(box):
    box.psql("CREATE TABLE big (id int PRIMARY KEY, v text) USING rdmacc;"
             "INSERT INTO big SELECT i, repeat('x', 8000) FROM generate_series(1, 100) i")
    rows = 100
    state = "00000"
    for _ in range(400):
        result = retried(box, f"INSERT INTO big SELECT i, repeat('y', 8000)"
                              f" FROM generate_series({rows + 1}, {rows + 200}) i")
        state = sqlstate(result)
        if state != "00000":
            break
        rows += 200
    equal(state, "53200", "SQLSTATE when memory is used up")
    equal(box.psql("SELECT count(*), sum(length(v)) FROM big"), f"{rows}|{8000 * rows}",
          "nothing is lost")
    equal(box.psql("SELECT count(*), sum(v) FROM t"), "1000|7000", "other tables")
    box.psql("UPDATE t SET v = v + 1 WHERE id = 1")
    box.psql("DROP TABLE big")
    box.psql("CREATE TABLE after (id int PRIMARY KEY, v text) USING rdmacc")
    eventually(lambda: box.psql("INSERT INTO after SELECT i, repeat('z', 8000)"
                                " FROM generate_series(1, 500) i") == "",
               "memory of a dropped table is used again")


def large_transactions_commit(box):
    for protocol in ("nowait", "occ"):
        box.psql(f"SET rdmacc.protocol = {protocol};"
                 "CREATE TABLE large (id int PRIMARY KEY, v int) USING rdmacc;"
                 "INSERT INTO large SELECT i, i FROM generate_series(1, 1000) i;"
                 "INSERT INTO large SELECT i, i FROM generate_series(1001, 50000) i;"
                 "UPDATE large SET v = v + 1")
        equal(box.psql("SELECT count(*), sum(v) FROM large"), "50000|1250075000",
              f"rows under {protocol}")
        box.psql("DROP TABLE large")


def a_late_timeout_is_no_later_statements(box):
    """One that comes while the engine commits ends the COMMIT, or nothing."""
    box.psql("CREATE TABLE large (id int PRIMARY KEY, v int) USING rdmacc;"
             "INSERT INTO large SELECT i, 0 FROM generate_series(1, 50000) i; CREATE INDEX ON large (v);"
             "CREATE TABLE plain (v int) USING heap")
    session = Session(box)
    done = late = 0
    both = "INSERT INTO plain VALUES (1);"
    for before, more in (("", ""), ("", both), ("SAVEPOINT s;", both)):  # which is open at COMMIT
        for timeout in (10, 20, 40, 60, 100, 150):
            session.run(f"BEGIN; {before} UPDATE large SET v = v + 1; {more} SET statement_timeout = {timeout};")
            begin = time.monotonic()
            said = session.run("COMMIT;")
            true(said == "" or "57014" in said, f"COMMIT: {said}")
            done += said == ""
            late += said == "" and time.monotonic() - begin > timeout / 1000
            time.sleep(0.2)
            equal(session.run("SELECT 1;"), "1", f"the statement after a timeout of {timeout} ms")
            session.run("ROLLBACK; RESET statement_timeout;")
    session.close()
    true(late > 0, "some came while the engine committed")
    equal(box.psql("SELECT count(*), sum(v) FROM large"), f"50000|{50000 * done}", "rows of what has committed")
    box.psql("DROP TABLE large, plain")


def cancelled_definitions_leave_nothing(box):
    """The nodes have no table that nothing knows."""
    tables = "SELECT sum(tables) FROM rdmacc.stat_nodes"
    before = box.psql(tables)
    lost = 0
    session = Session(box)
    for number in range(60):
        said = session.run(f"BEGIN; SET LOCAL statement_timeout = {1 + number % 6};"
                           " CREATE TABLE cancelled (id int PRIMARY KEY, v int) USING rdmacc;"
                           " CREATE INDEX ON cancelled (v); TRUNCATE cancelled;")
        lost += "57014" in said
        session.run("ROLLBACK;")
    session.close()
    true(lost > 0, "some were cancelled")
    eventually(lambda: box.psql(tables) == before, "the nodes have the tables of before")


def large_write_sets_are_refused(box):
    box.psql("CREATE TABLE limited (id int PRIMARY KEY, v int) USING rdmacc")
    os.environ["PGOPTIONS"] = "-c rdmacc.max_write_set=1MB"
    try:
        fails_with(box, "INSERT INTO limited SELECT i, 0 FROM generate_series(1, 60000) i",
                   "53200")
        box.psql("INSERT INTO limited SELECT i, 0 FROM generate_series(1, 1000) i")
    finally:
        del os.environ["PGOPTIONS"]
    equal(box.psql("SELECT count(*) FROM limited"), "1000", "rows")


run(set_up, statement_timeout_ends_a_wait, gate_timeout_ends_a_wait, cancel_ends_a_wait,
    waiting_ends_when_the_gate_opens, never_set_protocol_joins,
    cancels_at_random_points_leave_no_lock, a_late_timeout_is_no_later_statements,
    cancelled_definitions_leave_nothing, large_transactions_commit,
    large_write_sets_are_refused, used_up_memory_is_an_error,
    settings={"rdmacc.nodes": 2, "rdmacc.node_memory": "128MB", "max_connections": 30})
