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
