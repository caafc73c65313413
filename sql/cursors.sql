-- Cursors show the rows as of their declaration.
CREATE TABLE t (id int PRIMARY KEY, v text) USING rdmacc;
INSERT INTO t VALUES (1, 'only');
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM t;
UPDATE t SET v = 'changed';
INSERT INTO t VALUES (2, 'later');
FETCH ALL FROM c;
SELECT * FROM t ORDER BY id;
COMMIT;

-- in both directions
INSERT INTO t SELECT i, 'v' || i FROM generate_series(3, 30) i;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id FROM t ORDER BY id;
FETCH 2 FROM c;
FETCH BACKWARD 1 FROM c;
FETCH LAST FROM c;
FETCH ABSOLUTE 5 FROM c;
FETCH RELATIVE -2 FROM c;
CLOSE c;
DECLARE c SCROLL CURSOR FOR SELECT count(*) OVER (), 1 FROM t WHERE id = 3;
FETCH ALL FROM c;
CLOSE c;
-- the order of a plain scan is the engine's, but going back repeats it
CREATE FUNCTION there_and_back() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  c SCROLL CURSOR FOR SELECT id FROM t;
  forward int[] := '{}';
  backward int[] := '{}';
  again int[] := '{}';
  r int;
BEGIN
  OPEN c;
  FOR i IN 1..5 LOOP FETCH c INTO r; forward := forward || r; END LOOP;
  FOR i IN 1..4 LOOP FETCH PRIOR FROM c INTO r; backward := r || backward; END LOOP;
  IF backward <> forward[1:4] THEN RETURN format('%s but %s', forward, backward); END IF;
  FETCH PRIOR FROM c INTO r;
  IF r IS NOT NULL THEN RETURN 'before the first row: ' || r; END IF;
  LOOP FETCH c INTO r; EXIT WHEN NOT found; again := again || r; END LOOP;
  IF again[1:5] <> forward THEN RETURN format('%s but %s', forward, again); END IF;
  FETCH PRIOR FROM c INTO r;
  IF r <> again[array_length(again, 1)] THEN RETURN 'last row: ' || r; END IF;
  RETURN format('%s rows', array_length(again, 1));
END $$;
SELECT there_and_back();
COMMIT;

-- WHERE CURRENT OF
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM t WHERE id = 3;
FETCH c;
UPDATE t SET v = 'current' WHERE CURRENT OF c;
SELECT * FROM t WHERE id = 3;
DELETE FROM t WHERE CURRENT OF c;
SELECT count(*) FROM t WHERE id = 3;
CLOSE c;
DECLARE c CURSOR FOR SELECT * FROM t WHERE v = 'v20' FOR UPDATE;
FETCH c;
UPDATE t SET v = 'twenty' WHERE CURRENT OF c;
DELETE FROM t WHERE CURRENT OF c;
COMMIT;
SELECT count(*) FROM t;

-- WITH HOLD outlives the transaction
BEGIN;
DECLARE held CURSOR WITH HOLD FOR SELECT id FROM t WHERE id < 6 ORDER BY id;
FETCH 1 FROM held;
COMMIT;
DELETE FROM t WHERE id = 4;
FETCH ALL FROM held;
CLOSE held;

-- rows that are updated under a cursor that locks them are not its any more
BEGIN;
DECLARE sharing CURSOR FOR SELECT id FROM t FOR SHARE;
UPDATE t SET v = v || '.';
FETCH ALL FROM sharing;
ROLLBACK;

-- loops
DO $$
DECLARE
  r record;
  n int := 0;
BEGIN
  FOR r IN SELECT * FROM t LOOP
    UPDATE t SET v = 'loop' WHERE id = r.id;
    INSERT INTO t VALUES (r.id + 1000, 'new');
    n := n + 1;
  END LOOP;
  RAISE NOTICE '% rows', n;
END $$;
SELECT v, count(*) FROM t GROUP BY v ORDER BY v;
DROP FUNCTION there_and_back;
DROP TABLE t;
-- A held cursor is no query of the blocks after its own.
BEGIN;
DECLARE held CURSOR WITH HOLD FOR SELECT 1;
COMMIT;
BEGIN;
SAVEPOINT s;
SELECT 1;
RELEASE s;
COMMIT;
CLOSE held;

-- WHERE CURRENT OF a row that the transaction has already written adds to what it wrote: the cursor
-- still shows the row as of its declaration.
CREATE TABLE l (id int PRIMARY KEY, balance int, note text) USING rdmacc;
INSERT INTO l SELECT i, 100, 'open' FROM generate_series(1, 4) i;
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM l WHERE id = 1 FOR UPDATE;
FETCH c;
UPDATE l SET balance = balance - 30 WHERE CURRENT OF c;
UPDATE l SET note = 'paid' WHERE CURRENT OF c;
COMMIT;
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM l WHERE id = 2;
FETCH c;
UPDATE l SET balance = balance - 30 WHERE id = 2;
UPDATE l SET note = note || ', paid' WHERE CURRENT OF c RETURNING *;
SAVEPOINT s;
UPDATE l SET balance = 0 WHERE CURRENT OF c RETURNING *;
ROLLBACK TO s;
UPDATE l SET balance = balance - 1 WHERE CURRENT OF c RETURNING *;
COMMIT;
-- the same in a query of another statement
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM l WHERE id = 4;
FETCH c;
UPDATE l SET balance = balance - 30 WHERE CURRENT OF c;
WITH paid AS (UPDATE l SET note = 'paid' WHERE CURRENT OF c RETURNING *) SELECT * FROM paid;
ROLLBACK;
-- a row that was written before the cursor has come to it
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM l WHERE id = 3;
UPDATE l SET balance = balance - 30 WHERE id = 3;
FETCH c;
UPDATE l SET note = note || ', paid' WHERE CURRENT OF c RETURNING *;
DELETE FROM l WHERE CURRENT OF c RETURNING *;
UPDATE l SET note = 'back' WHERE CURRENT OF c RETURNING *;
DELETE FROM l WHERE CURRENT OF c RETURNING *;
COMMIT;
SELECT * FROM l ORDER BY id;
-- a table without a key is read from its start
CREATE TABLE loose (id int, balance int, note text) USING rdmacc;
INSERT INTO loose SELECT i, 100, 'open' FROM generate_series(1, 3) i;
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM loose WHERE id = 1 FOR UPDATE;
FETCH c;
UPDATE loose SET balance = balance - 30 WHERE CURRENT OF c;
UPDATE loose SET note = 'paid' WHERE CURRENT OF c;
CLOSE c;
DECLARE c CURSOR FOR SELECT * FROM loose WHERE id = 2;
FETCH c;
UPDATE loose SET balance = balance - 30 WHERE id = 2;
UPDATE loose SET note = 'paid' WHERE CURRENT OF c RETURNING *;
CLOSE c;
DECLARE c CURSOR FOR SELECT * FROM loose WHERE id = 3;
FETCH c;
UPDATE loose SET balance = balance - 30 WHERE CURRENT OF c;
DELETE FROM loose WHERE CURRENT OF c RETURNING *;
COMMIT;
SELECT * FROM loose ORDER BY id;
-- a cursor by an index finds its row again, though what it was found by has changed
CREATE INDEX loose_balance ON loose (balance);
BEGIN;
SET LOCAL enable_seqscan = off;
SET LOCAL enable_bitmapscan = off;
DECLARE c CURSOR FOR SELECT * FROM loose WHERE balance = 70 AND id = 1 FOR UPDATE;
FETCH c;
UPDATE loose SET balance = balance + 1000 WHERE CURRENT OF c;
UPDATE loose SET note = note || ', again' WHERE CURRENT OF c;
COMMIT;
SELECT * FROM loose ORDER BY id;
UPDATE loose SET balance = 70;
-- in a function, by a scan of the whole table, too
CREATE FUNCTION pay() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  one CURSOR (wanted int) FOR SELECT * FROM l WHERE id = wanted;
  every CURSOR FOR SELECT * FROM loose FOR UPDATE;
BEGIN
  FOR r IN one(4) LOOP
    FOR i IN 1..5 LOOP UPDATE l SET balance = balance - i WHERE CURRENT OF one; END LOOP;
    UPDATE l SET note = 'paid ' || r.balance WHERE CURRENT OF one;
  END LOOP;
  FOR r IN every LOOP
    UPDATE loose SET balance = balance + r.id WHERE id = r.id;
    UPDATE loose SET balance = balance * 2 WHERE CURRENT OF every;
    UPDATE loose SET note = 'paid ' || r.balance WHERE CURRENT OF every;
  END LOOP;
END $$;
SELECT pay();
SELECT * FROM l UNION ALL SELECT * FROM loose ORDER BY 1, 2;
-- what is replaced, for triggers and foreign keys, is the row as it is
CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE NOTICE '% % of %: old %, new %', tg_when, tg_op, tg_table_name, old, new;
  RETURN coalesce(new, old);
END $$;
CREATE TRIGGER tell AFTER UPDATE OR DELETE ON l FOR EACH ROW EXECUTE FUNCTION tell();
CREATE TRIGGER tell BEFORE UPDATE OR DELETE ON loose FOR EACH ROW EXECUTE FUNCTION tell();
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM l WHERE id = 1;
DECLARE d CURSOR FOR SELECT * FROM loose WHERE id = 1;
FETCH c;
FETCH d;
UPDATE l SET balance = 1 WHERE CURRENT OF c;
UPDATE l SET note = 'first' WHERE id = 1;
UPDATE l SET balance = balance + 1 WHERE CURRENT OF c;
DELETE FROM l WHERE CURRENT OF c;
UPDATE loose SET balance = 1 WHERE CURRENT OF d;
UPDATE loose SET note = 'first' WHERE CURRENT OF d;
DELETE FROM loose WHERE CURRENT OF d;
COMMIT;
CREATE TABLE p (id int PRIMARY KEY) USING rdmacc;
CREATE TABLE f (id int PRIMARY KEY, r int REFERENCES p, w text) USING rdmacc;
INSERT INTO p VALUES (1), (2);
INSERT INTO f VALUES (1, 1, 'a');
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM f WHERE id = 1 FOR UPDATE;
FETCH c;
UPDATE f SET r = 2 WHERE CURRENT OF c;
DELETE FROM p WHERE id = 1;
UPDATE f SET w = 'b' WHERE CURRENT OF c;
COMMIT;
SELECT * FROM f;
DROP TABLE l, loose, f, p;
DROP FUNCTION pay, tell;

-- A cursor by key goes back, past both ends, and is one of WHERE CURRENT OF.
CREATE TABLE t (id int PRIMARY KEY, v text) USING rdmacc;
INSERT INTO t SELECT i, 'v' || i FROM generate_series(1, 4) i;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT * FROM t WHERE id = 1;
FETCH 1 FROM c;
FETCH 1 FROM c;
FETCH PRIOR FROM c;
FETCH PRIOR FROM c;
FETCH PRIOR FROM c;
FETCH NEXT FROM c;
UPDATE t SET v = 'current' WHERE CURRENT OF c RETURNING *;
FETCH FIRST FROM c;
FETCH LAST FROM c;
FETCH ABSOLUTE 2 FROM c;
FETCH BACKWARD ALL FROM c;
FETCH FORWARD ALL FROM c;
CLOSE c;
DECLARE c SCROLL CURSOR FOR SELECT * FROM t WHERE id = ANY ('{1,7,2,4}');
FETCH 2 FROM c;
FETCH PRIOR FROM c;
UPDATE t SET v = v || ' again' WHERE CURRENT OF c RETURNING *;
FETCH PRIOR FROM c;
FETCH PRIOR FROM c;
FETCH 3 FROM c;
FETCH NEXT FROM c;
FETCH NEXT FROM c;
FETCH PRIOR FROM c;
DELETE FROM t WHERE CURRENT OF c RETURNING *;
FETCH BACKWARD ALL FROM c;
MOVE FORWARD ALL IN c;
FETCH BACKWARD 2 FROM c;
FETCH LAST FROM c;
FETCH ABSOLUTE -2 FROM c;
FETCH RELATIVE 1 FROM c;
FETCH FIRST FROM c;
CLOSE c;
-- no row at all; and without being asked for
DECLARE c SCROLL CURSOR FOR SELECT * FROM t WHERE id = 9;
FETCH NEXT FROM c;
FETCH PRIOR FROM c;
FETCH NEXT FROM c;
DECLARE d CURSOR FOR SELECT * FROM t WHERE id = ANY ('{1,2}');
FETCH ALL FROM d;
FETCH BACKWARD ALL FROM d;
-- in a join, once for each outer row
SET LOCAL enable_hashjoin = off;
SET LOCAL enable_mergejoin = off;
DECLARE e SCROLL CURSOR FOR
  SELECT * FROM (VALUES (1), (3), (7), (2)) w (wanted) JOIN t ON id = wanted;
FETCH 2 FROM e;
FETCH PRIOR FROM e;
FETCH PRIOR FROM e;
FETCH ALL FROM e;
FETCH BACKWARD ALL FROM e;
COMMIT;
SELECT * FROM t ORDER BY id;

-- Cursors that a function opens, of which the rows are there when they are read, are no reason for
-- a warning at COMMIT.
CREATE FUNCTION changing(c refcursor) RETURNS refcursor LANGUAGE plpgsql AS $$
BEGIN OPEN c FOR UPDATE t SET v = v || '.' WHERE id = 1 RETURNING id, v; RETURN c; END $$;
CREATE FUNCTION showing(c refcursor) RETURNS refcursor LANGUAGE plpgsql AS $$
BEGIN OPEN c FOR EXECUTE 'SHOW work_mem'; RETURN c; END $$;
BEGIN;
SELECT changing('c');
SELECT count(*) FROM t;
SAVEPOINT s;
SELECT showing('d');
SELECT count(*) FROM t;
RELEASE s;
SELECT 1;
COMMIT;
BEGIN;
SELECT showing('c');
SELECT 1;
COMMIT;
BEGIN;
SELECT changing('c');
FETCH FROM c;
SELECT 1;
SELECT v FROM t ORDER BY id;
COMMIT;
DROP FUNCTION changing, showing;
DROP TABLE t;
