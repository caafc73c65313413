-- Rows that a transaction has written, a few and then more than a few: what it wrote itself is
-- found again by later statements, triggers, rolled back savepoints and cursors.
CREATE TABLE m (id int PRIMARY KEY, n int) USING rdmacc;
INSERT INTO m SELECT i, 0 FROM generate_series(1, 30) i;
CREATE FUNCTION again() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.n % 7 = 3 AND pg_trigger_depth() = 1 THEN
    UPDATE m SET n = n + 100 WHERE id = NEW.id;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER again AFTER UPDATE ON m FOR EACH ROW EXECUTE FUNCTION again();
BEGIN;
DO $$ BEGIN FOR i IN 1..20 LOOP UPDATE m SET n = n + i WHERE id = i; END LOOP; END $$;
SAVEPOINT a;
DO $$ BEGIN FOR i IN 5..25 LOOP UPDATE m SET n = n * 2 + 1 WHERE id = i; END LOOP; END $$;
SELECT sum(n), count(*) FROM m;
ROLLBACK TO a;
DO $$ BEGIN FOR i IN 1..30 LOOP UPDATE m SET n = n + 3 WHERE id = i; END LOOP; END $$;
UPDATE m SET n = n + 1 FROM (VALUES (3), (3), (9), (9), (21)) v(k) WHERE id = v.k;
DELETE FROM m WHERE id % 6 = 0;
INSERT INTO m VALUES (6, -1), (12, -2);
UPDATE m SET n = n - 1 WHERE id IN (6, 12, 18);
SELECT * FROM m ORDER BY id;
COMMIT;
SELECT sum(n), count(*) FROM m;
-- One row, written again behind a savepoint; one that a cursor stands on.
BEGIN;
UPDATE m SET n = 1 WHERE id = 1;
SAVEPOINT b;
UPDATE m SET n = 2 WHERE id = 1;
ROLLBACK TO b;
UPDATE m SET n = n + 10 WHERE id = 1;
DECLARE c CURSOR FOR SELECT id FROM m WHERE id = 2;
FETCH c;
UPDATE m SET n = 77 WHERE CURRENT OF c;
FETCH c;
SELECT * FROM m WHERE id IN (1, 2) ORDER BY id;
COMMIT;
-- Eight rows, and one more, in one statement.
WITH x AS (UPDATE m SET n = 5 WHERE id IN (1, 2, 3, 4, 5, 7, 8, 9) RETURNING id) SELECT count(*) FROM x;
WITH x AS (UPDATE m SET n = 6 WHERE id IN (1, 2, 3, 4, 5, 7, 8, 9, 10) RETURNING id) SELECT count(*) FROM x;
-- A key longer than what a few rows' handles have room for.
CREATE TABLE long_keys (k text PRIMARY KEY, n int) USING rdmacc;
INSERT INTO long_keys VALUES (repeat('k', 200), 1), (repeat('l', 300), 2);
BEGIN;
UPDATE long_keys SET n = n + 1 WHERE k = repeat('k', 200);
UPDATE long_keys SET n = n + 1 WHERE k = repeat('l', 300);
UPDATE long_keys SET n = n + 1 WHERE k = repeat('k', 200);
SELECT left(k, 1), length(k), n FROM long_keys ORDER BY k;
COMMIT;
SELECT sum(n), count(*) FROM m;
DROP TABLE m, long_keys;
DROP FUNCTION again();
-- Two queries that change rows have the same command's number where both are cursors of one
-- function: the second one does not meet what the first has changed.
CREATE TABLE t (id int PRIMARY KEY, a int) USING rdmacc;
CREATE TABLE loose (id int, a int) USING rdmacc;
INSERT INTO t SELECT i, 1 FROM generate_series(1, 6) i;
INSERT INTO loose SELECT * FROM t;
CREATE FUNCTION both_of(first text, second text, meanwhile text DEFAULT NULL) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
  c1 refcursor;
  c2 refcursor;
  x int;
  y int;
BEGIN
  OPEN c1 FOR EXECUTE first;
  OPEN c2 FOR EXECUTE second;
  FETCH c1 INTO x;
  IF meanwhile IS NOT NULL THEN EXECUTE meanwhile; END IF;
  FETCH c2 INTO y;
  RETURN format('%s, %s', x, coalesce(y::text, 'none'));
END $$;
SELECT both_of('UPDATE t SET a = a + 10 WHERE id = 1 RETURNING a',
               'UPDATE t SET a = a + 100 WHERE id = 1 RETURNING a');
SELECT * FROM t WHERE id = 1;
SELECT both_of('UPDATE t SET a = a + 10 WHERE id = 2 RETURNING a',
               'DELETE FROM t WHERE id = 2 RETURNING a');
SELECT both_of('DELETE FROM t WHERE id = 3 RETURNING a', 'DELETE FROM t WHERE id = 3 RETURNING a');
SELECT both_of('DELETE FROM t WHERE id = 4 RETURNING a',
               'UPDATE t SET a = 5 WHERE id = 4 RETURNING a');
SELECT both_of('UPDATE t SET id = 50 WHERE id = 5 RETURNING id',
               'UPDATE t SET id = 51 WHERE id = 5 RETURNING id');
SELECT both_of('UPDATE t SET a = a WHERE id = 6 RETURNING a',
               'UPDATE t SET a = a + 1 WHERE id IN (1, 6) RETURNING id');
SELECT * FROM t ORDER BY id;
SELECT both_of('UPDATE loose SET a = a + 10 RETURNING a',
               'UPDATE loose SET a = a + 100 RETURNING a');
SELECT both_of('UPDATE loose SET a = a + 10 WHERE id = 2 RETURNING a',
               'DELETE FROM loose WHERE id IN (2, 3) RETURNING id');
SELECT * FROM loose ORDER BY id;
-- With another command between the two, the second one has a number of its own.
SELECT both_of('UPDATE t SET a = a + 10 WHERE id = 1 RETURNING a',
               'UPDATE t SET a = a + 100 WHERE id = 1 RETURNING a',
               'UPDATE t SET a = a + 1000 WHERE id = 6');
SELECT * FROM t ORDER BY id;
DROP FUNCTION both_of;
DROP TABLE t, loose;
