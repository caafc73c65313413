#!/usr/bin/env python3
"""Statements that lose against others are run again by the server (rdmacc.auto_retry): no client
sees a conflict, nothing is done twice, and what must not be repeated is not."""

import subprocess

from hammer import CLIENTS, hammer, retries, value
from harness import Session, equal, eventually, fails_with, matches, protocols, run, true

EACH = 60
FEW = 25
# What runs a statement again asks no protocol but for its conflict.
WITH_EVERY_SCRIPT = ("nowait", "occ", "mvcc", "calvin")
SET_UP = """
CREATE TABLE t (id int PRIMARY KEY, v int NOT NULL) USING rdmacc;
INSERT INTO t SELECT i, 0 FROM generate_series(1, 100) i;
CREATE TABLE wide (id int PRIMARY KEY, v text) USING rdmacc;
INSERT INTO wide SELECT i, repeat('x', 100) FROM generate_series(1, 5000) i;
CREATE TABLE noted (v int);
CREATE FUNCTION note_in_t() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN UPDATE t SET v = v + 1 WHERE id = 2; RETURN NULL; END $$;
CREATE FUNCTION add_one(wanted int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE result int;
BEGIN
  BEGIN
    INSERT INTO t VALUES (wanted, 0);
  EXCEPTION WHEN unique_violation THEN NULL;
  END;
  UPDATE t SET v = v + 1 WHERE id = wanted RETURNING v INTO result;
  RETURN result;
END $$;
CREATE FUNCTION run_and_add(statement text) RETURNS int LANGUAGE plpgsql AS
  $$ BEGIN EXECUTE statement; RETURN add_one(1); END $$;
CREATE PROCEDURE add_to(wanted int, INOUT result int) LANGUAGE plpgsql AS
  $$ BEGIN result := add_one(wanted); END $$;
CREATE PROCEDURE add_and_commit(first int, second int) LANGUAGE plpgsql AS
  $$ BEGIN PERFORM add_one(first); COMMIT; PERFORM add_one(second); END $$;
"""
# name: (statement, by which messages of PostgreSQL's protocol)
SCRIPTS = {
    "update": ("UPDATE t SET v = v + 1 WHERE id = 1;", "simple"),
    "returning": ("UPDATE t SET v = v + 1 WHERE id = 1 RETURNING v;", "prepared"),
    "upsert": ("INSERT INTO t VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET v = t.v + 1;", "extended"),
    "function": ("SELECT add_one(1);", "simple"),
    "call": ("CALL add_to(1, 0);", "simple"),
    "prepared call": ("CALL add_to(1, 0);", "prepared"),
    "do": ("DO $$ BEGIN PERFORM add_one(1); END $$;", "simple"),
    "execute": ("PREPARE p AS UPDATE t SET v = v + 1 WHERE id = 1 RETURNING v;\nEXECUTE p;\nDEALLOCATE p;",
                "simple"),
    "with": ("WITH u AS (UPDATE t SET v = v + 1 WHERE id = 1 RETURNING v) SELECT * FROM u;", "simple"),
}


def set_up(box):
    box.psql(SET_UP)


def no_client_sees_a_conflict(box):
    """And nothing is lost or done twice."""
    for protocol in protocols(box):
        before = retries(box, protocol)
        names = SCRIPTS if protocol in WITH_EVERY_SCRIPT else ("update", "call")
        for name in names:
            script, mode = SCRIPTS[name]
            each = EACH if name == "update" else FEW
            box.psql("UPDATE t SET v = 0 WHERE id = 1")
            equal(hammer(box, protocol, script, mode, each=each), 0, f"{protocol}, {name}: failed")
            equal(value(box), CLIENTS * each, f"{protocol}, {name}: additions")
        print(f"  {protocol}: {retries(box, protocol) - before} retries", flush=True)
        # Under WOUND_WAIT a holder that has its only lock commits, whether it is wounded or not.
        if protocol != "woundwait":
            true(retries(box, protocol) > before, f"{protocol}: no session had to retry")


def without_it_clients_see_conflicts(box):
    box.psql("UPDATE t SET v = 0 WHERE id = 1; SELECT rdmacc.stat_reset()")
    failed = 0
    for protocol in ("nowait", "occ"):
        failed += hammer(box, protocol, SCRIPTS["update"][0], settings="-c rdmacc.auto_retry=0")
    true(failed > 0, "no session lost")
    equal(value(box), 2 * CLIENTS * EACH - failed, "additions of those that did not")
    equal(box.psql("SELECT sum(retries), sum(given_up) FROM rdmacc.stat_retries"), "0|0", "retries")


class Held:
    """A session that has locked row 1 of t, for as long as the block lasts or until it commits."""

    def __init__(self, box):
        self.session = Session(box)

    def __enter__(self):
        self.session.run("SET rdmacc.protocol = nowait; BEGIN; UPDATE t SET v = v WHERE id = 1;")
        return self.session

    def __exit__(self, *_):
        self.session.run("ROLLBACK;")
        self.session.close()


def quoted(text):
    return text.replace("'", "''")


def counts(box):
    return box.psql("SELECT retries, given_up FROM rdmacc.stat_retries WHERE protocol = 'nowait'")


def loses(box, sql, settings=""):
    """Fails against a session that holds row 1: how often it was retried and given up."""
    box.psql("SELECT rdmacc.stat_reset()")
    message = fails_with(box, "SET rdmacc.protocol = nowait; SET rdmacc.auto_retry = 3;"
                         f"SET rdmacc.replay_limit = 0; {settings}"
                         + sql, "40001")
    matches("Protocol nowait, reason ", message, "the conflict's detail")
    return counts(box)


def it_gives_up_in_the_end(box):
    with Held(box):
        equal(loses(box, "UPDATE t SET v = v + 1 WHERE id = 1"), "3|1", "retries of a statement")
        once = "SET rdmacc.auto_retry = 1;"
        equal(loses(box, "SELECT v FROM t WHERE id = 1", once), "1|1", "of a query")
        equal(loses(box, "SELECT add_one(1)", once), "1|1", "of a function")
        equal(loses(box, "DO $$ BEGIN PERFORM add_one(1); END $$", once), "1|1", "of a block of code")
        equal(loses(box, "CALL add_to(1, 0)", once), "1|1", "of a procedure")
        equal(loses(box, "PREPARE p AS SELECT add_one(1);\nEXECUTE p;", once), "1|1", "of a prepared statement")


def what_the_client_has_begun_it_has_to_repeat(box):
    """Transaction blocks, statements sent together, and what runs inside utility statements."""
    with Held(box):
        equal(loses(box, "BEGIN; UPDATE t SET v = v + 1 WHERE id = 1;"), "0|0", "in a block")
        equal(loses(box, "SELECT 1 \\; UPDATE t SET v = v + 1 WHERE id = 1;"), "0|0", "of two")
        equal(loses(box, "UPDATE t SET v = v + 1 WHERE id = 1 \\; SELECT 1;"), "0|0", "of two")
        equal(loses(box, "DO $$ BEGIN PERFORM pg_advisory_lock(1), add_one(1); END $$"), "0|0", "a session's lock")
        equal(loses(box, "EXPLAIN ANALYZE UPDATE t SET v = v WHERE id = 1"), "0|0", "EXPLAIN")


def rows_that_have_gone_are_not_taken_back(box):
    """A query is run again only while its rows fit into work_mem."""
    query = ("SELECT repeat('x', 100), CASE g WHEN 5000 THEN add_one(1) END"
             " FROM generate_series(1, 5000) g")
    with Held(box):
        equal(loses(box, query, "SET work_mem = '64kB'; "), "0|0", "when some have gone")
        equal(loses(box, query, "SET work_mem = '16MB'; "), "3|1", "when all are held")
    for memory in ("64kB", "16MB"):
        rows = box.psql(f"SET work_mem = '{memory}'; SELECT id FROM wide").split("\n")
        equal(sorted(map(int, rows)), list(range(1, 5001)), f"rows with {memory}")


def what_no_rollback_takes_back_is_not_done_twice(box):
    """By a function of a query alone: the conflict is told, not what the second attempt would meet."""
    prepare = "PREPARE given AS SELECT 1;"
    cursor = "BEGIN; DECLARE kept CURSOR WITH HOLD FOR VALUES (1), (2); COMMIT;"
    with Held(box):
        for before, statement in (("", "PREPARE made AS SELECT 1"), (prepare, "DEALLOCATE given"),
                                  (cursor, "MOVE kept"), (cursor, "CLOSE kept"),
                                  ("", "COPY (SELECT 1) TO PROGRAM 'cat >/dev/null'")):
            lost = loses(box, f"SELECT run_and_add('{quoted(statement)}')", before)
            equal(lost, "0|0", f"retries of a function that runs {statement}")
        equal(loses(box, "SELECT run_and_add('EXPLAIN SELECT 1')"), "3|1", "of one that leaves nothing")


def it_ends_as_soon_as_the_other_does(box):
    """Its attempts are transactions of their own: what the lost ones did is undone."""
    box.psql("SELECT rdmacc.stat_reset(); UPDATE t SET v = 0 WHERE id = 1; TRUNCATE noted;"
             "CREATE SEQUENCE numbers;"
             "CREATE FUNCTION noting() RETURNS int LANGUAGE plpgsql AS $$ BEGIN"
             "  INSERT INTO noted VALUES (nextval('numbers'));"
             "  INSERT INTO t VALUES (1000, 7); RETURN add_one(1); END $$")
    loser = Session(box)
    loser.run("SET rdmacc.protocol = nowait; SET rdmacc.auto_retry = 10000;")
    with Held(box) as holder:
        loser.send("SELECT noting();")
        eventually(lambda: int(counts(box).split("|")[0]) > 0, "a retry")
        holder.run("UPDATE t SET v = 41 WHERE id = 1; COMMIT;")
        equal(loser.result(), "42", "what it has seen in the end")
    loser.close()
    equal(box.psql("SELECT count(*), min(v) > 1 FROM noted"), "1|t", "notes, and their number")
    equal(box.psql("SELECT v FROM t WHERE id = 1000"), "7", "row that each attempt inserted")


def what_a_procedure_has_committed_is_not_done_again(box):
    box.psql("UPDATE t SET v = 0 WHERE id IN (1, 2, 3)")
    with Held(box):
        equal(loses(box, "CALL add_and_commit(2, 1)"), "0|0", "after its COMMIT")
    equal((value(box), value(box, 2)), (0, 1), "what it has committed")
    caller = Session(box)
    caller.run("SET rdmacc.protocol = nowait; SET rdmacc.auto_retry = 10000;")
    box.psql("SELECT rdmacc.stat_reset()")
    with Held(box):
        caller.send("CALL add_and_commit(1, 3);")
        eventually(lambda: int(counts(box).split("|")[0]) > 1, "attempts before its COMMIT")
    equal(caller.result(), "", "the procedure")
    equal(caller.run("SELECT v FROM t WHERE id IN (1, 3);"), "1\n1", "additions")
    caller.run("CREATE PROCEDURE adds_and_takes_back() LANGUAGE plpgsql AS"
               " $$ BEGIN PERFORM add_one(3); ROLLBACK; PERFORM add_one(1); END $$;")
    with Held(box):
        caller.send("CALL adds_and_takes_back();")
        before = int(counts(box).split("|")[0])
        eventually(lambda: int(counts(box).split("|")[0]) > before + 1, "attempts after its ROLLBACK")
    equal(caller.result(), "", "the procedure")
    equal(caller.run("SELECT v FROM t WHERE id IN (1, 3);"), "2\n1", "additions")
    caller.close()


def loses_for_a_while(box, prepare, statement):
    """What it prints that loses against a held row several times, and then not."""
    session = Session(box)
    session.run(f"SET rdmacc.protocol = nowait; SET rdmacc.auto_retry = 10000; {prepare}")
    with Held(box):
        session.send(statement)
        before = int(counts(box).split("|")[0])
        eventually(lambda: int(counts(box).split("|")[0]) > before + 1, "several attempts")
    said = session.result()
    session.close()
    return said


def what_procedures_and_prepared_statements_leave(box):
    box.psql("CREATE TABLE docs (big text) USING heap; ALTER TABLE docs ALTER big SET STORAGE EXTERNAL;"
             "INSERT INTO docs VALUES (repeat('x', 100000)); UPDATE t SET v = 0 WHERE id = 1;"
             "CREATE PROCEDURE loops() LANGUAGE plpgsql AS $$ DECLARE c CURSOR FOR SELECT id FROM t WHERE id = 2;"
             " BEGIN FOR r IN c LOOP ROLLBACK; PERFORM add_one(1); END LOOP; END $$")
    long_row = "WITH u AS (UPDATE t SET v = v + 1 WHERE id = 1 RETURNING 1) SELECT length(big), big FROM docs, u"
    said = loses_for_a_while(box, f"PREPARE p AS {long_row}; SELECT big FROM docs;", "EXECUTE p;")
    equal((said[:9], len(said)), ("100000|xx", 100007), "a long value of a heap")
    equal(loses_for_a_while(box, "", "CALL loops();"), "", "a cursor that outlived a ROLLBACK")
    equal(value(box), 2, "additions")
    with Held(box):
        equal(loses(box, "DO $$ BEGIN EXECUTE 'PREPARE q AS SELECT 1'; PERFORM add_one(1); END $$"), "0|0",
              "after what no ROLLBACK takes back")


def indexes_that_are_altered_meanwhile_are_ours_still(box):
    """What PostgreSQL keeps of an index is made anew then, as for an index of its own."""
    box.psql("CREATE TABLE keyed (id int PRIMARY KEY, k int, v int) USING rdmacc; CREATE INDEX keyed_k ON keyed (k);"
             "INSERT INTO keyed SELECT i, i % 5, 0 FROM generate_series(1, 50) i")
    for way in ("enable_bitmapscan", "enable_indexscan"):
        session, holder = Session(box), Session(box)
        session.run("SET rdmacc.protocol = nowait; SET rdmacc.auto_retry = 10000; SET enable_seqscan = off;"
                    f"SET {way} = off;")
        holder.run("SET rdmacc.protocol = nowait; BEGIN; UPDATE keyed SET v = v WHERE id = 3;")
        session.send("UPDATE keyed SET v = v + 1 WHERE k = 3;")
        for fill in (60, 70, 80):
            before = int(counts(box).split("|")[0])
            box.psql(f"ALTER INDEX keyed_k SET (fillfactor = {fill})")
            eventually(lambda: int(counts(box).split("|")[0]) > before + 1, "attempts with a new cache entry")
        holder.run("COMMIT;")
        equal(session.result(), "", f"the statement, with {way} off")
        session.close()
        holder.close()
    equal(box.psql("SELECT k, count(*), min(v), max(v) FROM keyed WHERE k > 1 AND k < 4 GROUP BY k ORDER BY k"),
          "2|10|0|0\n3|10|2|2", "rows that are changed")


def timeouts_end_it(box):
    with Held(box):
        fails_with(box, "SET rdmacc.protocol = nowait; SET rdmacc.auto_retry = 10000;"
                   "SET statement_timeout = '500ms'; UPDATE t SET v = v + 1 WHERE id = 1", "57014")


def every_value_is_returned_once(box):
    """Also those of deferred triggers' statements, whose conflicts come at the commit."""
    box.psql("UPDATE t SET v = 0 WHERE id IN (1, 2);"
             "CREATE CONSTRAINT TRIGGER noting AFTER UPDATE ON t DEFERRABLE INITIALLY DEFERRED"
             " FOR EACH ROW WHEN (NEW.id = 1) EXECUTE FUNCTION note_in_t()")
    script = "UPDATE t SET v = v + 1 WHERE id = 1 RETURNING v;\n" * EACH
    workers = [subprocess.Popen(box.command("psql", "-X", "-q", "-A", "-t"), cwd="/", text=True,
                                env=box.environment(), stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
               for _ in range(CLIENTS)]
    for worker in workers:
        worker.stdin.write("SET rdmacc.protocol = occ;" + script)
        worker.stdin.close()
    values = [line for worker in workers for line in worker.stdout.read().split()]
    for worker in workers:
        worker.wait(timeout=60)
    box.psql("DROP TRIGGER noting ON t")
    equal(sorted(map(int, values)), list(range(1, CLIENTS * EACH + 1)), "values")
    equal(value(box, 2), CLIENTS * EACH, "what the triggers have counted")


def what_is_pipelined_stays_one_transaction(box):
    """Its first statement is not committed before its last."""
    box.psql("UPDATE t SET v = 0 WHERE id IN (1, 2)")
    failed = hammer(box, "occ", "\\startpipeline\nUPDATE t SET v = v + 1 WHERE id = 2;\n"
                    "UPDATE t SET v = v + 1 WHERE id = 1;\n\\endpipeline", "extended")
    equal((value(box), value(box, 2)), 2 * (CLIENTS * EACH - failed,), "additions")


def readers_see_one_moment(box):
    """Queries are validated before their rows go out."""
    script = ("UPDATE t SET v = v + CASE id WHEN 2 THEN 1 ELSE -1 END WHERE id IN (2, 3);")
    box.psql("UPDATE t SET v = 0 WHERE id IN (2, 3)")
    for protocol in ("occ", "mvcc"):
        reader = Session(box)
        reader.run(f"SET rdmacc.protocol = {protocol};")
        reader.send("SELECT sum(v) FROM t WHERE id IN (2, 3);\n" * EACH)
        equal(hammer(box, protocol, script), 0, f"{protocol}: writers that failed")
        equal(reader.result().split("\n"), ["0"] * EACH, f"{protocol}: sums")
        reader.close()


def what_waits_for_the_commit_comes_before_an_early_one(box):
    """Deferred uniqueness is judged while the statement may still lose."""
    box.psql("CREATE TABLE swapped (id int PRIMARY KEY, u int, v int, UNIQUE (u) DEFERRABLE"
             " INITIALLY DEFERRED) USING rdmacc; INSERT INTO swapped VALUES (1, 1, 0), (2, 2, 0)")
    before = len(box.log_text())
    done = 0
    for protocol in ("nowait", "occ"):
        failed = hammer(box, protocol, "UPDATE swapped SET v = v + 1, u = 3 - u;")
        done += CLIENTS * EACH - failed
    equal(box.psql("SELECT sum(v) FROM swapped"), str(2 * done), "changes")
    fails_with(box, "UPDATE swapped SET u = 1", "23505")
    fails_with(box, "WITH w AS (UPDATE swapped SET u = 1) SELECT 1", "23505")
    equal(box.psql("SELECT sum(v), count(DISTINCT u) FROM swapped"), f"{2 * done}|2", "rows")
    true("is committed" not in box.log_text()[before:], "nothing failed after its commit")


def statistics_count_statements_once(box):
    """Of another library, whose hooks are around ours."""
    box.psql("CREATE EXTENSION pg_stat_statements; SELECT pg_stat_statements_reset();"
             "UPDATE t SET v = 0 WHERE id = 1")
    hammer(box, "occ", SCRIPTS["update"][0])
    equal(box.psql("SELECT calls, rows FROM pg_stat_statements"
                   " WHERE query LIKE 'UPDATE t SET v = v +%'"), f"{CLIENTS * EACH}|{CLIENTS * EACH}",
          "calls and rows")


run(set_up, no_client_sees_a_conflict, without_it_clients_see_conflicts, it_gives_up_in_the_end,
    what_the_client_has_begun_it_has_to_repeat, rows_that_have_gone_are_not_taken_back,
    what_no_rollback_takes_back_is_not_done_twice, it_ends_as_soon_as_the_other_does,
    what_a_procedure_has_committed_is_not_done_again,
    what_procedures_and_prepared_statements_leave, indexes_that_are_altered_meanwhile_are_ours_still,
    timeouts_end_it, every_value_is_returned_once,
    what_is_pipelined_stays_one_transaction, readers_see_one_moment,
    what_waits_for_the_commit_comes_before_an_early_one, statistics_count_statements_once,
    settings={"rdmacc.nodes": 2, "rdmacc.durability": "memory",
              "rdmacc.node_memory": "256MB", "autovacuum": "off",
              "shared_preload_libraries": "pg_rdmacc,pg_stat_statements"})
