#!/usr/bin/env python3
"""Statements that were prepared by messages of their own, in transactions that the server runs again: what was
made of their text when they were prepared counts, whatever the session has set or made since."""

from harness import Session, equal, eventually, run, true
from wire import Wire

SET_UP = """
CREATE TABLE hot (k int PRIMARY KEY, v int) USING rdmacc;
INSERT INTO hot VALUES (1, 0);
CREATE TABLE days (id int PRIMARY KEY, d date, t timestamptz) USING rdmacc;
CREATE TABLE shadowed (x int) USING rdmacc;
CREATE PROCEDURE add_day(id int, d date) LANGUAGE sql AS $$ INSERT INTO days VALUES (id, d); UPDATE hot SET v = v + 1 $$;
"""
CHANGE = "UPDATE hot SET v = v + 1"


def set_up(box):
    box.psql(SET_UP)


def client(box, protocol="occ"):
    wire = Wire(box)
    wire.query(f"SET rdmacc.protocol = {protocol}; SET timezone = 'UTC'; SET datestyle = 'ISO, MDY'")
    return wire


def begin(wire, settings=""):
    for statement in ("BEGIN", "SELECT v >= 0 FROM hot WHERE k = 1", *settings.split(";")):
        wire.query(statement)


def lose(box, wire, protocol="occ"):
    """COMMIT, after another session has changed what the block has read."""
    wire.query("UPDATE hot SET v = v WHERE k = 1")
    box.psql(f"SET rdmacc.protocol = {protocol}; {CHANGE}")
    return wire.query("COMMIT")


def settings_since(box):
    """Of how a text is read: dates, times, and names that a temporary table has taken."""
    box.psql("DELETE FROM days; DELETE FROM shadowed")
    wire = client(box)
    wire.query("CREATE TEMP TABLE other (x int) USING heap")
    wire.query("SELECT 1 FROM other, shadowed")
    wire.prepare("day", "INSERT INTO days VALUES (1, '01/02/2020', '2024-07-01 09:00')")
    wire.prepare("row", "INSERT INTO shadowed VALUES (1)")
    wire.query("CREATE TEMP TABLE shadowed (x int) USING heap")
    begin(wire, "SET LOCAL datestyle = 'ISO, DMY';SET LOCAL timezone = 'Asia/Tokyo'")
    for name in ("day", "row"):
        equal(wire.run(name), ["INSERT 0 1"], name)
    equal(lose(box, wire), ["COMMIT"], "COMMIT")
    equal(wire.query("SELECT count(*) FROM pg_temp.shadowed")[0], ["0"], "rows of the temporary table")
    wire.close()
    equal(box.psql("SET timezone = 'UTC'; SELECT * FROM days"), "1|2020-01-02|2024-07-01 09:00:00+00", "the day")
    equal(box.psql("SELECT count(*) FROM shadowed"), "1", "rows of the table")


def moments_since(box):
    """'now' is when the statement was prepared."""
    box.psql("DELETE FROM days")
    wire = client(box)
    wire.prepare("now", "INSERT INTO days SELECT g, 'today', timestamptz 'now' FROM generate_series(1, 2) g")
    wire.sync()
    begin(wire)
    equal(wire.run("now"), ["INSERT 0 2"], "rows")
    seen = wire.query("SELECT t FROM days WHERE id = 1")[0]
    equal(lose(box, wire), ["COMMIT"], "COMMIT")
    equal(wire.query("SELECT DISTINCT t FROM days")[0], seen, "the moment")
    wire.close()


def tables_since(box):
    """A statement whose table has changed is read anew, as PostgreSQL does."""
    box.psql("DELETE FROM days; DROP TABLE IF EXISTS grown; CREATE TABLE grown (a int, b int) USING rdmacc")
    for name, sql in (("generic", "INSERT INTO grown VALUES (1, 1)"), ("custom", "INSERT INTO grown VALUES ($1, 1)")):
        box.psql("TRUNCATE grown")
        wire = client(box)
        wire.prepare(name, sql)
        values = ["7"] if "$1" in sql else []
        begin(wire)
        equal(wire.run(name, *values), ["INSERT 0 1"], name)
        wire.query("UPDATE hot SET v = v WHERE k = 1")
        box.psql(CHANGE)
        session = Session(box)
        session.send("ALTER TABLE grown ADD c int DEFAULT 5;")
        eventually(lambda: box.psql("SELECT count(*) FROM pg_locks WHERE NOT granted") == "1",
                   "it waits for the block's first attempt")
        equal(wire.query("COMMIT"), ["COMMIT"], f"{name}: COMMIT")
        wire.close()
        session.close()
        equal(box.psql("SELECT count(*) FROM grown"), "1", f"{name}: rows")
        box.psql("ALTER TABLE grown DROP COLUMN IF EXISTS c")


def another_of_the_name(box):
    """SQL's EXECUTE of a statement that the client has closed since."""
    box.psql("DELETE FROM days")
    wire = client(box)
    wire.prepare("one", "INSERT INTO days VALUES (3)")
    begin(wire)
    equal(wire.query("EXECUTE one"), ["INSERT 0 1"], "EXECUTE")
    wire.close_statement("one")
    wire.prepare("one", "INSERT INTO days VALUES (4)")
    equal(lose(box, wire), ["error 40001"], "COMMIT")
    wire.query("ROLLBACK")
    begin(wire)
    equal(wire.query("EXECUTE one"), ["INSERT 0 1"], "EXECUTE again")
    equal(lose(box, wire), ["COMMIT"], "COMMIT again")
    wire.close()
    equal(box.psql("SELECT id FROM days"), "4", "rows")


def calls_alone(box):
    box.psql("DELETE FROM days")
    wire = client(box, "nowait")
    wire.prepare("call", "CALL add_day($1, '01/02/2020')")
    wire.query("SET datestyle = 'ISO, DMY'")
    holder = Session(box)
    before = retried(box)
    holder.run(f"SET rdmacc.protocol = nowait; BEGIN; {CHANGE};")
    holder.send("SELECT pg_sleep(0.3); COMMIT;")
    equal(wire.run("call", "5"), ["CALL"], "CALL")
    holder.close()
    wire.close()
    equal(box.psql("SELECT id, d FROM days"), "5|2020-01-02", "the day")
    true(retried(box) > before, "it was run again")


def back_to_a_savepoint(box):
    """After a cancel, by messages: the block is run again at ROLLBACK TO, whose portal outlives it."""
    box.psql("CREATE TABLE wide (id int PRIMARY KEY, v int) USING rdmacc;"
             "INSERT INTO wide SELECT i, 0 FROM generate_series(1, 30000) i; DELETE FROM days")
    wire = client(box)
    wire.prepare("back", "ROLLBACK TO s")
    wire.prepare("look", "SELECT count(*) FROM wide WHERE v < $1")
    before = retried(box)
    for number in range(20):
        for statement in ("BEGIN", f"INSERT INTO days VALUES ({number})", "SAVEPOINT s",
                          f"SET LOCAL statement_timeout = {3 + number % 8}"):
            wire.query(statement)
        told = wire.run("look", "50")
        if told == ["error 57014"]:
            equal(wire.run("back"), ["ROLLBACK"], "ROLLBACK TO")
        else:
            wire.query("ROLLBACK TO s")
        equal(wire.run("look", "0")[0], ["0"], "the next statement")
        equal(wire.query("COMMIT"), ["COMMIT"], "COMMIT")
    wire.close()
    true(retried(box) > before, "some blocks were run again")
    equal(box.psql("SELECT count(*) FROM days"), "20", "rows")


def retried(box):
    return int(box.psql("SELECT sum(retries) FROM rdmacc.stat_retries"))


run(set_up, settings_since, moments_since, tables_since, another_of_the_name, calls_alone,
    back_to_a_savepoint,
    settings={"rdmacc.nodes": 2, "rdmacc.node_memory": "128MB", "rdmacc.durability": "memory"})
