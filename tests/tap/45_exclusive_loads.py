#!/usr/bin/env python3
"""COPY, or INSERT of a query's rows, into an empty table: the table gets a new file, and the rows are put in
place, where no other session uses it (rdmacc.exclusive_loads); rows of a query are inserted together.
LOAD_SECONDS=30: its storm goes on for longer."""

import itertools
import json
import os
import shlex
import signal
import time

from harness import Session, equal, eventually, matches, run, sqlstate, true, wait_until_up
from storm import Worker, stop_all
from verify import verify
from wire import Wire

SECONDS = float(os.environ.get("LOAD_SECONDS", "2"))
ROWS = 4000  # of 26 bytes as text: more than 64 KB
TEXT = "some words, as in a text"
SUM = f"{ROWS}|{ROWS * (ROWS + 1) // 2}"
SET_UP = """
CREATE TABLE parent (id int PRIMARY KEY) USING rdmacc;
INSERT INTO parent SELECT generate_series(1, %d);
CREATE TABLE t (id int PRIMARY KEY, v text) USING rdmacc;
CREATE FUNCTION pass() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;
CREATE FUNCTION same(v text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RETURN v; END $$;
CREATE TABLE plain (id int, v text) USING heap;
INSERT INTO plain SELECT i, 'some words, as in a text' FROM generate_series(1, %d) i;
ANALYZE plain;
CREATE ROLE loader LOGIN;
GRANT INSERT, SELECT ON t TO loader;
GRANT pg_read_server_files TO loader;
""" % (ROWS, ROWS)


def lines(first, count, text=TEXT):
    return b"".join(b"%d\t%s\n" % (i, text.encode()) for i in range(first, first + count))


def path_of(box, name):
    return os.path.join(box.dir, name)


def from_file(box, name="rows"):
    return f"FROM '{path_of(box, name)}'"


def write_file(box, name, content, mode=0o644):
    with open(path_of(box, name), "wb") as file:
        file.write(content)
    os.chmod(path_of(box, name), mode)


def set_up(box):
    box.psql(SET_UP)
    write_file(box, "rows", lines(1, ROWS))
    write_file(box, "long_rows", lines(1, 5000, "x" * 120))


def file_of(box, table="t"):
    return box.psql(f"SELECT pg_relation_filenode('{table}')")


def emptied(box):
    box.psql("TRUNCATE t")
    return file_of(box)


def has_all(box, what):
    equal(box.psql("SELECT count(*), sum(id) FROM t"), SUM, f"{what}: rows")
    equal(box.psql(f"SELECT v FROM t WHERE id = {ROWS}"), TEXT, f"{what}: the last one by its key")


def of_a_file(box):
    before = emptied(box)
    equal(box.psql(f"COPY t {from_file(box)}"), "", "COPY")
    true(file_of(box) != before, "a new file")
    has_all(box, "COPY")
    equal(box.psql("SELECT * FROM rdmacc.verify('t')"), "", "verify")


def a_program_may_read_the_table(box):
    """By a connection of its own, for which COPY waits."""
    before = emptied(box)
    look = shlex.join(["psql", "-X", "-A", "-t", box.connection_string(), "-c", "SELECT count(*) FROM t"])
    write_file(box, "program", f"""#!/bin/sh
export PGOPTIONS='-c statement_timeout=20s'
{look} | sed 's/$/\t{TEXT}/'
seq 2 {ROWS} | sed 's/$/\t{TEXT}/'
""".encode(), 0o755)
    equal(box.psql(f"SET statement_timeout = '30s'; COPY t FROM PROGRAM '{path_of(box, 'program')}'"), "", "COPY")
    equal(box.psql("SELECT count(*), min(id) FROM t"), f"{ROWS}|0", "rows, and what the program has counted")
    equal(file_of(box), before, "the file")


def from_the_client(box):
    before = emptied(box)
    wire = Wire(box)
    equal(wire.copy("COPY t FROM STDIN", lines(1, 10), lines(11, ROWS - 10)),
          ["copy in 0 2", f"COPY {ROWS}"], "COPY")
    true(file_of(box) != before, "a new file")
    has_all(box, "COPY")
    wire.query("SET rdmacc.replay_memory = '8kB'")  # which is too small to look ahead
    before = emptied(box)
    equal(wire.copy("COPY t FROM STDIN", lines(1, 500), lines(501, ROWS - 500)),
          ["copy in 0 2", f"COPY {ROWS}"], "COPY")
    equal(file_of(box), before, "its file")
    has_all(box, "COPY without memory to look ahead")
    before = emptied(box)
    equal(wire.copy("COPY t FROM STDIN", lines(1, 100)), ["copy in 0 2", "COPY 100"], "a short one")
    equal(file_of(box), before, "the file of a short one")
    wire.close()


def a_client_does_not_wait_for_itself(box):
    """It reads the table before it sends the rest, by another connection."""
    emptied(box)
    wire = Wire(box)
    wire.query("SET rdmacc.gate_timeout = '1s'")
    wire.message("Q", b"COPY t FROM STDIN\0")
    wire.message("d", lines(1, ROWS))
    eventually(lambda: box.psql("SELECT count(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock'"
                                " AND relation = 't'::regclass") == "1", "the table is its own")
    equal(box.psql("SELECT count(*) FROM t"), "0", "what the other connection reads")
    wire.message("c")
    equal(wire.read_until_ready(), ["copy in 0 2", "error 40P01"], "COPY")
    equal(wire.query("SELECT 5"), [["5"], "SELECT 1"], "the session is in step")
    wire.close()


def what_fails(box):
    """Nothing has changed, and the session is in step."""
    before = emptied(box)
    wire = Wire(box)
    for name, data, end, error in (
            ("not a row", lines(1, ROWS) + b"x\ty\n", "c", "22P02"),
            ("a key twice", lines(1, ROWS) + b"7\ty\n", "c", "23505"),
            ("the client has failed", lines(1, ROWS), "f", "57014"),
            ("at once", lines(1, 5), "f", "57014")):
        reason = b"why\0" if end == "f" else b""
        said = wire.copy("COPY t FROM STDIN", data, end=end, reason=reason)
        equal(said, ["copy in 0 2", f"error {error}"], name)
        equal(wire.query("SELECT count(*) FROM t")[0], ["0"], f"{name}: rows")
    said = wire.copy("COPY t FROM STDIN (FORMAT none_such)", lines(1, ROWS))
    equal(said[-1], "error 22023", "a format that there is not")
    equal(wire.query("SELECT 5"), [["5"], "SELECT 1"], "the session is in step")
    wire.close()
    equal(file_of(box), before, "the file")


def not_where_it_would_matter(box):
    """In a block, beside other sessions, into rows, and where they could not be put in place, or not by this
    user."""
    copy = f"COPY t {from_file(box)}"
    other = Session(box)
    for name, first, statement, last in (
            ("off", "", f"SET rdmacc.exclusive_loads = off; {copy}", ""),
            ("a block", "", f"BEGIN; {copy}; COMMIT", ""),
            ("a unique index", "CREATE UNIQUE INDEX u ON t (v, id)", copy, "DROP INDEX u"),
            ("a trigger", "CREATE TRIGGER before BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION pass()",
             copy, "DROP TRIGGER before ON t"),
            ("a guest", "", f"SET ROLE loader; {copy}", ""),
            ("mvcc", "", f"SET rdmacc.protocol = mvcc; {copy}", ""),
            ("rows", "INSERT INTO t VALUES (-1, '')", copy, "DELETE FROM t WHERE id < 0")):
        before = emptied(box)
        if first:
            box.psql(first)
        equal(box.psql(statement), "", name)
        equal(file_of(box), before, f"{name}: the file")
        if last:
            box.psql(last)
        has_all(box, name)
    box.psql("SET rdmacc.protocol = occ; SELECT count(*) FROM t")  # which sessions that set none join
    before = emptied(box)
    other.run("BEGIN; SELECT count(*) FROM t;")
    box.psql(copy)
    equal(file_of(box), before, "beside a reader: the file")
    equal(other.run("ROLLBACK;"), "", "the reader's end")
    has_all(box, "beside a reader")
    equal(sqlstate(box.psql(f"SET default_transaction_read_only = on; {copy}", check=False)), "25006",
          "read only")
    other.close()


def rows_of_a_query(box):
    """Exclusively where it reads no rdmacc table, and all of them the same as on a heap."""
    for name, statement, new_file in (
            ("rows", f"INSERT INTO t SELECT i, '{TEXT}' FROM generate_series(1, {ROWS}) i", True),
            ("a heap's", "INSERT INTO t SELECT * FROM plain", True),
            ("ours", "INSERT INTO t SELECT p.id, plain.v FROM parent p JOIN plain USING (id)", False),
            ("RETURNING", f"WITH x AS (INSERT INTO t SELECT i, '{TEXT}' FROM generate_series(1, {ROWS}) i"
             " RETURNING id) SELECT FROM x WHERE id < 0", False),
            ("ON CONFLICT", "INSERT INTO t SELECT * FROM plain ON CONFLICT DO NOTHING", False),
            ("a function", "INSERT INTO t SELECT id, same(v) FROM plain", False),
            ("a block", "BEGIN; INSERT INTO t SELECT * FROM plain; COMMIT", False)):
        before = emptied(box)
        equal(box.psql(statement), "", name)
        has_all(box, name)
        equal(file_of(box) != before, new_file, f"{name}: a new file")
    box.psql("BEGIN; TRUNCATE t; INSERT INTO t SELECT * FROM plain; COMMIT")
    has_all(box, "of a table of its own")
    equal(box.psql("SELECT * FROM rdmacc.verify('t')"), "", "verify")


def both(box, statements, what):
    """Statements on {t}: an rdmacc table and a heap come to the same."""
    said = []
    for table, method in (("ours", "rdmacc"), ("heaps", "heap")):
        box.psql(f"DROP TABLE IF EXISTS {table}; CREATE TABLE {table} (id int PRIMARY KEY, v int) USING {method}")
        result = box.psql("SET client_min_messages = error; " + statements.format(t=table), check=False)
        equal(box.psql(f"SELECT * FROM rdmacc.verify('{table}')") if method == "rdmacc" else "", "",
              f"{what}: verify")
        said.append((sqlstate(result), box.psql(f"SELECT count(*), sum(id), sum(v) FROM {table}")))
    equal(said[0], said[1], what)


def what_a_query_sees_meanwhile(box):
    many = "generate_series(1, 5000) i"
    for what, statements in (
            ("its own rows, by a volatile function",
             "CREATE OR REPLACE FUNCTION seen() RETURNS bigint VOLATILE LANGUAGE sql AS"
             f" 'SELECT count(*) FROM {{t}}'; INSERT INTO {{t}} SELECT i, seen() FROM generate_series(1, 100) i"),
            ("none of them, by a stable one",
             "CREATE OR REPLACE FUNCTION seen() RETURNS bigint STABLE LANGUAGE sql AS"
             f" 'SELECT count(*) FROM {{t}}'; INSERT INTO {{t}} SELECT i, seen() FROM generate_series(1, 100) i"),
            ("the table itself", f"INSERT INTO {{t}} SELECT i, i FROM {many};"
             " INSERT INTO {t} SELECT id + 10000, v FROM {t}; INSERT INTO {t} SELECT -id, v FROM {t}"),
            ("the table itself, behind other rows",
             f"BEGIN; TRUNCATE {{t}}; INSERT INTO {{t}} SELECT i, 1 FROM {many} UNION ALL SELECT id + 100000, v FROM {{t}}; COMMIT"),
            ("the table itself, in the midst of them",
             "BEGIN; TRUNCATE {t}; INSERT INTO {t} SELECT i, CASE WHEN i > 2000 THEN (SELECT count(*) FROM {t}) END"
             f" FROM {many}; COMMIT"),
            ("a generated column whose function fails within",
             "CREATE OR REPLACE FUNCTION is_json(t int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$"
             " BEGIN IF t % 100 = 0 THEN PERFORM 'x'::json; END IF; PERFORM 1; RETURN 1;"
             " EXCEPTION WHEN others THEN RETURN 0; END $$;"
             " ALTER TABLE {t} ADD COLUMN ok int GENERATED ALWAYS AS (is_json(v)) STORED;"
             f" INSERT INTO {{t}} SELECT i, i FROM {many}"),
            ("an index of such a function", "CREATE INDEX ON {t} (is_json(v));"
             f" INSERT INTO {{t}} SELECT i, i FROM {many}"),
            ("the same, in place", "CREATE INDEX ON {t} (is_json(v));"
             f" BEGIN; TRUNCATE {{t}}; INSERT INTO {{t}} SELECT i, i FROM {many}; COMMIT"),
            ("a domain of such a function", "DROP DOMAIN IF EXISTS strange; CREATE DOMAIN strange AS int"
             " CHECK (is_json(VALUE) < 2);"
             f" INSERT INTO {{t}} SELECT i, i::strange FROM {many}"),
            ("a key twice", f"INSERT INTO {{t}} SELECT i % 4999, i FROM {many}"),
            ("a key twice, caught", "DO $$ BEGIN BEGIN INSERT INTO {t} SELECT i % 4999, 1 FROM"
             f" {many}; EXCEPTION WHEN unique_violation THEN INSERT INTO {{t}} SELECT i, 2 FROM {many}; END; END $$"),
            ("an error in the middle", f"INSERT INTO {{t}} SELECT i, 1 / (3000 - i) FROM {many}"),
            ("one in a savepoint", "BEGIN; TRUNCATE {t}; SAVEPOINT a;"
             f" INSERT INTO {{t}} SELECT i, 1 / (3000 - i) FROM {many}; ROLLBACK TO a;"
             f" INSERT INTO {{t}} SELECT i, 2 FROM {many}; COMMIT"),
            ("a constraint", "ALTER TABLE {t} ADD CHECK (v < 4000);"
             f" INSERT INTO {{t}} SELECT i, i FROM {many}"),
            ("no nulls", f"INSERT INTO {{t}} SELECT nullif(i, 4000), i FROM {many}"),
            ("a cursor that is older", f"BEGIN; INSERT INTO {{t}} SELECT i, i FROM {many};"
             " DECLARE c CURSOR FOR SELECT count(*) FROM {t}; INSERT INTO {t} SELECT -i, i FROM"
             f" {many}; INSERT INTO {{t}} SELECT 100000, 1; FETCH c; COMMIT"),
            ("a trigger", "CREATE OR REPLACE FUNCTION twice() RETURNS trigger LANGUAGE plpgsql AS"
             " $$ BEGIN NEW.v = 2 * NEW.v; RETURN NEW; END $$;"
             " CREATE TRIGGER twice BEFORE INSERT ON {t} FOR EACH ROW EXECUTE FUNCTION twice();"
             f" INSERT INTO {{t}} SELECT i, i FROM {many}"),
            ("a trigger of the statement", "CREATE OR REPLACE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS"
             " $$ BEGIN INSERT INTO {t} SELECT -1, count(*) FROM {t}; RETURN NULL; END $$;"
             " CREATE TRIGGER note AFTER INSERT ON {t} FOR EACH STATEMENT WHEN (pg_trigger_depth() = 0)"
             f" EXECUTE FUNCTION note(); INSERT INTO {{t}} SELECT i, i FROM {many}"),
            ("a unique index", "CREATE UNIQUE INDEX ON {t} (v);"
             f" INSERT INTO {{t}} SELECT i, i % 4000 FROM {many}"),
            ("another index", "CREATE INDEX ON {t} (v); SET enable_seqscan = off;"
             f" INSERT INTO {{t}} SELECT i, i FROM {many}; DELETE FROM {{t}} WHERE v > 2500;"
             f" INSERT INTO {{t}} SELECT i, -i FROM generate_series(2501, 2600) i"),
            ("a prepared statement", "PREPARE p (int) AS INSERT INTO {t} SELECT i + $1, i FROM"
             f" {many}; EXECUTE p (0); EXECUTE p (5000); EXECUTE p (10000); EXECUTE p (4999)")):
        both(box, statements, what)
    box.psql("DROP TABLE ours, heaps; DROP FUNCTION seen, twice, note; DROP DOMAIN strange; DROP FUNCTION is_json")


def what_is_told(box):
    """RETURNING of rows that are gathered, as on a heap; each statement on a table of 10 rows, on an empty one, and
    in the transaction that has emptied it."""
    many = "INSERT INTO {t} SELECT i, i % 7, 'x' FROM generate_series(101, 3100) i"
    statements = [
        many + " RETURNING id, v, t, v + id, (xmax = 0), tableoid::regclass::text = '{t}'",
        many + " RETURNING *", "WITH g AS (SELECT 5 AS five) " + many + " RETURNING id, (SELECT five FROM g)",
        many + " RETURNING (SELECT count(*) FROM {t})", many + " RETURNING id, (SELECT max(c.v) FROM {t} c WHERE c.id = 101)",
        many + " RETURNING seen_in_{t}(id)", many.replace("i % 7", "i % 7 - (i = 3000)::int * 10") + " RETURNING id",
        many.replace("SELECT i,", "SELECT i % 2999 + 101,") + " RETURNING id",
        "INSERT INTO {t} VALUES " + ",".join(f"({i}, {i % 5}, 'v')" for i in range(200, 300)) + " RETURNING id, gen"]
    columns = "(id int PRIMARY KEY, v int CHECK (v >= 0), t text, gen int GENERATED ALWAYS AS (v * 2) STORED)"
    heads = {"plain": f"CREATE TABLE {{t}} {columns} USING {{m}};",
             "divided": f"CREATE TABLE {{t}} {columns} PARTITION BY RANGE (id); SET default_table_access_method = {{m}};"
             "CREATE TABLE {t}_1 PARTITION OF {t} FOR VALUES FROM (0) TO (900);"
             "CREATE TABLE {t}_2 PARTITION OF {t} FOR VALUES FROM (900) TO (1000) PARTITION BY LIST (id);"
             "CREATE TABLE {t}_2d PARTITION OF {t}_2 DEFAULT;"
             "CREATE TABLE {t}_3 PARTITION OF {t} FOR VALUES FROM (1000) TO (2500);"
             "CREATE TABLE {t}_d PARTITION OF {t} DEFAULT; CREATE UNIQUE INDEX ON {t}_3 (id, v); CREATE INDEX ON {t} (v);"}
    ends = {"rows": ("INSERT INTO {t} SELECT i, 1, 'old' FROM generate_series(1, 10) i;", ""), "no row": ("", ""),
            "emptied": ("BEGIN; TRUNCATE {t};", "COMMIT;")}
    for head, make in heads.items():
        for table, method in (("ours", "rdmacc"), ("heaps", "heap")):
            box.psql(make.format(t=table, m=method) + f"CREATE FUNCTION seen_in_{table}(int) RETURNS bigint VOLATILE"
                     f" LANGUAGE sql AS 'SELECT count(*) FROM {table}';")
        leaves = ("ours",) if head == "plain" else ("ours_1", "ours_3", "ours_d")
        session = Session(box, options=("-q", "-A", "-t", "-v", "VERBOSITY=sqlstate"))
        for (end, (before, after)), statement in itertools.product(ends.items(), statements):
            what = f"{head}, {end}, {statement}"
            told = [session.run(f"TRUNCATE {{t}}; {before} {statement}; {after}"
                                "SELECT tableoid::regclass::text ~ '_3', * FROM {t} ORDER BY id;".format(t=table))
                    for table in ("ours", "heaps")]
            true(told[0] == told[1], f"{what}: {told[0][:100]} {told[1][:100]}")
        session.close()
        for leaf in leaves:
            equal(box.psql(f"SELECT * FROM rdmacc.verify('{leaf}')"), "", f"{what}: verify")
        box.psql("DROP TABLE ours, heaps; DROP FUNCTION seen_in_ours, seen_in_heaps")


def rows_that_statistics_do_not_know(box):
    """The session that has just inserted them has not reported them."""
    emptied(box)
    session = Session(box)
    equal(session.run(f"INSERT INTO t VALUES (-1, 'mine'); COPY t {from_file(box)};"
                      "SELECT count(*), min(id) FROM t;"), f"{ROWS + 1}|-1", "rows")
    session.close()


def foreign_keys(box):
    box.psql("CREATE TABLE child (id int PRIMARY KEY REFERENCES parent) USING rdmacc")
    for count in (ROWS, ROWS + 1):
        write_file(box, f"children{count}", b"".join(b"%040d\n" % i for i in range(1, count + 1)))
    copy = "COPY child " + from_file(box, "children{}")
    for last, expected in ((ROWS, "00000"), (ROWS + 1, "23503")):
        box.psql("TRUNCATE child")
        before = file_of(box, "child")
        equal(sqlstate(box.psql(copy.format(last), check=False)), expected, f"{last} children")
        equal(file_of(box, "child") != before, expected == "00000", f"{last} children: a new file")
    equal(box.psql("SELECT count(*) FROM child"), "0", "children without a parent")
    equal(sqlstate(box.psql("DELETE FROM parent WHERE id = 1", check=False)), "00000", "no child")
    box.psql("INSERT INTO parent VALUES (1)")
    box.psql(copy.format(ROWS))
    equal(sqlstate(box.psql("DELETE FROM parent WHERE id = 1", check=False)), "23503", "its child")
    box.psql("DROP TABLE child")


def round_trips(box, table):
    """Of a look-up in a session that has looked before: one more where the row lies in a block."""
    session = Session(box)
    session.run(f"SELECT v FROM {table} WHERE id = 1; SELECT v FROM {table} WHERE id = 2;")
    plans = [json.loads(session.run("EXPLAIN (ANALYZE, COSTS off, SUMMARY off, FORMAT json)"
                                    f" SELECT v FROM {table} WHERE id = {key};"))
             for key in range(1001, 1011)]
    session.close()
    return min(plan[0]["Plan"]["Engine Round Trips"] for plan in plans)


def records_fit_the_rows(box):
    """Those of the first batch: 7 of 8 have room in their slots, and no block."""
    box.psql("CREATE TABLE narrow (id int PRIMARY KEY, v text) USING rdmacc WITH (rdmacc.record_size = 32);"
             f" COPY narrow {from_file(box, 'long_rows')}")
    in_block = round_trips(box, "narrow")
    box.psql("DROP TABLE narrow")
    for name, make in (
            ("COPY", "CREATE TABLE wide (id int PRIMARY KEY, v text) USING rdmacc;"
             f" COPY wide {from_file(box, 'long_rows')}"),
            ("made by a query", "CREATE TABLE wide USING rdmacc AS"
             " SELECT i AS id, repeat('x', 120) AS v FROM generate_series(1, 5000) i;"
             " ALTER TABLE wide ADD PRIMARY KEY (id)"),
            ("another key", "CREATE TABLE wide (id int, v text) USING rdmacc;"
             f" COPY wide {from_file(box, 'long_rows')}; ALTER TABLE wide ADD PRIMARY KEY (id)"),
            ("written anew", "CREATE TABLE wide (id int PRIMARY KEY, v text) USING rdmacc;"
             " SET rdmacc.exclusive_loads = off;"
             f" COPY wide {from_file(box, 'long_rows')}; VACUUM FULL wide")):
        box.psql(make)
        equal(round_trips(box, "wide"), in_block - 1, f"{name}: round trips")
        equal(box.psql("SELECT count(*), sum(length(v)) FROM wide"), "5000|600000", f"{name}: rows")
        equal(box.psql("SELECT * FROM rdmacc.verify('wide')"), "", f"{name}: verify")
        box.psql("DROP TABLE wide")


def rows_survive(box):
    emptied(box)
    box.psql(f"COPY t {from_file(box)}")
    box.psql(f"CREATE TABLE wide (id int PRIMARY KEY, v text) USING rdmacc; COPY wide {from_file(box, 'long_rows')}")
    before = round_trips(box, "wide")
    box.stop("immediate")
    box.start()
    wait_until_up(box)
    has_all(box, "after a crash")
    equal(box.psql("SELECT count(*), sum(length(v)) FROM wide"), "5000|600000", "long rows")
    equal(round_trips(box, "wide"), before, "round trips of a look-up")
    box.psql("DROP TABLE wide")


def tables(box):
    return int(box.psql("SELECT max(tables) FROM rdmacc.stat_nodes"))


def a_load_that_is_killed(box):
    """Its table is as it was, and nothing of the new one is left."""
    before = emptied(box)
    box.psql("SELECT rdmacc.checkpoint()")
    count = tables(box)
    wire = Wire(box)
    pid = int(wire.query("SELECT pg_backend_pid()")[0][0])
    wire.message("Q", b"COPY t FROM STDIN\0")
    for part in range(5):
        wire.message("d", lines(1 + part * ROWS, ROWS))
    eventually(lambda: box.psql("SELECT count(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock'"
                                f" AND pid = {pid} AND relation = 't'::regclass") == "1", "a new file")
    os.kill(pid, signal.SIGKILL)
    wire.close()
    wait_until_up(box)
    equal(box.psql("SELECT count(*) FROM t"), "0", "rows")
    equal(file_of(box), before, "the file")
    eventually(lambda: tables(box) <= count, "tables of what was killed are gone", 20)
    box.psql(f"COPY t {from_file(box)}")
    has_all(box, "loaded again")
    verify(box, "after a kill", losses=True)


class Loader(Worker):
    """Loads its own keys into a table that it or another one has emptied."""

    numbers = itertools.count(1)

    def __init__(self, box, settings):
        self.number = next(Loader.numbers)
        self.loads = 0
        super().__init__(box, settings)

    def step(self):
        first = 10_000_000 * self.number + 10_000 * (self.loads % 1000)
        empty = "TRUNCATE t;" if self.loads % 2 == 0 else "DELETE FROM t;"
        tag = f"load {self.number} {self.loads}, and more of it"
        rows = f"INSERT INTO t SELECT i, '{tag}' FROM generate_series({first + 1}, {first + ROWS}) i;"
        if self.loads % 3:
            name = f"load{self.number}"
            write_file(self.box, name, lines(first + 1, ROWS, tag))
            rows = f"COPY t {from_file(self.box, name)};"
        said = self.session.run(f"{empty} {rows}")
        true(said == "" or "40001" in said or "40P01" in said, f"a load: {said}")
        self.loads += 1


class Looker(Worker):
    """A load is there as a whole or not at all."""

    looks = 0

    def step(self):
        said = self.session.run("SELECT v, count(*) FROM t WHERE v LIKE 'load%' GROUP BY v;")
        if "ERROR" in said:
            matches("40001|40P01", said, "a look")
            return
        parts = [line.split("|") for line in said.split("\n") if line]
        true(all(int(count) == ROWS for _, count in parts), f"parts of loads: {parts}")
        self.looks += 1


class Inserter(Worker):
    """Rows of its own come and go between."""

    done = 0

    def step(self):
        said = self.session.run("INSERT INTO t VALUES (-5, 'one');"
                                " UPDATE t SET v = 'two' WHERE id = -5; DELETE FROM t WHERE id = -5;")
        if said:
            matches("40001|40P01", said, "an insert")
            self.session.run("DELETE FROM t WHERE id = -5;")
        self.done += 1


def beside_each_other(box):
    for protocol in ("occ", "woundwait", "tictoc", "mvcc"):
        emptied(box)
        setting = f"SET rdmacc.protocol = {protocol};"
        loaders = [Loader(box, setting) for _ in range(2)]
        others = [Looker(box, setting), Inserter(box, setting)]
        try:
            eventually(lambda: all(loader.loads > 1 for loader in loaders) and others[0].looks
                       and others[1].done, f"{protocol}: all get on", 60)
            time.sleep(SECONDS)
        finally:
            stop_all(loaders + others)
        print(f"  {protocol}: {sum(loader.loads for loader in loaders)} loads, {others[0].looks} looks,"
              f" {others[1].done} inserts", flush=True)
        verify(box, protocol)
        eventually(lambda: box.psql("SELECT count(*) FROM rdmacc.locks") == "0", f"{protocol}: no locks")


run(set_up, of_a_file, a_program_may_read_the_table, from_the_client, a_client_does_not_wait_for_itself, what_fails,
    not_where_it_would_matter, rows_of_a_query, what_a_query_sees_meanwhile, what_is_told, rows_that_statistics_do_not_know, foreign_keys,
    records_fit_the_rows, rows_survive, a_load_that_is_killed, beside_each_other,
    settings={"rdmacc.nodes": 2, "rdmacc.node_memory": "512MB"})
