-- Rows that this transaction locks and writes by turns.
CREATE TABLE t (id int PRIMARY KEY, v text) USING rdmacc;
INSERT INTO t VALUES (1, 'old'), (2, 'old');

-- a lock taken through an older cursor does not bring an older row back
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM t FOR UPDATE;
UPDATE t SET v = 'new' WHERE id = 1;
UPDATE t SET v = 'x' WHERE id = 2;
FETCH ALL FROM c;
COMMIT;
SELECT * FROM t ORDER BY id;
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM t FOR UPDATE;
UPDATE t SET v = 'newer' WHERE id = 1;
DELETE FROM t WHERE id = 2;
UPDATE t SET v = 'none' WHERE id = 3;
FETCH ALL FROM c;
COMMIT;
SELECT * FROM t ORDER BY id;

-- a loop that also writes rows it has not come to
CREATE TABLE pairs (id int PRIMARY KEY, partner int, n int) USING rdmacc;
INSERT INTO pairs SELECT i, 201 - i, 0 FROM generate_series(1, 200) i;
DO $$
DECLARE
  r record;
BEGIN
  FOR r IN SELECT * FROM pairs FOR UPDATE LOOP
    UPDATE pairs SET n = n + 1 WHERE id = r.id;
    UPDATE pairs SET n = n + 1 WHERE id = r.partner;
  END LOOP;
END $$;
-- both of a pair, as often as either was met
SELECT sum(n) % 2 AS odd, count(*) FILTER (WHERE n = 0) AS missed FROM pairs;
SELECT count(*) FROM pairs p JOIN pairs q ON q.id = p.partner WHERE p.n <> q.n;

-- rows locked twice, and locked rows that are written, are what they are
BEGIN;
SELECT * FROM t ORDER BY id FOR UPDATE;
SELECT * FROM t ORDER BY id FOR UPDATE;
UPDATE t SET v = 'after locks';
SELECT * FROM t ORDER BY id FOR UPDATE;
COMMIT;

-- rows that it shares it locks, writes, deletes and shares again, before and after a savepoint
INSERT INTO t VALUES (2, 'two'), (3, 'three');
BEGIN;
SELECT * FROM t ORDER BY id FOR SHARE;
SELECT * FROM t WHERE id IN (1, 2) ORDER BY id FOR SHARE;
SAVEPOINT s;
SELECT * FROM t WHERE id = 1 FOR UPDATE;
UPDATE t SET v = 'gone' WHERE id = 1;
SELECT * FROM t WHERE id = 1 FOR SHARE;
ROLLBACK TO s;
UPDATE t SET v = v || ' shared' WHERE id < 3;
SELECT * FROM t ORDER BY id FOR SHARE;
DELETE FROM t WHERE id = 3;
SELECT * FROM t ORDER BY id FOR SHARE;
COMMIT;
SELECT * FROM t ORDER BY id FOR UPDATE;

-- many are shared, more than are noted for others' waits
INSERT INTO t SELECT i, 'many' FROM generate_series(100, 299) i;
BEGIN;
SELECT count(*) FROM (SELECT FROM t FOR SHARE) q;
SAVEPOINT s;
SELECT count(*) FROM (SELECT FROM t WHERE id > 150 FOR SHARE) q;
ROLLBACK TO s;
UPDATE t SET v = 'all' WHERE id >= 100;
COMMIT;
SELECT v, count(*) FROM t WHERE id >= 100 GROUP BY v;

-- a write by an inner command that is rolled back does not hide the outer command's own
CREATE FUNCTION poke() RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  UPDATE pairs SET n = n + 100 WHERE id = 1;
  RAISE EXCEPTION 'no';
EXCEPTION WHEN raise_exception THEN
  RETURN 1000;
END $$;
UPDATE pairs SET n = poke() + k FROM (VALUES (1), (2), (3)) j(k) WHERE id = 1
  RETURNING n > 1000 AS once;

-- statements that meet each row once, in a block: alone, beside an older cursor, around a function that writes what they
-- have still to come to
CREATE TABLE once (id int PRIMARY KEY, n int, v text) USING rdmacc;
INSERT INTO once SELECT i, i, 'old' FROM generate_series(1, 400) i;
CREATE INDEX once_n ON once (n);
SET enable_bitmapscan = off;
BEGIN;
UPDATE once SET v = 'first';
SET LOCAL enable_seqscan = off;
UPDATE once SET v = v || ' second' WHERE n BETWEEN 10 AND 20;
UPDATE once SET n = n + 5 WHERE n BETWEEN 10 AND 390;
DELETE FROM once WHERE n BETWEEN 100 AND 120;
SET LOCAL enable_seqscan = on;
UPDATE once SET v = v || ' third';
SELECT v, count(*), min(n), max(n), sum(n) FROM once GROUP BY v ORDER BY v;
COMMIT;
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM once WHERE id < 6 ORDER BY id FOR UPDATE;
DECLARE d CURSOR FOR SELECT id FROM once WHERE id < 6 ORDER BY id;
UPDATE once SET v = 'whole' WHERE v LIKE 'first%';
FETCH ALL FROM c;
FETCH ALL FROM d;
CLOSE c;
DECLARE c CURSOR FOR SELECT id FROM once WHERE id < 6 ORDER BY id FOR UPDATE;
UPDATE once SET v = v;
FETCH ALL FROM c;
CLOSE c;
UPDATE once SET v = 'whole again' WHERE n < 4;
DECLARE c CURSOR FOR SELECT id, v FROM once WHERE id < 6 ORDER BY id FOR UPDATE;
DELETE FROM once WHERE n = 2;
DELETE FROM once WHERE v = 'whole again';
FETCH ALL FROM c;
ROLLBACK;
CREATE FUNCTION poke_next(i int) RETURNS bool LANGUAGE plpgsql AS $$
BEGIN
  UPDATE once SET v = 'poked' WHERE id = i + 1;
  RETURN true;
END $$;
\set VERBOSITY terse
BEGIN;
UPDATE once SET v = 'by the statement' WHERE v LIKE 'first%' AND n < 4 AND poke_next(id);
ROLLBACK;
BEGIN;
DELETE FROM once WHERE n < 4 AND poke_next(id);
ROLLBACK;
\set VERBOSITY default
RESET enable_bitmapscan;
SELECT v, count(*) FROM once GROUP BY v ORDER BY v;
DROP FUNCTION poke_next;
DROP TABLE once;
DROP TABLE t, pairs;
DROP FUNCTION poke;

-- rows that this transaction has deleted or changed since a query began are not the query's any
-- more, with locks for which the engine has to do nothing, too
CREATE TABLE t (id int PRIMARY KEY, v int) USING rdmacc;
CREATE FUNCTION turns(lock text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  c refcursor;
  wanted int;
  n int := 0;
BEGIN
  OPEN c FOR EXECUTE 'SELECT id FROM t ORDER BY id FOR ' || lock;
  LOOP
    FETCH c INTO wanted;
    EXIT WHEN NOT found;
    UPDATE t SET v = v + 1 WHERE id = wanted + 15;
    n := n + 1;
  END LOOP;
  RETURN n;
END $$;
CREATE FUNCTION static_turns() RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  c CURSOR FOR SELECT id FROM t ORDER BY id FOR KEY SHARE;
  n int := 0;
BEGIN
  FOR r IN c LOOP
    UPDATE t SET v = v + 1 WHERE id = r.id + 15;
    n := n + 1;
  END LOOP;
  RETURN n;
END $$;
INSERT INTO t SELECT i, 0 FROM generate_series(1, 30) i;
BEGIN;
DECLARE c CURSOR FOR SELECT id, v FROM t ORDER BY id FOR KEY SHARE;
DECLARE d CURSOR FOR SELECT id, v FROM t WHERE id < 9 ORDER BY id FOR SHARE;
FETCH 2 FROM c;
FETCH 2 FROM d;
DELETE FROM t WHERE id = 3;
DELETE FROM t WHERE id = 4;
UPDATE t SET v = 1 WHERE id = 5;
UPDATE t SET v = v WHERE id = 6;
FETCH 4 FROM c;
FETCH 4 FROM d;
ROLLBACK;
SELECT static_turns();
SELECT lock, turns(lock) FROM unnest('{KEY SHARE,SHARE,NO KEY UPDATE,UPDATE}'::text[]) lock;
-- a protocol that locks what is read for SHARE alone
SET rdmacc.protocol = nowait;
BEGIN;
DECLARE c CURSOR FOR SELECT id, v FROM t ORDER BY id FOR SHARE;
FETCH 2 FROM c;
DELETE FROM t WHERE id = 3;
UPDATE t SET v = 100 WHERE id = 5;
FETCH 4 FROM c;
ROLLBACK;
SELECT static_turns();
SELECT lock, turns(lock) FROM unnest('{KEY SHARE,SHARE,NO KEY UPDATE,UPDATE}'::text[]) lock;
RESET rdmacc.protocol;
SELECT v, count(*) FROM t GROUP BY v ORDER BY v;
DROP FUNCTION turns, static_turns;
DROP TABLE t;
