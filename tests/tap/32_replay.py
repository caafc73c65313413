#!/usr/bin/env python3
"""Transaction blocks that lose against others are run again by the server (rdmacc.replay_limit): no
client sees a conflict as long as its statements return what they did, and none is done twice."""

from hammer import CLIENTS, hammer, retries, value
from harness import Session, equal, eventually, matches, protocols, run, true

EACH = 25
# What runs a block again asks no protocol but for its conflict.
WITH_EVERY_BLOCK = ("nowait", "occ", "mvcc", "calvin")
SET_UP = """
CREATE TABLE t (id int PRIMARY KEY, v int NOT NULL) USING rdmacc;
INSERT INTO t SELECT i, 0 FROM generate_series(1, 100) i;
CREATE TABLE log (id bigserial PRIMARY KEY, v int) USING rdmacc;
CREATE TABLE plain (v int);
CREATE TABLE drawn (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, u uuid DEFAULT gen_random_uuid(),
                    r float8 DEFAULT random()) USING rdmacc;
CREATE FUNCTION add_one(wanted int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  BEGIN
    INSERT INTO t VALUES (wanted, 0);
  EXCEPTION WHEN unique_violation THEN NULL;
  END;
  UPDATE t SET v = v + 1 WHERE id = wanted;
  RETURN wanted;
END $$;
CREATE FUNCTION add_to_5() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN UPDATE t SET v = v + 1 WHERE id = 5; RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER later AFTER UPDATE ON t DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW WHEN (NEW.id = 4) EXECUTE FUNCTION add_to_5();
CREATE PROCEDURE add_by_call(wanted int) LANGUAGE plpgsql AS
  $$ BEGIN UPDATE t SET v = v + 1 WHERE id = wanted; END $$;
"""
ADD = "UPDATE t SET v = v + 1 WHERE id = 1;"
# name: (statements, by which messages of PostgreSQL's protocol)
BLOCKS = {
    "update": (f"BEGIN; {ADD} COMMIT;", "simple"),
    "reads": (f"BEGIN;\nSELECT * FROM t WHERE id > 50;\n{ADD}\nSELECT count(*) FROM plain;\nCOMMIT;",
              "simple"),
    "returning": (f"BEGIN ISOLATION LEVEL REPEATABLE READ;\nSELECT v FROM t WHERE id = 7;\n{ADD}\n"
                  "UPDATE t SET v = v WHERE id = 2 RETURNING id;\nEND;", "extended"),
    "prepared": (r"\set i random(50, 100)" + "\nBEGIN;\nSELECT v FROM t WHERE id = :i;\n"
                 f"{ADD}\nINSERT INTO log (v) VALUES (:i);\nCOMMIT;", "prepared"),
    "savepoints": (f"BEGIN;\nSAVEPOINT a;\nUPDATE t SET v = v + 5 WHERE id = 1;\nROLLBACK TO a;\n"
                   f"SAVEPOINT b;\n{ADD}\nRELEASE b;\nSELECT v FROM t WHERE id = 3;\nCOMMIT;", "simple"),
    "in a savepoint": (f"BEGIN;\nSAVEPOINT a;\n{ADD}\nSELECT count(*) FROM plain;\nSELECT 1;\nRELEASE a;\n"
                       "COMMIT;", "extended"),
    "in two savepoints": ("BEGIN;\nSAVEPOINT a;\nSAVEPOINT b;\nUPDATE t SET v = v WHERE id = 2;\nRELEASE b;\n"
                          f"SELECT relname FROM pg_class LIMIT 1;\nSAVEPOINT c;\n{ADD}\n"
                          "SELECT count(*) FROM pg_am;\nUPDATE t SET v = v WHERE id = 3;\n"
                          "SELECT attname FROM pg_attribute LIMIT 1;\nRELEASE a;\nSELECT 1;\nCOMMIT;", "simple"),
    "functions": ("BEGIN;\nSELECT add_one(1);\nSELECT add_one(2);\nCOMMIT;", "simple"),
    "utility": ("BEGIN;\nSET LOCAL work_mem = '1MB';\nCALL add_by_call(1);\n"
                "DO 'BEGIN UPDATE t SET v = v + 1 WHERE id = 2; END';\nSHOW work_mem;\nCOMMIT;", "simple"),
    "mixed": (f"BEGIN;\nSELECT v FROM t WHERE id = 9;\n{ADD}\nINSERT INTO plain VALUES (1);\nCOMMIT;",
              "simple"),
    "draws": (f"BEGIN;\nINSERT INTO drawn DEFAULT VALUES RETURNING *;\n"
              f"INSERT INTO log (v) VALUES (1), (2) RETURNING id;\n{ADD}\n"
              "SELECT clock_timestamp();\nUPDATE t SET v = v WHERE id = 2;\nCOMMIT;", "prepared"),
    "deferred": (f"BEGIN;\nUPDATE t SET v = v WHERE id = 4;\n{ADD}\nCOMMIT;", "simple"),
    "now": (f"BEGIN;\nSELECT now(), statement_timestamp();\n{ADD}\nSELECT now();\nCOMMIT;", "simple"),
}


def set_up(box):
    box.psql(SET_UP)


def no_client_sees_a_conflict(box):
    for protocol in protocols(box):
        before = retries(box, protocol)
        names = BLOCKS if protocol in WITH_EVERY_BLOCK else ("update", "reads", "savepoints")
        for name in names:
            script, mode = BLOCKS[name]
            if name == "mixed" and protocol == "calvin":  # which cannot prepare
                continue
            box.psql("UPDATE t SET v = 0 WHERE id IN (1, 5)")
            equal(hammer(box, protocol, script, mode, each=EACH), 0, f"{protocol}, {name}: failed")
            equal(value(box), CLIENTS * EACH, f"{protocol}, {name}: additions")
            if name == "deferred":
                equal(value(box, 5), CLIENTS * EACH, f"{protocol}: what triggers have added")
        print(f"  {protocol}: {retries(box, protocol) - before} attempts lost", flush=True)
        # Under WOUND_WAIT a holder that has its only lock commits, whether it is wounded or not.
        if protocol != "woundwait":
            true(retries(box, protocol) > before, f"{protocol}: no block had to be run again")
    equal(box.psql("SELECT count(*) = max(id), count(DISTINCT u) = count(*), count(DISTINCT r) = count(*)"
                   " FROM drawn"), "t|t|t", "no number is used up or given twice")


def without_it_clients_see_conflicts(box):
    box.psql("UPDATE t SET v = 0 WHERE id = 1; SELECT rdmacc.stat_reset()")
    failed = 0
    for protocol in ("nowait", "occ"):
        failed += hammer(box, protocol, BLOCKS["reads"][0], settings="-c rdmacc.replay_limit=0",
                         each=EACH)
    true(failed > 0, "no session lost")
    equal(value(box), 2 * CLIENTS * EACH - failed, "additions of those that did not")
    equal(box.psql("SELECT sum(retries), sum(given_up) FROM rdmacc.stat_retries"), "0|0", "retries")


def loses_at_commit(box, before, between="UPDATE t SET v = v + 1 WHERE id = 6", after="COMMIT;",
                    settings=""):
    """A block under OCC, of which another session changes what it has read: what it prints."""
    box.psql("UPDATE t SET v = 0 WHERE id IN (6, 7)")
    with Loser(box, f"SET rdmacc.protocol = occ; {settings}") as loser:
        said = loser.run("BEGIN;\n" + before)
        box.psql(between)
        return said, loser.run(after), loser.run("ROLLBACK; SELECT txid_current_if_assigned();")


class Loser:
    def __init__(self, box, settings):
        self.session = Session(box)
        self.session.run(settings)

    def __enter__(self):
        return self.session

    def __exit__(self, *_):
        self.session.close()


HOLDING = "SET rdmacc.protocol = nowait; BEGIN; UPDATE t SET v = v WHERE id = 6;"
WRITE = "UPDATE t SET v = v + 10 WHERE id = 7;"


def what_the_client_was_told_has_to_come_again(box):
    read = "SELECT v FROM t WHERE id = 6;\n" + WRITE
    _, said, _ = loses_at_commit(box, read)
    matches("40001: could not serialize access", said, "its conflict")
    equal(box.psql("SELECT replays_differed > 0, replayed_statements > 0, replay_ms > 0"
                   " FROM rdmacc.stat_retries WHERE protocol = 'occ'"), "t|t|t", "what is counted")
    matches("statement 1 would now return something else: SELECT v FROM t WHERE id = 6", said, "detail")
    equal(value(box, 7), 0, "what it has written is undone")
    _, said, _ = loses_at_commit(box, "SELECT v < 100 FROM t WHERE id = 6;\n" + WRITE)
    equal(said, "", "the same answer from another row")
    equal(value(box, 7), 10, "it is committed")
    _, said, _ = loses_at_commit(box, "UPDATE t SET v = v + 1 WHERE id = 6;\n" + WRITE)
    equal((said, value(box, 6)), ("", 2), "additions of both")
    _, said, _ = loses_at_commit(box, "UPDATE t SET v = 5 WHERE id = 6 AND v = 0;\n" + WRITE)
    matches("40001", said, "another number of rows")
    for value_set, differs in (("v", True), ("v < 100", False)):
        _, said, _ = loses_at_commit(box, "DO $$ BEGIN PERFORM set_config('my.value',"
                                     f" (SELECT {value_set} FROM t WHERE id = 6)::text, true); END $$;\n"
                                     "SHOW my.value;\nSHOW work_mem;\n" + WRITE)
        equal("statement 2 would now return something else: SHOW my.value" in said, differs,
              f"a setting that has been {value_set}")
        equal(said == "", not differs, f"COMMIT after {value_set}")


def errors_come_again_too(box):
    block = ("SAVEPOINT a;\nINSERT INTO t VALUES (1, 1);\nROLLBACK TO a;\n"
             "SELECT count(v) FROM t WHERE id = 6;\n" + WRITE)
    told, said, _ = loses_at_commit(box, block)
    matches("23505", told, "its error")
    equal((said, value(box, 7)), ("", 10), "it is committed")
    block = "SAVEPOINT a;\nSELECT 1 / (5 - v) FROM t WHERE id = 6;\nROLLBACK TO a;\n" + WRITE
    _, said, _ = loses_at_commit(box, block, "UPDATE t SET v = 5 WHERE id = 6")
    matches("would now return something else", said, "an error that did not come before")


def what_an_error_said_has_to_come_again(box):
    box.psql("CREATE FUNCTION tell() RETURNS int LANGUAGE plpgsql AS"
             " $$ BEGIN RAISE EXCEPTION 'there is %', (SELECT v FROM t WHERE id = 6); END $$")
    block = "SAVEPOINT a;\nSELECT tell();\nROLLBACK TO a;\n" + WRITE
    told, said, _ = loses_at_commit(box, block)
    matches("there is 0", told, "the error")
    matches("would now return something else", said, "an error that would say another number")
    _, said, _ = loses_at_commit(box, block + "SELECT v < 100 FROM t WHERE id = 7;",
                                 "UPDATE t SET v = v + 1 WHERE id = 7")
    equal(said, "", "the same error")


def attempts_whose_reads_do_not_fit_together_are_conflicts(box):
    """One row is active at any time, whichever: a block that has found it has found one in every order."""
    box.psql("CREATE TABLE act (id int PRIMARY KEY, active bool) USING rdmacc;"
             "CREATE INDEX ON act (id) WHERE active; INSERT INTO act SELECT g, g = 1 FROM generate_series(1, 10) g")
    block = (r"\set a random(1, 10)" + "\nBEGIN;\n"
             "WITH u AS (UPDATE act SET active = false WHERE active RETURNING 1) SELECT count(*) AS c FROM u \\gset\n"
             "\\if :c <> 1\nROLLBACK;\n\\else\nUPDATE act SET active = true WHERE id = :a;\nCOMMIT;\n\\endif")
    for protocol, settings in (("occ", ""), ("occ", "-c rdmacc.lock_writes=at_write"), ("tictoc", "")):
        failed = hammer(box, protocol, block, settings=settings + " -c rdmacc.replay_limit=1000", each=1000)
        equal(failed, 0, f"{protocol} {settings}: failed")
        equal(box.psql("SELECT count(*) FROM act WHERE active"), "1", f"{protocol} {settings}: active rows")


def no_error_comes_of_reads_that_do_not_fit_together(box):
    """Rows 6 and 7 are always equal. Row 6 has been read before both change, and row 7 after it."""
    compare = ("1 / (CASE WHEN (SELECT v FROM t WHERE id = 6) = (SELECT v FROM t WHERE id = 7)"
               " THEN 1 ELSE 0 END)")
    both = "UPDATE t SET v = 5 WHERE id IN (6, 7)"
    for protocol in ("occ", "sundial", "calvin"):
        settings = f"SET rdmacc.protocol = {protocol};"
        for after in (f"SELECT {compare};", f"DO 'BEGIN PERFORM {compare}; END';"):
            _, said, _ = loses_at_commit(box, "SELECT v < 100 FROM t WHERE id = 6;", settings + both,
                                         after + "\nCOMMIT;", settings)
            equal(said.strip(), "1" if after.startswith("SELECT") else "", f"{protocol}, {after}")
    told, _, _ = loses_at_commit(box, "SELECT 1 / v FROM t WHERE id = 6;")
    matches("22012", told, "an error that is one")


def what_cannot_be_done_twice_is_not(box):
    for step in ("SELECT pg_advisory_lock(1);", "SELECT pg_try_advisory_xact_lock(2);", "SELECT setval('log_id_seq', 1000);",
                 "COPY t TO STDOUT;", "COPY plain FROM PROGRAM 'echo 1';",
                 "DECLARE c CURSOR FOR SELECT v FROM t WHERE id = 6; FETCH c;",
                 "EXPLAIN ANALYZE SELECT 1;"):
        _, said, _ = loses_at_commit(box, f"{step}\nSELECT v < 100 FROM t WHERE id = 6;\n{WRITE}")
        matches("40001", said, f"a conflict after {step}")
    for limit in ("rdmacc.replay_statements = 2", "rdmacc.replay_memory = '8kB'"):
        fill = "SELECT 1;\nSELECT 2;\n" + f"SELECT '{'x' * 9000}';\n"
        _, said, _ = loses_at_commit(box, f"{fill}\nSELECT v < 100 FROM t WHERE id = 6;\n{WRITE}",
                                     settings=f"SET {limit};")
        matches("40001", said, f"a conflict with {limit}")


def notices_come_once(box):
    block = f"DO 'BEGIN RAISE NOTICE ''once''; END';\nSELECT v < 100 FROM t WHERE id = 6;\n{WRITE}"
    told, said, _ = loses_at_commit(box, block)
    equal((told.count("once"), said), (1, ""), "notices")


def blocks_that_change_the_catalog(box):
    block = "CREATE TABLE made (id int PRIMARY KEY) USING rdmacc;\nINSERT INTO made VALUES (1);\n"
    _, said, _ = loses_at_commit(box, f"{block}SELECT v < 100 FROM t WHERE id = 6;\n{WRITE}")
    matches("40001", said, "its conflict")
    equal(box.psql("SELECT count(*) FROM pg_class WHERE relname = 'made'"), "0", "its table")
    box.psql("CREATE TABLE emptied (id int) USING heap; INSERT INTO emptied VALUES (1)")
    for change in ("TRUNCATE emptied", "COMMENT ON TABLE emptied IS 'lost'"):
        _, said, _ = loses_at_commit(box, f"{change};\nSELECT v < 100 FROM t WHERE id = 6;\n{WRITE}")
        matches("40001", said, change)
    equal(box.psql("SELECT count(*), obj_description('emptied'::regclass) IS NULL FROM emptied"),
          "1|t", "what is left of that")
    box.psql("DROP TABLE emptied")


def savepoints_of_an_attempt_that_failed_are_gone(box):
    """A name that is used twice: ROLLBACK TO must not come to the first one of a half-done attempt."""
    before = ("BEGIN;\nSAVEPOINT a;\nUPDATE t SET v = v + 1 WHERE id = 8;\nSELECT v FROM t WHERE id = 9;\n"
              "RELEASE a;\nUPDATE t SET v = v + 1 WHERE id = 10;\nSAVEPOINT a;")
    box.psql("UPDATE t SET v = 0 WHERE id IN (6, 8, 9, 10, 11)")
    with Loser(box, "SET rdmacc.protocol = nowait; SET rdmacc.replay_limit = 10000;") as loser:
        with Loser(box, HOLDING):
            loser.run(before)
            lost = retries(box, "nowait")
            loser.send("UPDATE t SET v = v + 1 WHERE id = 6;")
            eventually(lambda: retries(box, "nowait") > lost, "another attempt")
            box.psql("SET rdmacc.protocol = nowait; SET rdmacc.auto_retry = 10000;"
                     "UPDATE t SET v = 5 WHERE id = 9")
            matches("statement 3 would now return", loser.result(), "its conflict")
        matches("3B001", loser.run("ROLLBACK TO a;"), "no savepoint is left")
        loser.run("UPDATE t SET v = v + 1 WHERE id = 11;\nCOMMIT;")
    equal(box.psql("SELECT sum(v) FROM t WHERE id IN (8, 10, 11)"), "0", "nothing is committed")


def a_conflict_within_a_replay_within_a_savepoint(box):
    """The first statement of the block, outside of the savepoint, loses while it is run again."""
    box.psql("UPDATE t SET v = 0 WHERE id IN (6, 8)")
    with Loser(box, "SET rdmacc.protocol = nowait; SET rdmacc.replay_limit = 10000;") as loser:
        with Loser(box, HOLDING):
            loser.run("BEGIN;\nUPDATE t SET v = v + 1 WHERE id = 8;\nSAVEPOINT a;")
            lost = retries(box, "nowait")
            loser.send("UPDATE t SET v = v + 1 WHERE id = 6;")
            eventually(lambda: retries(box, "nowait") > lost, "another attempt")
            with Loser(box, "SET rdmacc.protocol = nowait; SET rdmacc.replay_limit = 10000;") as second:
                second.run("BEGIN; UPDATE t SET v = v WHERE id = 8;")
                lost = retries(box, "nowait")
                eventually(lambda: retries(box, "nowait") > lost + 3, "attempts that lose earlier")
        said = loser.result() + loser.run("SELECT count(*) FROM pg_class WHERE oid = 1259;\nRELEASE a;\n"
                                          "SELECT 2;\nCOMMIT;")
        equal(said, "1\n2", "what follows")
    equal(box.psql("SELECT sum(v) FROM t WHERE id IN (6, 8)"), "2", "additions")


def sequences(box):
    """Their numbers are given once, and currval() and lastval() belong to what was drawn."""
    box.psql("CREATE TABLE parents (id serial PRIMARY KEY) USING rdmacc;"
             "CREATE TABLE children (parent int, last int) USING rdmacc; CREATE SEQUENCE again")
    pair = ("INSERT INTO parents DEFAULT VALUES;\n"
            "INSERT INTO children VALUES (currval('parents_id_seq'), lastval());\n")
    _, said, _ = loses_at_commit(box, f"{pair}{pair}SELECT v < 100 FROM t WHERE id = 6;\n{WRITE}")
    equal(said, "", "it is committed")
    equal(box.psql("SELECT count(*), count(DISTINCT parent), bool_and(parent = last) FROM children"
                   " JOIN parents ON id = parent"), "2|2|t", "each child has its parent")
    for restart in ("TRUNCATE parents RESTART IDENTITY;", "ALTER SEQUENCE parents_id_seq RESTART WITH 500;"):
        loses_at_commit(box, f"{restart}\nINSERT INTO parents DEFAULT VALUES RETURNING id;\n"
                        f"SELECT v < 100 FROM t WHERE id = 6;\n{WRITE}")
        equal(box.psql("INSERT INTO parents DEFAULT VALUES RETURNING 1", check=False).stdout.strip(),
              "1", f"a number that was not given after {restart}")


def orders_and_answers(box):
    box.psql("UPDATE t SET v = 1 WHERE id = 7")
    _, said, _ = loses_at_commit(box, "SELECT id FROM t WHERE id IN (6, 7) ORDER BY v, id;\n" + WRITE,
                                 "UPDATE t SET v = 100 WHERE id = 6")
    matches("would now return something else", said, "another order that was asked for")
    _, said, _ = loses_at_commit(box, "SELECT 1 / (5 - v) IS NULL FROM t WHERE id = 6;\n" + WRITE,
                                 "UPDATE t SET v = 5 WHERE id = 6")
    matches("40001", said, "an error where there was none")


def what_begins_before_begin(box):
    """A statement of the same message and transaction, and cursors that COMMIT runs to their end."""
    box.psql("CREATE VIEW two AS SELECT id, v FROM t WHERE id > 90;"
             "CREATE RULE both_of AS ON INSERT TO two DO INSTEAD (UPDATE t SET v = new.v WHERE id = new.id;"
             " UPDATE t SET v = new.v WHERE id = new.id + 1)")
    with Loser(box, "SET rdmacc.protocol = occ;") as loser:
        loser.run("INSERT INTO two VALUES (95, 3) \\; BEGIN \\; SELECT v < 100 FROM t WHERE id = 6 \\; " + WRITE)
        box.psql("SET rdmacc.protocol = occ; UPDATE t SET v = v + 1 WHERE id = 6")
        said = loser.run("COMMIT;")
    matches("40001", said, "its conflict")
    equal(box.psql("SELECT sum(v) FROM t WHERE id IN (95, 96)"), "0", "all or nothing")
    box.psql("DROP RULE both_of ON two;"
             "CREATE RULE one_of AS ON INSERT TO two DO INSTEAD UPDATE t SET v = new.v WHERE id = new.id")
    with Loser(box, "SET rdmacc.protocol = occ;") as loser:
        loser.run("BEGIN \\; INSERT INTO two VALUES (95, 3) \\; SELECT v < 100 FROM t WHERE id = 6 \\; " + WRITE)
        box.psql("SET rdmacc.protocol = occ; UPDATE t SET v = v + 1 WHERE id = 6")
        matches("40001", loser.run("COMMIT;"), "a rule, in a message of several statements")
    with Loser(box, "SET rdmacc.protocol = occ;") as loser:
        loser.run("BEGIN;\nDECLARE c CURSOR WITH HOLD FOR SELECT v FROM t WHERE id = 6;\n" + WRITE)
        box.psql("SET rdmacc.protocol = occ; UPDATE t SET v = v + 1 WHERE id = 7")
        matches("40001", loser.run("COMMIT;"), "its conflict")
        equal(loser.run("SELECT 1;"), "1", "the block is over")
    equal(box.psql("SELECT 1"), "1", "the server is up")


def steps_that_lose(box):
    """EXECUTE and CALL return rows, and lose at the statement."""
    box.psql("CREATE PROCEDURE doubles(INOUT x int) LANGUAGE plpgsql AS"
             " $$ BEGIN UPDATE t SET v = v WHERE id = 6; x := 2 * x; END $$")
    for step, told in (("EXECUTE p;", "6"), ("CALL doubles(4);", "8"),
                       ("SAVEPOINT s;\nEXECUTE p;\nRELEASE s;", "6")):
        with Loser(box, "SET rdmacc.protocol = nowait; SET rdmacc.replay_limit = 10000;"
                   "PREPARE p AS UPDATE t SET v = v WHERE id = 6 RETURNING id;") as loser:
            before = retries(box, "nowait")
            with Loser(box, HOLDING) as holder:
                loser.run("BEGIN;\nSELECT 1;")
                loser.send(step + "\nSELECT 3;\nCOMMIT;")
                eventually(lambda: retries(box, "nowait") > before + 3, "several attempts")
                holder.run("COMMIT;")
            equal(loser.result(), f"{told}\n3", step)


def it_ends(box):
    box.psql("SELECT rdmacc.stat_reset()")
    block = "BEGIN;\nSELECT 1;\nUPDATE t SET v = v WHERE id = 6;"
    settings = "SET rdmacc.protocol = nowait; SET rdmacc.replay_limit = 3;"
    with Loser(box, HOLDING), Loser(box, settings) as loser:
        matches("40001", loser.run(block), "after its attempts")
        matches("25P02", loser.run("SELECT 1;"), "the block has failed")
        equal(loser.run("ROLLBACK;\nSELECT 1;"), "1", "and is over")
        equal(box.psql("SELECT retries, given_up FROM rdmacc.stat_retries WHERE protocol = 'nowait'"),
              "3|1", "attempts")
        loser.run("SET rdmacc.replay_limit = 10000; SET statement_timeout = '300ms';")
        matches("57014", loser.run(block), "the statement's time is over")
        matches("25P02", loser.run("SELECT 1;"), "the block has failed")
        loser.run("ROLLBACK;")


def cursors_that_have_moved(box):
    """A cursor WITH HOLD stays where a function has moved it: what has lost is not run again then."""
    box.psql("CREATE TABLE todo (id int PRIMARY KEY) USING rdmacc; INSERT INTO todo SELECT generate_series(1, 9);"
             "CREATE FUNCTION next_of_c() RETURNS int LANGUAGE plpgsql AS $$ DECLARE c refcursor := 'c'; n int;"
             " BEGIN FETCH c INTO n; UPDATE t SET v = n WHERE id = 11; RETURN n; END $$;"
             "CREATE FUNCTION close_c() RETURNS int LANGUAGE plpgsql AS $$ DECLARE c refcursor := 'c';"
             " BEGIN CLOSE c; UPDATE t SET v = 0 WHERE id = 11; RETURN 1; END $$")
    session = Session(box)
    session.run("SET rdmacc.protocol = occ; BEGIN; DECLARE c CURSOR WITH HOLD FOR SELECT id FROM todo ORDER BY id; COMMIT;")
    equal(session.run("BEGIN; SELECT v >= 0 FROM t WHERE id = 12; SELECT next_of_c();"), "t\n1", "the first row")
    box.psql("SET rdmacc.protocol = occ; UPDATE t SET v = v + 1 WHERE id = 12")
    matches("40001", session.run("COMMIT;"), "a block")
    session.run("SET rdmacc.protocol = nowait;")
    for call in ("next_of_c", "close_c"):
        holder = Session(box)
        holder.run("SET rdmacc.protocol = nowait; BEGIN; UPDATE t SET v = v WHERE id = 11;")
        matches("40001", session.run(f"SELECT {call}();"), f"alone: {call}")
        holder.run("COMMIT;")
        holder.close()
    # One that is not touched is in no way.
    session.run("SET rdmacc.protocol = occ; BEGIN; DECLARE c CURSOR WITH HOLD FOR SELECT id FROM todo ORDER BY id; COMMIT;")
    session.run("BEGIN; SELECT v >= 0 FROM t WHERE id = 12; UPDATE t SET v = v WHERE id = 12;")
    box.psql("SET rdmacc.protocol = occ; UPDATE t SET v = v + 1 WHERE id = 12")
    equal(session.run("COMMIT;"), "", "a block that leaves it alone")
    equal(session.run("FETCH c;"), "1", "its first row")
    session.close()


def whatever_an_error_told(box):
    box.psql("CREATE FUNCTION fails() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no'"
             " USING HINT = format('v is %s', (SELECT v FROM t WHERE id = 14)); END $$")
    for change, expected in (("WHERE id = 13", ""), ("WHERE id IN (13, 14)", "40001")):
        session = Session(box)
        session.run("SET rdmacc.protocol = occ; BEGIN; SELECT v >= 0 FROM t WHERE id = 13; SAVEPOINT s;")
        matches("P0001", session.run("SELECT fails();"), "the error")
        session.run("ROLLBACK TO s; UPDATE t SET v = v WHERE id = 13;")
        box.psql(f"SET rdmacc.protocol = occ; UPDATE t SET v = v + 1 {change}")
        said = session.run("COMMIT;")
        true(expected in said if expected else said == "", f"{change}: {said}")
        session.close()


def blocks_go_on_after_a_cancel(box):
    """Within a savepoint, wherever in the statement it comes."""
    box.psql("CREATE TABLE wide (id int PRIMARY KEY, v int) USING rdmacc;"
             "INSERT INTO wide SELECT i, 0 FROM generate_series(1, 30000) i; CREATE TABLE kept (id int PRIMARY KEY) USING rdmacc")
    session = Session(box)

    def cancelled_within(statement, timeout):
        """Whether it was; the timeout may end ROLLBACK TO as well, where it has not ended the statement."""
        session.run(f"SAVEPOINT s; SET LOCAL statement_timeout = {timeout};")
        said = session.run(f"{statement};")
        back = session.run("ROLLBACK TO s;")
        if "57014" in back and "57014" not in said:
            back = session.run("ROLLBACK TO s;")
        equal(back, "", f"{statement}, {timeout} ms")
        return "57014" in said

    cancelled, before = 0, retries(box, "occ")
    box.psql("CREATE TABLE numbered (id serial PRIMARY KEY, v int) USING rdmacc")
    for statement in ("INSERT INTO numbered (v) SELECT i FROM generate_series(1, 3000) i",
                      "SELECT count(*) FROM wide WHERE v < 50", "UPDATE wide SET v = v + 1", "DELETE FROM wide",
                      "INSERT INTO wide SELECT i, 0 FROM generate_series(30001, 60000) i"):
        for timeout in range(1, 25, 3):
            box.psql("TRUNCATE kept")
            session.run("BEGIN; INSERT INTO kept VALUES (1);")
            cancelled += cancelled_within(statement, timeout)
            equal(session.run("INSERT INTO kept VALUES (2);"), "", f"{statement}, {timeout} ms, what follows")
            session.run("SAVEPOINT a; INSERT INTO kept VALUES (3);")
            for _ in range(2):
                cancelled += cancelled_within(statement, timeout)
            equal(session.run("ROLLBACK TO a; COMMIT;"), "", f"{statement}, {timeout} ms, to the outer one")
            equal(box.psql("SELECT array_agg(id ORDER BY id) FROM kept"), "{1,2}", "rows")
    session.close()
    true(cancelled > 0 and retries(box, "occ") > before, "some were cancelled, and blocks run again")
    equal(box.psql("SELECT count(*) FROM numbered"), "0", "what the cancelled have numbered")
    equal(box.psql("SELECT count(*), sum(v) FROM wide"), "30000|0", "what the cancelled have done")


run(set_up, blocks_go_on_after_a_cancel, cursors_that_have_moved, whatever_an_error_told, no_client_sees_a_conflict, without_it_clients_see_conflicts,
    what_the_client_was_told_has_to_come_again, errors_come_again_too, what_an_error_said_has_to_come_again,
    attempts_whose_reads_do_not_fit_together_are_conflicts,
    no_error_comes_of_reads_that_do_not_fit_together,
    what_cannot_be_done_twice_is_not, notices_come_once, blocks_that_change_the_catalog,
    savepoints_of_an_attempt_that_failed_are_gone, a_conflict_within_a_replay_within_a_savepoint, sequences, orders_and_answers,
    what_begins_before_begin, steps_that_lose, it_ends,
    settings={"rdmacc.nodes": 2, "rdmacc.durability": "memory", "rdmacc.node_memory": "256MB",
              "autovacuum": "off"})
