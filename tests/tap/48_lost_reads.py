#!/usr/bin/env python3
"""Conflicts wherever they show: errors of statements whose reads do not fit together, conflicts that a function has
caught, statements on heaps that lose in rdmacc tables, tables that are gone."""

import re

from harness import Session, equal, eventually, matches, run, sqlstate, true
from storm import Worker, stop_all

SET_UP = """
CREATE TABLE pair (k int PRIMARY KEY, v int) USING rdmacc;
CREATE TABLE other (k int PRIMARY KEY, v int) USING rdmacc;
CREATE FUNCTION must_be_200(seen int) RETURNS int LANGUAGE plpgsql VOLATILE AS $$
  DECLARE rest int; BEGIN SELECT v INTO rest FROM pair WHERE k = 2;
  IF seen + rest <> 200 THEN RAISE EXCEPTION 'the sum is %', seen + rest; END IF; RETURN 1; END $$;
CREATE FUNCTION checks() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN PERFORM must_be_200(NEW.v); RETURN NULL; END $$;
CREATE TABLE plain (v int) USING heap;
CREATE CONSTRAINT TRIGGER later AFTER INSERT ON plain DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION checks();
CREATE MATERIALIZED VIEW seen AS SELECT must_be_200(100) AS one WITH NO DATA;
CREATE TABLE parents (id int PRIMARY KEY, n int DEFAULT 0) USING rdmacc;
CREATE TABLE children (id serial PRIMARY KEY, parent int REFERENCES parents) USING heap;
CREATE FUNCTION counts() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN UPDATE parents SET n = n + 1 WHERE id = 1; RETURN NEW; END $$;
CREATE TABLE counted (id serial PRIMARY KEY) USING heap;
CREATE TRIGGER counts BEFORE INSERT ON counted FOR EACH ROW EXECUTE FUNCTION counts();
CREATE FUNCTION catches() RETURNS void LANGUAGE plpgsql AS
  $$ BEGIN UPDATE parents SET n = n + 1 WHERE id = 2; EXCEPTION WHEN serialization_failure THEN NULL; END $$;
CREATE FUNCTION wraps() RETURNS void LANGUAGE plpgsql AS $$
BEGIN UPDATE parents SET n = n + 1 WHERE id = 2; EXCEPTION WHEN OTHERS THEN RAISE EXCEPTION 'failed: %', SQLERRM; END $$;
CREATE FUNCTION tries_again() RETURNS void LANGUAGE plpgsql AS $$
BEGIN LOOP BEGIN
  UPDATE parents SET n = n + 1 WHERE id = 2; RETURN;
  EXCEPTION WHEN OTHERS THEN PERFORM pg_sleep(0.001);
END; END LOOP; END $$;
CREATE FUNCTION tries_again_later() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN PERFORM tries_again(); RETURN NULL; END $$;
CREATE TABLE deferred (v int) USING heap;
CREATE CONSTRAINT TRIGGER later AFTER INSERT ON deferred DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION tries_again_later();
"""
OPTIMISTIC = ("occ", "sundial", "tictoc", "maat", "drtm")
BLIND = "DECLARE x CURSOR FOR SELECT 1;"  # the block is not run again
# Statements that look at the second row, after the first.
LOOKS = {
    "a query": "SELECT must_be_200(100)", "DO": "DO $$ BEGIN PERFORM must_be_200(100); END $$",
    "FETCH": "FETCH c", "COPY TO": "COPY (SELECT must_be_200(100)) TO STDOUT",
    "EXPLAIN ANALYZE": "EXPLAIN ANALYZE SELECT must_be_200(100)",
    "CREATE TABLE AS": "CREATE TEMP TABLE made AS SELECT must_be_200(100)",
    "REFRESH": "REFRESH MATERIALIZED VIEW seen", "a deferred trigger, now": "SET CONSTRAINTS ALL IMMEDIATE",
    "a deferred trigger": "COMMIT"}


def set_up(box):
    box.psql(SET_UP)


def errors_of_reads_that_do_not_fit_together(box):
    for protocol in OPTIMISTIC:
        for name, look in LOOKS.items():
            box.psql("DELETE FROM pair; INSERT INTO pair VALUES (1, 100), (2, 100)")
            session = Session(box)
            cursor = "DECLARE c CURSOR FOR SELECT must_be_200(100);" if name == "FETCH" else ""
            trigger = "INSERT INTO plain VALUES (100);" if "trigger" in name else ""
            equal(session.run(f"SET rdmacc.protocol = {protocol}; BEGIN; {BLIND} {cursor} {trigger}"
                              " SELECT v FROM pair WHERE k = 1;"), "100", f"{protocol}, {name}: the first row")
            box.psql(f"SET rdmacc.protocol = {protocol}; UPDATE pair SET v = v + CASE k WHEN 1 THEN 5 ELSE -5 END")
            matches("40001", session.run(look + ";"), f"{protocol}, {name}")
            session.close()


def errors_of_reads_that_do(box):
    """They are the client's."""
    box.psql("DELETE FROM pair; INSERT INTO pair VALUES (1, 100), (2, 95)")
    for name, look in LOOKS.items():
        session = Session(box)
        cursor = "DECLARE c CURSOR FOR SELECT must_be_200(100);" if name == "FETCH" else ""
        trigger = "INSERT INTO plain VALUES (100);" if "trigger" in name else ""
        session.run(f"BEGIN; {BLIND} {cursor} {trigger} SELECT v FROM pair WHERE k = 1;")
        matches("P0001", session.run(look + ";"), name)
        session.close()


class Repeats(Worker):
    """One statement again and again; how often it has come through, and what it was told otherwise."""

    def __init__(self, box, settings, statement):
        self.statement = statement
        self.done = 0
        self.told = []
        super().__init__(box, settings)

    def step(self):
        said = self.session.run(self.statement)
        if said:
            self.told.append(re.sub(r"(?s).*ERROR:  (\w{5}).*", r"\1", said))
        self.done += 1


def no_conflict_comes_to_the_client(box):
    """Of statements alone: by a function that has caught it, and goes on, or makes another error of it; by a heap's
    trigger or foreign key. Of blocks, by such a function."""
    for protocol in ("nowait", "waitdie", "occ", "mvcc", "sundial"):
        box.psql("DELETE FROM children; DELETE FROM parents; INSERT INTO parents VALUES (1), (2)")
        setting = f"SET rdmacc.protocol = {protocol}; SET rdmacc.auto_retry = 1000; SET rdmacc.replay_limit = 1000;"
        workers = [Repeats(box, setting, statement) for statement in
                   ("SELECT FROM catches();", "SELECT FROM catches();", "INSERT INTO counted DEFAULT VALUES;",
                    "INSERT INTO counted DEFAULT VALUES;", "INSERT INTO children (parent) VALUES (1);",
                    "INSERT INTO children (parent) VALUES (2);", "SELECT FROM wraps();", "SELECT FROM tries_again();",
                    "BEGIN; UPDATE other SET v = v WHERE k = 7; SELECT FROM catches(); COMMIT;",
                    "BEGIN; INSERT INTO deferred VALUES (1); COMMIT;", "INSERT INTO deferred VALUES (1);")]
        try:
            eventually(lambda: all(worker.done > 20 for worker in workers), f"{protocol}: all get on", 60)
        finally:
            stop_all(workers)
        equal([worker.told for worker in workers], [[]] * len(workers), f"{protocol}: conflicts")


def blocks_that_are_not_run_again_end(box):
    """At a COMMIT whose deferred trigger catches its conflict and tries again."""
    for protocol in ("nowait", "mvcc"):
        box.psql("DELETE FROM children; DELETE FROM parents; INSERT INTO parents VALUES (1), (2)")
        holder, session = Session(box), Session(box)
        session.run(f"SET rdmacc.protocol = {protocol}; BEGIN; {BLIND} SELECT n FROM parents WHERE id = 1;"
                    " INSERT INTO deferred VALUES (1);")
        holder.run(f"SET rdmacc.protocol = {protocol}; BEGIN; UPDATE parents SET n = n + 1 WHERE id = 2;")
        matches("40001", session.run("COMMIT;"), protocol)
        equal(session.run("SELECT 1;"), "1", f"{protocol}: what follows")
        holder.run("COMMIT;")
        holder.close()
        session.close()


def tables_that_are_gone(box):
    for change in ("TRUNCATE other", "VACUUM FULL other", "ALTER TABLE other ALTER v TYPE bigint", "DROP TABLE other"):
        box.psql("DROP TABLE IF EXISTS other; CREATE TABLE other (k int PRIMARY KEY, v int) USING rdmacc;"
                 "INSERT INTO other VALUES (1, 1)")
        session = Session(box)
        session.run("SET rdmacc.protocol = calvin; SET rdmacc.replay_limit = 0; BEGIN; SAVEPOINT a;"
                    " SELECT v FROM other WHERE k = 1; ROLLBACK TO a;")
        box.psql(f"SET rdmacc.protocol = calvin; {change}")
        matches("40001", session.run("INSERT INTO parents VALUES (100); COMMIT;"), change)
        session.close()
    equal(box.psql("SELECT count(*) FROM parents WHERE id = 100"), "0", "rows")
    true(sqlstate(box.psql("SELECT 1 FROM other", check=False)) == "42P01", "it is gone")


run(set_up, errors_of_reads_that_do_not_fit_together, errors_of_reads_that_do, no_conflict_comes_to_the_client,
    blocks_that_are_not_run_again_end, tables_that_are_gone,
    settings={"rdmacc.nodes": 2, "rdmacc.node_memory": "256MB", "rdmacc.durability": "memory"})
