#!/usr/bin/env python3
"""COPY FROM STDIN in transaction blocks that the server runs again: what the client has sent for it is
kept, and given to it again."""

import struct

from hammer import retries, value
from harness import Session, equal, eventually, matches, run
from wire import Wire

SET_UP = """
CREATE TABLE t (id int PRIMARY KEY, v int NOT NULL) USING rdmacc;
INSERT INTO t SELECT i, 0 FROM generate_series(1, 100) i;
CREATE TABLE copied (id int, v text) USING rdmacc;
CREATE TABLE plain (id int) USING heap;
CREATE TABLE told (id int) USING rdmacc;
CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN RAISE NOTICE 'row %', NEW.id; RETURN NEW; END $$;
CREATE TRIGGER tells BEFORE INSERT ON told FOR EACH ROW EXECUTE FUNCTION tell();
CREATE ROLE guest LOGIN;
"""
COPY = "COPY copied FROM STDIN"
READ = "SELECT v < 100 FROM t WHERE id = 6"
WRITE = "UPDATE t SET v = v + 10 WHERE id = 7"
DONE = ["COMMIT"]


def set_up(box):
    box.psql(SET_UP)


class Block:
    """A block under OCC that has read what another session changes before its COMMIT."""

    def __init__(self, box, settings=""):
        self.box = box
        self.wire = Wire(box)
        box.psql("DELETE FROM copied; UPDATE t SET v = 0 WHERE id IN (6, 7)")
        self.before = retries(box, "occ")
        self.wire.query(f"SET rdmacc.protocol = occ; {settings}")
        self.wire.query("BEGIN")
        self.wire.query(READ)

    def commit(self):
        """What COMMIT says after the change."""
        self.wire.query(WRITE)
        self.box.psql("UPDATE t SET v = v + 1 WHERE id = 6")
        said = self.wire.query("COMMIT")
        self.wire.close()
        return said

    def commits(self, rows):
        equal(self.commit(), DONE, "COMMIT")
        equal(self.box.psql("SELECT string_agg(id || v, ',' ORDER BY id) FROM copied"), rows, "rows")
        equal(retries(self.box, "occ"), self.before + 1, "attempts that were lost")
        equal(value(self.box, 7), 10, "the rest of the block")


def rows_come_once(box):
    block = Block(box)
    equal(block.wire.copy(COPY, b"1\ta\n2\t", b"b\n", b"", b"3\tc"), ["copy in 0 2", "COPY 3"], "COPY")
    equal(block.wire.copy("COPY copied (id) FROM STDIN WHERE id > 4", b"4\n5\n"), ["copy in 0 1", "COPY 1"],
          "some columns and rows")
    block.commits("1a,2b,3c")
    equal(box.psql("SELECT count(*) FROM copied WHERE id = 5 AND v IS NULL"), "1", "the other COPY's")


def nothing_is_copied(box):
    block = Block(box)
    equal(block.wire.copy(COPY), ["copy in 0 2", "COPY 0"], "COPY of no data")
    equal(block.wire.copy(COPY, b"\\.\n", b"9\tz\n"), ["copy in 0 2", "COPY 0"], "data after its end")
    equal(block.wire.query("SELECT 5"), [["5"], "SELECT 1"], "the next message is a statement")
    block.commits("")
    wire = Wire(box)
    more = b"9\tz\n" * 50000  # than COPY reads at once
    equal(wire.copy(COPY, b"\\.\n", more, end="f", reason=b"no more\0"), ["copy in 0 2", "error 57014"],
          "a client that gives up behind the end of its data")
    wire.close()


def rows_of_a_heap(box):
    block = Block(box)
    block.wire.copy(COPY, b"1\ta\n")
    equal(block.wire.copy("COPY plain FROM STDIN", b"1\n2\n"), ["copy in 0 1", "COPY 2"], "COPY")
    block.commits("1a")
    equal(box.psql("SELECT count(*) FROM plain"), "2", "its rows")


def binary_rows(box):
    field = lambda bytes_: struct.pack("!i", len(bytes_)) + bytes_
    data = (b"PGCOPY\n\xff\r\n\0" + struct.pack("!ii", 0, 0) + struct.pack("!h", 2)
            + field(struct.pack("!i", 8)) + field(b"x") + struct.pack("!h", -1))
    block = Block(box)
    equal(block.wire.copy(COPY + " (FORMAT binary)", data[:20], data[20:]), ["copy in 1 2", "COPY 1"], "COPY")
    block.commits("8x")


def by_extended_messages(box):
    """As libpq sends it: Sync before the data, and after it."""
    block = Block(box)
    block.wire.prepare("c", COPY)
    block.wire.bind("", "c")
    block.wire.execute("")
    block.wire.message("S")
    block.wire.message("d", b"1\tq\n")
    block.wire.message("H")
    block.wire.message("c")
    equal(block.wire.sync(), ["copy in 0 2", "COPY 1"], "COPY")
    block.commits("1q")


def loses_before_all_has_come(box):
    """The first rows meet a lock, and the last ones are sent when they have been tried several times."""
    first = b"".join(b"%d\t0\n" % i for i in range(1001, 12001))
    box.psql("DELETE FROM t WHERE id > 1000")
    lost = retries(box, "nowait")
    holder, wire = Session(box), Wire(box)
    holder.run("SET rdmacc.protocol = nowait; BEGIN; INSERT INTO t VALUES (1002, 0);")
    wire.query("SET rdmacc.protocol = nowait; SET rdmacc.replay_limit = 10000; SET rdmacc.replay_memory = '1MB'")
    wire.query("BEGIN")
    wire.query("INSERT INTO copied VALUES (50, 'before')")
    wire.message("Q", b"COPY t FROM STDIN\0")
    wire.message("d", first)
    eventually(lambda: retries(box, "nowait") > lost + 3, "several attempts")
    holder.run("ROLLBACK;")
    equal(wire.copied(b"20001\t7\n"), ["copy in 0 2", "COPY 11001"], "COPY")
    equal(wire.query("COMMIT"), DONE, "COMMIT")
    wire.close()
    holder.close()
    equal(box.psql("SELECT count(*), sum(v), max(id) FROM t WHERE id > 1000"), "11001|7|20001", "rows")
    equal(box.psql("SELECT count(*) FROM copied WHERE id = 50"), "1", "what came before it")
    box.psql("DELETE FROM t WHERE id > 1000")


def errors_of_a_copy(box):
    """Before it reads, while it reads, and the client's own; each once, and none out of step."""
    block = Block(box)
    for copy, data, end, error in (
            ("COPY copied (w) FROM STDIN", [], None, ["error 42703"]),
            (COPY, [b"1\ta\nbad\tb\n"], "c", ["copy in 0 2", "error 22P02"]),
            (COPY, [b"1\ta\tb\n", b"2\tb\n"], "c", ["copy in 0 2", "error 22P04"]),
            ("COPY t FROM STDIN", [b"1\t0\n"], "c", ["copy in 0 2", "error 23505"])):
        block.wire.query("SAVEPOINT a")
        said = block.wire.copy(copy, *data, end=end) if end else block.wire.query(copy)
        equal(said, error, f"{copy} of {data}")
        equal(block.wire.query("ROLLBACK TO a"), ["ROLLBACK"], "the session is in step")
    equal(block.wire.copy(COPY, b"4\td\n"), ["copy in 0 2", "COPY 1"], "COPY")
    block.commits("4d")
    block = Block(box)
    block.wire.query("SAVEPOINT a")
    equal(block.wire.copy(COPY, b"1\ta\n", end="f", reason=b"no more\0"), ["copy in 0 2", "error 57014"],
          "a client that gives up")
    equal(block.wire.query("ROLLBACK TO a"), ["ROLLBACK"], "the session is in step")
    equal(block.commit(), ["error 40001"], "a cancel is no answer that comes again")
    with_guest = Wire(box)
    with_guest.query("SET ROLE guest")
    with_guest.query("BEGIN")
    equal(with_guest.query(COPY), ["error 42501"], "what is not allowed")
    with_guest.close()


def what_failed_before_it_read(box):
    """Of the next attempt the client cannot be asked for rows."""
    block = Block(box)
    block.wire.query("SAVEPOINT a")
    equal(block.wire.query("COPY made_later FROM STDIN"), ["error 42P01"], "COPY")
    block.wire.query("ROLLBACK TO a")
    box.psql("CREATE TABLE made_later (id int) USING rdmacc")
    equal(block.commit(), ["error 40001"], "its conflict")
    equal(box.psql("SELECT count(*) FROM made_later"), "0", "the server is up")


def a_sync_before_the_rows(box):
    """It is COPY's, so that the transaction goes on behind it."""
    caught = ("DO $$ BEGIN PERFORM 1 / 0; EXCEPTION WHEN division_by_zero THEN"
              " INSERT INTO copied VALUES (2, 'b'); END $$")
    for last, rows in ((caught, "1a,2b"), ("SELECT 1 / 0", "")):
        box.psql("DELETE FROM copied")
        wire = Wire(box)
        wire.prepare("c", COPY)
        wire.bind("", "c")
        wire.execute("")
        wire.message("S")
        wire.message("d", b"1\ta\n")
        wire.message("c")
        wire.prepare("", last)
        wire.bind("", "")
        wire.execute("")
        equal(wire.sync()[-1], "DO" if rows else "error 22012", last)
        wire.close()
        equal(box.psql("SELECT coalesce(string_agg(id || v, ',' ORDER BY id), '') FROM copied"), rows, "rows")


def a_cancel_does_not_wait_for_rows(box):
    """They have begun to come, and their end does not."""
    wire = Wire(box)
    pid = wire.query("SELECT pg_backend_pid()")[0][0]
    wire.message("Q", COPY.encode() + b"\0")
    wire.message("d", b"1\ta\n")
    copying = f"SELECT state = 'active' AND wait_event = 'ClientRead' FROM pg_stat_activity WHERE pid = {pid}"
    eventually(lambda: box.psql(copying) == "t", "COPY has begun")
    box.psql(f"SELECT pg_cancel_backend({pid})")
    wire.message("d", b"2\tb\n")
    equal(wire.read_until_ready(), ["copy in 0 2", "error 57014"], "COPY")
    equal(wire.query("SELECT 5"), [["5"], "SELECT 1"], "the session is in step")
    wire.close()


def more_than_the_journal_may_hold(box):
    rows = b"".join(b"%d\tx\n" % i for i in range(20000))
    block = Block(box, "SET rdmacc.replay_memory = '64kB';")
    equal(block.wire.copy(COPY, rows[:100000], rows[100000:]), ["copy in 0 2", "COPY 20000"], "COPY")
    equal(block.commit(), ["error 40001"], "its conflict")
    equal(box.psql("SELECT count(*) FROM copied"), "0", "rows")
    wire = Wire(box)
    wire.query("SET rdmacc.replay_memory = '64kB'")
    wire.query("BEGIN")
    equal(wire.copy(COPY, rows[:100000], rows[100000:]), ["copy in 0 2", "COPY 20000"], "COPY")
    equal(wire.query("COMMIT"), DONE, "COMMIT without a conflict")
    wire.close()
    equal(box.psql("SELECT count(DISTINCT id), sum(id) FROM copied"), "20000|199990000", "rows")


def notices_come_while_it_runs(box):
    session = Session(box)
    session.run("SET rdmacc.protocol = occ; BEGIN;\n" + READ + ";")
    matches("row 1.*row 2", session.run("COPY told FROM STDIN;\n1\n2\n\\.\n").replace("\n", " "), "notices")
    box.psql("UPDATE t SET v = v + 1 WHERE id = 6")
    equal(session.run(WRITE + ";\nCOMMIT;"), "", "COMMIT, and no notice again")
    session.close()
    equal(box.psql("SELECT count(*) FROM told"), "2", "rows")


def notices_of_statements(box):
    """Triggers for each statement speak before COPY reads."""
    box.psql("CREATE FUNCTION say() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'before'; RETURN NULL; END $$;"
             "CREATE TRIGGER says BEFORE INSERT ON plain FOR EACH STATEMENT EXECUTE FUNCTION say()")
    session = Session(box)
    matches("before", session.run("COPY plain FROM STDIN;\n3\n\\.\n"), "its notice, alone")
    session.run("BEGIN;")
    matches("before", session.run("COPY plain FROM STDIN;\n4\n\\.\n"), "and in a block")
    session.run("ROLLBACK;")
    session.close()
    box.psql("DROP TRIGGER says ON plain")


def rows_of_other_tables_come_at_once(box):
    """Of a heap's, alone, an error does not wait for more of them."""
    wire = Wire(box)
    wire.message("Q", b"COPY plain FROM STDIN\0")
    wire.message("d", b"bad\n" + b"5\n")
    equal(wire.read_until_ready(), ["copy in 0 1", "error 22P02"], "COPY")
    wire.close()


def a_copy_alone(box):
    """It waits for the holder of its row by attempts, without a block."""
    box.psql("DELETE FROM t WHERE id > 1000")
    for protocol in ("nowait", "woundwait"):
        lost = retries(box, protocol)
        holder, wire = Session(box), Wire(box)
        holder.run(f"SET rdmacc.protocol = {protocol}; BEGIN; INSERT INTO t VALUES (1002, 0);")
        wire.query(f"SET rdmacc.protocol = {protocol}; SET rdmacc.auto_retry = 10000")
        wire.message("Q", b"COPY t FROM STDIN\0")
        wire.message("d", b"1001\t1\n1002\t2\n")
        wire.message("c")
        eventually(lambda: retries(box, protocol) > lost + 1, "several attempts")
        holder.run("ROLLBACK;")
        equal(wire.read_until_ready(), ["copy in 0 2", "COPY 2"], "COPY")
        wire.query("SET rdmacc.auto_retry = 0")
        equal(wire.copy("COPY t FROM STDIN", b"1001\t1\n"), ["copy in 0 2", "error 23505"], "what is there")
        equal(box.psql("SELECT sum(v) FROM t WHERE id > 1000"), "3", "rows")
        box.psql("DELETE FROM t WHERE id > 1000")
        wire.close()
        holder.close()


def numbers_of_sequences(box):
    """COPY's rows get others when they come again: what has been told one of them cannot."""
    box.psql("CREATE TABLE numbered (id serial PRIMARY KEY, v int) USING rdmacc")
    block = Block(box)
    block.wire.query("INSERT INTO numbered (v) VALUES (1)")
    equal(block.wire.copy("COPY numbered (v) FROM STDIN", b"2\n3\n"), ["copy in 0 1", "COPY 2"], "COPY")
    equal(block.commit(), DONE, "COMMIT")
    equal(box.psql("SELECT string_agg(v::text, ',' ORDER BY v) FROM numbered"), "1,2,3", "rows")
    block = Block(box)
    block.wire.copy("COPY numbered (v) FROM STDIN", b"4\n")
    block.wire.query("INSERT INTO copied VALUES (currval('numbered_id_seq'), 'child')")
    equal(block.commit(), ["error 40001"], "its conflict")


run(set_up, rows_come_once, nothing_is_copied, rows_of_a_heap, binary_rows, by_extended_messages,
    loses_before_all_has_come, errors_of_a_copy, what_failed_before_it_read, a_sync_before_the_rows,
    a_cancel_does_not_wait_for_rows, more_than_the_journal_may_hold, notices_come_while_it_runs,
    notices_of_statements, rows_of_other_tables_come_at_once, a_copy_alone, numbers_of_sequences,
    settings={"rdmacc.nodes": 2, "rdmacc.durability": "memory", "rdmacc.node_memory": "256MB",
              "autovacuum": "off"})
