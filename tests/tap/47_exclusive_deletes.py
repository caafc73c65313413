#!/usr/bin/env python3
"""DELETE of all rows: the table gets a new file where no other session uses it (rdmacc.exclusive_deletes).
DELETE_SECONDS=30: its storm goes on for longer, under all protocols."""

import itertools
import os
import random
import time

from harness import Session, equal, eventually, matches, run, sqlstate, true, wait_until_up
from storm import Worker, stop_all
from verify import verify
from wire import Wire

SECONDS = float(os.environ.get("DELETE_SECONDS", "0.5"))
ROWS = 5000
PAUSES_S = (0.02, 0.2)  # of each client of the storm: else one would always use the table
LOCKING = ("nowait", "waitdie", "woundwait")  # what they read
STORM = ("nowait", "occ", "mvcc", "tictoc", "cicada") if "DELETE_SECONDS" not in os.environ else (
    *LOCKING, "occ", "mvcc", "sundial", "timestamp", "maat", "tictoc", "cicada", "drtm")
FILL = f"INSERT INTO t SELECT i, i % 10 FROM generate_series(1, {ROWS}) i; ANALYZE t"
SET_UP = """
CREATE TABLE t (id int PRIMARY KEY, v int) USING rdmacc;
CREATE INDEX ON t (v);
CREATE VIEW seen AS SELECT * FROM t;
CREATE TABLE u (id int PRIMARY KEY) USING rdmacc;
CREATE TABLE log (id int) USING rdmacc;
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO log VALUES (1); RETURN OLD; END $$;
CREATE ROLE deleter LOGIN;
GRANT DELETE, SELECT ON t TO deleter;
"""


def set_up(box):
    box.psql(SET_UP)


def file_of(box, table="t"):
    return box.psql(f"SELECT pg_relation_filenode('{table}')")


def filled(box):
    box.psql("TRUNCATE t; " + FILL)
    return file_of(box)


def begins_anew(box):
    for table in ("t", "seen", "ONLY t", "t WHERE true"):
        before = filled(box)
        equal(box.psql(f"DELETE FROM {table};\n\\echo :ROW_COUNT"), str(ROWS), f"{table}: rows deleted")
        true(file_of(box) != before, f"{table}: a new file")
        for scan in ("", "SET enable_seqscan = off; ", "SET enable_indexscan = off; "):
            equal(box.psql(scan + "SELECT count(*) FROM t WHERE v BETWEEN 0 AND 9"), "0", f"{table}: {scan}rows")
        box.psql("INSERT INTO t VALUES (7, 7), (8, 7)")
        equal(box.psql("SELECT id FROM t WHERE v = 7 ORDER BY id"), "7\n8", f"{table}: rows of later")
        equal(box.psql("SELECT * FROM rdmacc.verify('t')"), "", f"{table}: verify")


def by_messages_of_the_extended_protocol(box):
    """The session fills the table itself: it asks for others' numbers of rows once a second."""
    wire = Wire(box)
    wire.prepare("all", "DELETE FROM t")
    wire.prepare("none", "DELETE FROM t WHERE id < 0")
    wire.sync()

    def fill():
        for statement in ["TRUNCATE t"] + FILL.split("; "):
            wire.query(statement)
        return file_of(box)

    for _ in range(3):  # the plan is an older one each time
        before = fill()
        wire.hold()
        wire.bind("", "all")
        wire.execute("")
        equal(wire.sync(), [f"DELETE {ROWS}"], "what it tells")
        true(file_of(box) != before, "a new file")
    before = fill()
    wire.hold()
    wire.bind("a", "all")
    wire.bind("b", "none")
    wire.execute("a")
    wire.execute("b")
    equal(wire.sync(), [f"DELETE {ROWS}", "DELETE 0"], "of a pipeline")
    equal(file_of(box), before, "of a pipeline: the file")
    wire.close()


def statistics(box):
    session = Session(box)
    filled(box)
    session.run("SELECT pg_stat_force_next_flush();")
    before = int(box.psql("SELECT n_tup_del FROM pg_stat_user_tables WHERE relname = 't'"))
    session.run("DELETE FROM t; SELECT pg_stat_force_next_flush();")
    eventually(lambda: box.psql("SELECT n_tup_del, n_live_tup FROM pg_stat_user_tables WHERE relname = 't'")
               == f"{before + ROWS}|0", "rows deleted, and alive")
    session.close()


def not_where_it_would_matter(box):
    """As if there were no such thing; rows are deleted one by one."""
    for name, before, statement, after in (
            ("RETURNING", "", "WITH x AS (DELETE FROM t RETURNING id) SELECT count(*) FROM x", ""),
            ("a condition", "", "DELETE FROM t WHERE id > 0", ""),
            ("another table", "INSERT INTO u VALUES (1)", "DELETE FROM t USING u", "TRUNCATE u"),
            ("a subquery", "", "DELETE FROM t WHERE (SELECT count(*) FROM u) = 0", ""),
            ("a trigger for each row", "CREATE TRIGGER a BEFORE DELETE ON t FOR EACH ROW EXECUTE FUNCTION note()",
             "DELETE FROM t", f"SELECT 1 / (count(*) = {ROWS})::int FROM log; TRUNCATE log; DROP TRIGGER a ON t"),
            ("a trigger of the statement",
             "CREATE TRIGGER a AFTER DELETE ON t REFERENCING OLD TABLE AS o EXECUTE FUNCTION note()",
             "DELETE FROM t", "SELECT 1 / (count(*) = 1)::int FROM log; TRUNCATE log; DROP TRIGGER a ON t"),
            ("a foreign key", "CREATE TABLE child (id int REFERENCES t) USING rdmacc", "DELETE FROM t",
             "DROP TABLE child"),
            ("a policy", "ALTER TABLE t ENABLE ROW LEVEL SECURITY; ALTER TABLE t FORCE ROW LEVEL SECURITY;"
             "CREATE POLICY p ON t USING (v >= 0); ALTER TABLE t OWNER TO deleter; GRANT CREATE ON SCHEMA public TO deleter",
             "SET ROLE deleter; DELETE FROM t",
             "DROP POLICY p ON t; ALTER TABLE t DISABLE ROW LEVEL SECURITY; ALTER TABLE t OWNER TO postgres;"
             "GRANT DELETE, SELECT ON t TO deleter"),
            ("a child", "CREATE TABLE heir () INHERITS (t) USING rdmacc", "DELETE FROM t", "DROP TABLE heir"),
            ("a block", "", "BEGIN; DELETE FROM t; COMMIT", ""),
            ("code", "", "DO $$ BEGIN DELETE FROM t; END $$", ""),
            ("a statement that explains", "", "EXPLAIN ANALYZE DELETE FROM t", ""),
            ("a user that may not TRUNCATE", "", "SET ROLE deleter; DELETE FROM t", ""),
            ("shared locks", "", "SET rdmacc.protocol = nowait; SET rdmacc.lock_mode = shared; DELETE FROM t", ""),
            ("no retries", "", "SET rdmacc.auto_retry = 0; DELETE FROM t", ""),
            ("switched off", "", "SET rdmacc.exclusive_deletes = off; DELETE FROM t", "")):
        filled(box)
        box.psql(before or "SELECT 1")
        file = file_of(box)
        box.psql(statement)
        equal(file_of(box), file, f"{name}: the file")
        equal(box.psql("SELECT count(*) FROM t"), "0", f"{name}: rows")
        box.psql(after or "SELECT 1")
    filled(box)
    equal(sqlstate(box.psql("SET default_transaction_read_only = on; DELETE FROM t", check=False)), "25006", "read only")
    equal(box.psql("SELECT count(*) FROM t"), str(ROWS), "read only: rows")


def beside_a_reader(box):
    """It need not wait for the reader's end, and the reader sees one state."""
    for protocol in ("occ", "mvcc"):
        before = filled(box)
        session = Session(box)
        session.run(f"SET rdmacc.protocol = {protocol}; BEGIN; SELECT count(*) FROM t;")
        equal(box.psql(f"SET rdmacc.protocol = {protocol}; DELETE FROM t;\n\\echo :ROW_COUNT"), str(ROWS), "rows deleted")
        equal(file_of(box), before, f"{protocol}: the file")
        matches(f"^{ROWS}$|40001", session.run("SELECT count(*) FROM t; COMMIT;"), f"{protocol}: the reader")
        session.close()


def it_waits_for_those_that_have_locked_what_they_read(box):
    """Below a savepoint that is no more: no lock of PostgreSQL's is left of that."""
    for protocol in LOCKING:
        for read in ("SELECT count(*) FROM t", "SELECT count(*) FROM t WHERE id = 77",
                     "SELECT count(*) FROM t WHERE v = 7 AND id < 100"):
            filled(box)
            session, deleter = Session(box), Session(box)
            seen = session.run(f"SET rdmacc.protocol = {protocol}; BEGIN; SAVEPOINT s; {read}; ROLLBACK TO s;")
            deleter.run(f"SET rdmacc.protocol = {protocol}; SET rdmacc.auto_retry = 10000;")
            deleter.send("DELETE FROM t;\n\\echo :ROW_COUNT")
            again = session.run(f"SELECT pg_sleep(0.3); {read};").strip()
            equal(again, seen, f"{protocol}, {read}: what is read once more")
            equal(session.run("COMMIT;"), "", f"{protocol}, {read}: its commit")
            equal(deleter.result(), str(ROWS), f"{protocol}, {read}: rows deleted")
            equal(box.psql("SELECT count(*) FROM t"), "0", f"{protocol}, {read}: rows")
            session.close()
            deleter.close()


def after_a_crash(box):
    filled(box)
    box.psql("DELETE FROM t")
    box.psql("INSERT INTO t VALUES (1, 1)")
    box.stop("immediate")
    box.start()
    wait_until_up(box)
    equal(box.psql("SELECT * FROM t"), "1|1", "rows of later alone")
    filled(box)
    box.stop("immediate")
    box.start()
    wait_until_up(box)
    equal(box.psql("DELETE FROM t;\n\\echo :ROW_COUNT"), str(ROWS), "rows deleted after a crash")
    verify(box, "after a crash", losses=True)


class Inserter(Worker):
    """Rows that no other one has, in one statement: all or none."""

    numbers = itertools.count(1)
    PART = 2500

    def __init__(self, box, settings):
        self.first = 10_000_000 * next(Inserter.numbers)
        self.inserted = 0
        super().__init__(box, settings)

    def step(self):
        last = self.first + self.PART
        said = self.session.run(f"INSERT INTO t SELECT i, i % 10 FROM generate_series({self.first + 1}, {last}) i;")
        matches("^$|40001|40P01", said, "an insert")
        if said == "":
            self.inserted += self.PART
        self.first = last
        time.sleep(random.uniform(*PAUSES_S))


class Deleter(Worker):
    deleted = 0
    done = 0

    def step(self):
        said = self.session.run("DELETE FROM t;\n\\echo :ROW_COUNT")
        if "ERROR" in said:
            matches("40001|40P01", said, "a delete")
            return
        equal(int(said) % Inserter.PART, 0, "rows of inserts, each whole")
        self.deleted += int(said)
        self.done += said != "0"
        time.sleep(random.uniform(*PAUSES_S))


class Looker(Worker):
    looks = 0

    def step(self):
        said = self.session.run("SELECT count(*) FROM t;")
        if "ERROR" in said:
            matches("40001|40P01", said, "a look")
            return
        equal(int(said) % Inserter.PART, 0, "rows of inserts, each whole")
        self.looks += 1
        time.sleep(random.uniform(*PAUSES_S))


def no_row_is_deleted_twice_or_forgotten(box):
    for protocol in STORM:
        box.psql("TRUNCATE t")
        files = set()
        setting = f"SET rdmacc.protocol = {protocol};"
        inserters = [Inserter(box, setting + "SET rdmacc.exclusive_loads = off;") for _ in range(2)]
        deleters = [Deleter(box, setting) for _ in range(2)]
        others = [Looker(box, setting)]
        try:
            eventually(lambda: files.add(file_of(box)) is None and len(files) > 3
                       and all(one.inserted for one in inserters) and all(one.done for one in deleters)
                       and others[0].looks, f"{protocol}: all get on", 60)
            time.sleep(SECONDS)
        finally:
            stop_all(inserters + deleters + others)
        inserted, deleted = (sum(one.inserted for one in inserters), sum(one.deleted for one in deleters))
        print(f"  {protocol}: {inserted} rows inserted, {deleted} deleted, {others[0].looks} looks,"
              f" {len(files)} files", flush=True)
        equal(int(box.psql("SELECT count(*) FROM t")), inserted - deleted, f"{protocol}: rows that are left")
        equal(box.psql("SET enable_seqscan = off; SELECT count(*) FROM t WHERE v BETWEEN 0 AND 9"),
              str(inserted - deleted), f"{protocol}: by the index")
        verify(box, protocol)
        eventually(lambda: box.psql("SELECT count(*) FROM rdmacc.locks") == "0", f"{protocol}: no locks")


run(set_up, begins_anew, by_messages_of_the_extended_protocol, statistics, not_where_it_would_matter, beside_a_reader,
    it_waits_for_those_that_have_locked_what_they_read, after_a_crash, no_row_is_deleted_twice_or_forgotten,
    settings={"rdmacc.nodes": 2, "rdmacc.node_memory": "512MB"})
