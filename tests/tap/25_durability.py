#!/usr/bin/env python3
"""What is committed is there after every end of the server or of one of its processes, and nothing
else is: tables of all kinds, changed in all ways, are compared with heap tables that were changed
by the same statements."""

import outage
from harness import Session, ask, equal, eventually, protocols, retried, run
from verify import verify

TABLES = ("keyed", "plain", "coded", "parent", "child", "parted", "long", "emptied",
          "shaped", "copied", "loaded")
SCHEMA = """
CREATE TABLE keyed (id int PRIMARY KEY, v int, note text);
CREATE INDEX keyed_v ON keyed (v);
CREATE TABLE plain (v int, note text);
CREATE INDEX plain_v ON plain (v);
CREATE TABLE coded (id int PRIMARY KEY, code text UNIQUE, at timestamptz);
CREATE TABLE parent (id int PRIMARY KEY, name text);
CREATE TABLE child (id int PRIMARY KEY, parent int REFERENCES parent ON DELETE CASCADE);
CREATE INDEX child_parent ON child (parent);
CREATE TABLE parted (id int PRIMARY KEY, v int) PARTITION BY RANGE (id);
CREATE TABLE parted_low PARTITION OF parted FOR VALUES FROM (MINVALUE) TO (500);
CREATE TABLE parted_high PARTITION OF parted FOR VALUES FROM (500) TO (MAXVALUE);
CREATE TABLE long (id int PRIMARY KEY, body text);
CREATE TABLE emptied (id int PRIMARY KEY);
CREATE TABLE made_0 (id int, v int);
CREATE TABLE shaped (id int PRIMARY KEY, v int, w int DEFAULT 1);
CREATE TABLE copied (id int PRIMARY KEY);
CREATE TABLE loaded (id int PRIMARY KEY);
"""
# Round {k}'s transactions, separated by lines of dashes.
CHANGES = """
INSERT INTO keyed SELECT {k} * 1000 + i, i % 7, 'round {k}' FROM generate_series(1, 200) AS i;
--
UPDATE keyed SET v = v + 1, note = NULL WHERE id % 3 = {k} % 3;
--
DELETE FROM keyed WHERE id % 5 = {k} % 5;
--
BEGIN; INSERT INTO keyed VALUES (-{k}, 1, 'kept');
SAVEPOINT a; UPDATE keyed SET v = -1 WHERE id > {k} * 1000; DELETE FROM plain; ROLLBACK TO a;
SAVEPOINT b; UPDATE keyed SET v = 2 WHERE id = -{k}; RELEASE b; COMMIT;
--
BEGIN; UPDATE keyed SET v = -7; DELETE FROM coded; ROLLBACK;
--
INSERT INTO plain SELECT i, 'round {k}' FROM generate_series(1, 100) AS i;
--
DELETE FROM plain WHERE v % 4 = {k} % 4; UPDATE plain SET v = v + 100 WHERE v % 10 = 1;
--
INSERT INTO coded SELECT {k} * 100 + i, 'code ' || {k} * 100 + i,
  timestamptz '2020-01-01 00:00:00+00' + i * interval '1 second' FROM generate_series(1, 20) AS i;
--
BEGIN; DELETE FROM coded WHERE id = {k} * 100 + 1;
UPDATE coded SET code = 'code ' || {k} * 100 + 1 WHERE id = {k} * 100 + 2; COMMIT;
--
BEGIN; INSERT INTO parent SELECT {k} * 100 + i, 'parent' FROM generate_series(1, 5) AS i;
INSERT INTO child SELECT {k} * 100 + i, {k} * 100 + 1 + i % 5 FROM generate_series(1, 20) AS i;
COMMIT;
--
DELETE FROM parent WHERE id IN ({k} * 100 + 2, {k} * 100 - 97);
--
INSERT INTO parted SELECT {k} + 20 * i, i FROM generate_series(1, 40) AS i;
--
UPDATE parted SET id = id + 10000 WHERE v = 3; UPDATE parted SET v = -v WHERE id % 7 = {k} % 7;
--
DELETE FROM long WHERE id < {k} * 10 - 10;
--
INSERT INTO long SELECT {k} * 10 + i, substr(repeat(md5(({k} + i)::text), 32768), 1, 1000000 - i)
FROM generate_series(1, 6) AS i;
--
BEGIN; TRUNCATE emptied; INSERT INTO emptied SELECT generate_series(1, {k}); COMMIT;
--
BEGIN; TRUNCATE emptied; INSERT INTO emptied VALUES (-1); ROLLBACK;
--
BEGIN; TRUNCATE copied; COPY copied FROM PROGRAM 'seq {k} {k}500';
DELETE FROM copied WHERE id % 3 = 0; UPDATE copied SET id = -id WHERE id % 7 = {k} % 7; COMMIT;
--
BEGIN; TRUNCATE copied; COPY copied FROM PROGRAM 'seq 1 3000'; ROLLBACK;
--
BEGIN; TRUNCATE loaded; COPY loaded FROM PROGRAM 'seq {k} {k}500'; COMMIT;
--
CREATE TABLE taken AS SELECT * FROM copied; ALTER TABLE taken ADD PRIMARY KEY (id);
BEGIN; TRUNCATE copied; INSERT INTO copied TABLE taken; COMMIT; DROP TABLE taken;
--
INSERT INTO shaped SELECT {k} * 100 + i, i FROM generate_series(1, 30) AS i;
--
ALTER TABLE shaped ADD COLUMN c_{k} text DEFAULT 'round {k}';
--
ALTER TABLE shaped DROP COLUMN w; ALTER TABLE shaped ADD COLUMN w bigint DEFAULT {k};
--
ALTER TABLE shaped ALTER COLUMN v TYPE {shape};
--
CREATE INDEX shaped_{k} ON shaped (v, c_{k}); REINDEX TABLE keyed;
DROP INDEX IF EXISTS shaped_{k_before};
--
BEGIN; CREATE TABLE made_{k} (id int, v int); INSERT INTO made_{k} VALUES (1000, {k});
SAVEPOINT a; TRUNCATE made_{k}; ROLLBACK TO a; COMMIT;
--
INSERT INTO made_{k} SELECT i, i * {k} FROM generate_series(1, 50) AS i;
--
ALTER TABLE made_{k} ADD PRIMARY KEY (id);
--
UPDATE made_{k} SET v = v + 1 WHERE id = 7;
--
DROP TABLE made_{k_before};
--
BEGIN; CREATE TABLE undone (id int PRIMARY KEY); INSERT INTO undone VALUES (1); ROLLBACK;
"""
DIFFERENCE = """SELECT count(*) FROM ((TABLE ours.{t} EXCEPT ALL TABLE heap.{t}) UNION ALL
  (TABLE heap.{t} EXCEPT ALL TABLE ours.{t})) AS difference"""
OUTAGES = (outage.fast_stop, outage.killed_whole, outage.killed_after_checkpoint,
           outage.immediate_stop, outage.killed_node, outage.killed_supervisor,
           outage.killed_checkpointer, outage.ended_checkpointer, outage.killed_while_recovering,
           outage.killed_idle_session, outage.workers_killed_while_recovering)
rounds = 0  # of changes so far; the last one's number


def in_schema(schema):
    method = "rdmacc" if schema == "ours" else "heap"
    return (f"SET client_min_messages = warning; SET search_path = {schema};"
            f" SET default_table_access_method = {method};")


def set_up(box):
    for schema in ("heap", "ours"):
        box.psql(f"CREATE SCHEMA {schema}; {in_schema(schema)} {SCHEMA}")


def change(box, protocol):
    global rounds
    rounds += 1
    text = CHANGES.format(k=rounds, k_before=rounds - 1,
                          shape=("int", "bigint")[rounds % 2])
    for transaction in text.split("\n--\n"):
        if "BEGIN;" not in transaction:
            transaction = f"BEGIN; {transaction} COMMIT;"
        result = retried(box, f"SET rdmacc.protocol = {protocol}; {in_schema('ours')}"
                              f" {transaction}")
        equal(result.stderr, "", f"{protocol}: {transaction}")
    box.psql(in_schema("heap") + text)


def compare(box, what):
    for table in (*TABLES, f"made_{rounds}"):
        equal(ask(box, DIFFERENCE.format(t=table)), "0", f"{what}: rows of {table} that differ")
    by_index = "SELECT {} (SELECT v, count(*) AS c FROM {}.keyed WHERE v >= 0 GROUP BY v) AS k"
    counts = "string_agg(v || ':' || c, ',' ORDER BY v) FROM"
    equal(ask(box, "SET enable_seqscan = off; " + by_index.format(counts, "ours")),
          box.psql(by_index.format(counts, "heap")), f"{what}: through an index")
    equal(box.psql("SELECT count(*) FROM pg_class WHERE relname = 'undone' OR relname ="
                   f" 'made_{rounds - 1}'"), "0", f"{what}: tables that are not there")
    verify(box, what, losses=True)
    eventually(lambda: box.psql("SELECT count(*) FROM rdmacc.locks") == "0", f"{what}: no locks")


def half_done(box, protocol):
    """A transaction that has changed much and not committed."""
    session = Session(box)
    session.run(f"SET rdmacc.protocol = {protocol}; {in_schema('ours')}")
    said = session.run("BEGIN; UPDATE keyed SET v = -3 WHERE id < 0; DELETE FROM coded;"
                       " INSERT INTO keyed SELECT i FROM generate_series(500001, 500100) AS i;"
                       " CREATE TABLE undone (id int PRIMARY KEY); INSERT INTO undone VALUES (1);")
    equal(said, "", "the transaction that will not commit")
    return session


def outages(box):
    names = [name for name in protocols(box) if name != "calvin"]
    for number, happen in enumerate(OUTAGES):
        protocol = names[number % len(names)]
        change(box, protocol)
        session = half_done(box, protocol)
        happen(box)
        outage.wait_for_rows(box)
        session.process.kill()
        session.process.wait()
        compare(box, f"{happen.__name__}, {protocol}")


run(set_up, outages, settings={"rdmacc.nodes": 2, "rdmacc.node_memory": "256MB"})
