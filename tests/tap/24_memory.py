#!/usr/bin/env python3
"""What a node takes, and that memory which was given back serves tables of every shape."""

import os
import signal
import time

from harness import Session, equal, eventually, run, true

NODES = 1
ROUNDS_MAX = 6
WAIT_SECONDS_MAX = 8
MB = 1 << 20
SETTINGS = {"rdmacc.nodes": NODES, "rdmacc.node_memory": "256MB", "max_connections": 100}


def bytes_of(box, column):
    return max(int(line) for line in
               box.psql(f"SELECT {column} FROM rdmacc.stat_nodes").split("\n"))


def an_empty_node_is_small(box):
    box.psql("CREATE EXTENSION IF NOT EXISTS rdmacc")
    backed = bytes_of(box, "backed_bytes")
    true(0 < backed < 16 * MB, f"an empty node backs {backed} bytes")


# Columns, number of rows, and how they go. Together they need more than a node has.
SHAPES = (
    ("n int, t text", "i, repeat('x', 32)", 400_000, "DELETE FROM {}"),
    ("t text", "repeat('y', 400)", 120_000, "TRUNCATE {}"),
    ("t text", "repeat('z', 3000)", 30_000, "DROP TABLE {}"),
    ("a bigint, b bigint", "i, -i", 400_000, "DROP TABLE {}"),
)


def memory_serves_other_shapes(box):
    box.psql("CREATE EXTENSION IF NOT EXISTS rdmacc")
    start = bytes_of(box, "used_bytes")
    for number, (columns, values, rows, goes) in enumerate(SHAPES):
        table = f"shape{number}"
        box.psql(f"CREATE TABLE {table} (id int PRIMARY KEY, {columns}) USING rdmacc;"
                 f"INSERT INTO {table} SELECT i, {values} FROM generate_series(1, {rows}) i")
        used = bytes_of(box, "used_bytes")
        true(used > 50 * MB, f"{rows} rows of ({columns}) take {used} bytes")
        box.psql(goes.format(table))
        if not goes.startswith("DROP"):
            box.psql(f"DROP TABLE {table}")
        eventually(lambda: bytes_of(box, "used_bytes") < start + 2 * MB,
                   f"memory comes back after round {number}")


def tables_that_come_and_go_leave_little(box):
    """In the session that makes them."""
    session = Session(box)
    known = ("SELECT sum(used_bytes) FROM pg_backend_memory_contexts"
             " WHERE name IN ('CacheMemoryContext', 'rdmacc secondary indexes');")
    one = ("CREATE TABLE passing (id int PRIMARY KEY, n int UNIQUE, m int UNIQUE) USING rdmacc;"
           "INSERT INTO passing VALUES (1, 1, 1); DROP TABLE passing;")
    took = []
    for _ in range(4):
        before = int(session.run(known))
        equal(session.run(one * 150), "", "tables are made and dropped")
        took.append(int(session.run(known)) - before)
    session.close()
    print(f"# of 150 tables a session keeps {took} bytes")
    true(sum(took[1:]) < 450 * 500, f"of 150 tables the session keeps {took} bytes")


def a_row_takes_little_more_than_its_bytes(box):
    for method in ("heap", "rdmacc"):
        box.psql(f"CREATE TABLE {method}_rows (id int PRIMARY KEY, n int, t text) USING {method};"
                 f"INSERT INTO {method}_rows"
                 " SELECT i, i, repeat('x', 32) FROM generate_series(1, 100000) i")
    heap = int(box.psql("SELECT pg_relation_size('heap_rows')"
                        " + pg_relation_size('heap_rows_pkey')"))
    rdmacc = int(box.psql("SELECT rdmacc.relation_size('rdmacc_rows')"))
    order = int(box.psql("SELECT rdmacc.relation_size('rdmacc_rows_pkey')"))
    box.psql("DROP TABLE heap_rows, rdmacc_rows")
    print(f"# rows take {rdmacc} bytes, the heap's {heap}: {rdmacc / heap:.3f};"
          f" the order of the primary key {order}: {(rdmacc + order) / heap:.3f}")
    true(rdmacc <= 1.6 * heap, f"rows take {rdmacc} bytes, the heap's {heap}")
    true(rdmacc + order <= 2.1 * heap, f"with their order {rdmacc + order}, the heap's {heap}")


# Rows of 33 KB that are dropped while a transaction is open that might know their addresses, and how many
# others do not fit beside them: with their log record, or put in place.
GONE_ROWS, LOGGED_ROWS = 3000, 3000
GONE_ROWS_IN_PLACE, ROWS_IN_PLACE = 5600, 2900
LARGE = "(id int PRIMARY KEY, t text GENERATED ALWAYS AS (repeat('x', 30000)) STORED) USING rdmacc"


def to_fill(rows, table="filled"):
    return f"INSERT INTO {table} SELECT i FROM generate_series(1, {rows}) i;"


NUMBERS = "\n".join(map(str, range(1, LOGGED_ROWS + 1)))
FILLING = {
    "a query": to_fill(LOGGED_ROWS),
    "EXECUTE": "EXECUTE fill;",
    "CALL": "CALL fill();",
    "DO": f"DO $$ BEGIN {to_fill(LOGGED_ROWS)} END $$;",
    "COPY": f"COPY filled (id) FROM STDIN;\n{NUMBERS}\n\\.",
    "COMMIT": f"BEGIN;\n{to_fill(LOGGED_ROWS)}\nCOMMIT;",
    "COPY in a block": f"BEGIN;\nCOPY filled (id) FROM STDIN;\n{NUMBERS}\n\\.\nCOMMIT;",
}


def stop_while_it_waits(box, pid):
    """False, and it goes on: its wait was over before it was seen or stood still."""
    waits = f"SELECT wait_event FROM pg_stat_activity WHERE pid = {pid}"
    end = time.monotonic() + WAIT_SECONDS_MAX
    while box.psql(waits) != "PgSleep":
        if time.monotonic() > end:
            return False
    os.kill(pid, signal.SIGSTOP)
    if box.psql(waits) == "PgSleep":
        return True
    os.kill(pid, signal.SIGCONT)
    return False


def waits_for_memory(box, name, statements, gone_rows, rows):
    """What holds back no row that the client has had."""
    start = bytes_of(box, "used_bytes")
    for _ in range(ROUNDS_MAX):
        reader, writer = Session(box), Session(box)
        writer.run(f"PREPARE fill AS {to_fill(LOGGED_ROWS)}")
        pid = int(writer.backend())
        box.psql(f"CREATE TABLE gone {LARGE}; {to_fill(gone_rows, 'gone')}")
        reader.run("BEGIN; SELECT * FROM small;")
        box.psql("DROP TABLE gone")
        writer.send(statements)
        # However long the machine takes to give the memory back, the writer looks for it afterwards.
        stands = stop_while_it_waits(box, pid)
        try:
            full = bytes_of(box, "used_bytes")
            reader.run("COMMIT;")
            if stands:
                eventually(lambda: bytes_of(box, "used_bytes") < full - 50 * MB, f"{name}: memory comes back")
        finally:
            os.kill(pid, signal.SIGCONT)
        said = writer.result()
        if not stands:
            true(said == "" or "53200" in said, f"{name}: {said}")
            writer.run("ROLLBACK;")
        else:
            equal(said, "", name)
            equal(box.psql("SELECT count(*), sum(id) FROM filled"), f"{rows}|{rows * (rows + 1) // 2}",
                  f"rows of {name}")
        box.psql("TRUNCATE filled")
        reader.close()
        writer.close()
        eventually(lambda: bytes_of(box, "used_bytes") < start + 2 * MB, f"memory after {name}")
        if stands:
            return
    true(False, f"{name}: stood still while it waited, in {ROUNDS_MAX} rounds")


def memory_under_way_is_waited_for(box):
    box.psql(f"CREATE EXTENSION IF NOT EXISTS rdmacc; CREATE TABLE filled {LARGE};"
             "CREATE TABLE small (id int) USING rdmacc; INSERT INTO small VALUES (1);"
             f"CREATE PROCEDURE fill() LANGUAGE sql AS $$ {to_fill(LOGGED_ROWS)} $$")
    for name, statements in FILLING.items():
        waits_for_memory(box, name, f"SET rdmacc.exclusive_loads = off;\n{statements}", GONE_ROWS,
                         LOGGED_ROWS)
    waits_for_memory(box, "a load in place", to_fill(ROWS_IN_PLACE), GONE_ROWS_IN_PLACE,
                     ROWS_IN_PLACE)


run(an_empty_node_is_small, tables_that_come_and_go_leave_little,
    a_row_takes_little_more_than_its_bytes, memory_serves_other_shapes,
    memory_under_way_is_waited_for, settings=SETTINGS)
