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
