-- Rows that are written while a scan returns them, some of a table or all, more than a scan holds at
-- once: what conditions, triggers and savepoints see of them is what they see elsewhere.
CREATE TABLE many (id int PRIMARY KEY, part int, n int, filler text) USING rdmacc;
INSERT INTO many SELECT i, i % 10, i, repeat('x', i % 50) FROM generate_series(1, 6000) i;
CREATE INDEX ON many (part, n);
CREATE TABLE gone (id int, n int) USING heap;
CREATE FUNCTION note_gone() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO gone VALUES (old.id, old.n);
  RETURN NULL;
END $$;

-- no trigger: some rows, and what RETURNING shows of them
DELETE FROM many WHERE n % 1000 = 7 AND part = 7;
DELETE FROM many WHERE n * 2 = 10000 RETURNING id, part, n;
UPDATE many SET n = n + 1 WHERE id % 1500 = 0;
UPDATE many SET n = n + 1 WHERE n * 2 = 8008 RETURNING id, n, length(filler);
SELECT count(*), sum(n), sum(id) FROM many;
SELECT count(*), sum(n) FROM many WHERE part = 3;

-- each row once, whichever way it moves
UPDATE many SET id = id + 10000 WHERE id > 3000;
SELECT count(*), min(id), max(id), sum(id) FROM many;

-- a condition that looks at the same table
DELETE FROM many WHERE n > (SELECT avg(n) * 1.9 FROM many);
DELETE FROM many a WHERE EXISTS (SELECT FROM many b WHERE b.id = a.id + 10000);
SELECT count(*), sum(n) FROM many;
CREATE FUNCTION rows_left() RETURNS bigint LANGUAGE sql VOLATILE AS 'SELECT count(*) FROM many';
BEGIN;
DELETE FROM many WHERE part = 4 AND rows_left() > 0 AND id % 100 = 4;
UPDATE many SET n = rows_left() WHERE part = 5 AND id % 500 = 5;
SELECT count(*), sum(n) FROM many;
ROLLBACK;

-- rows that an AFTER trigger comes back to, of all of the statement
CREATE TRIGGER note AFTER DELETE OR UPDATE ON many FOR EACH ROW EXECUTE FUNCTION note_gone();
DELETE FROM many WHERE id % 2 = 0;
SELECT count(*), sum(id), sum(n) FROM gone;
SELECT count(*), sum(n) FROM many;
TRUNCATE gone;
UPDATE many SET n = -n, filler = filler || 'y' WHERE part <> 1;
SELECT count(*), sum(id), sum(n) FROM gone;
SELECT count(*), sum(n), sum(length(filler)) FROM many;

-- and a BEFORE trigger that passes over some
CREATE FUNCTION keep_some() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF old.id % 3 = 0 THEN RETURN NULL; END IF;
  RETURN old;
END $$;
CREATE TRIGGER keep BEFORE DELETE ON many FOR EACH ROW EXECUTE FUNCTION keep_some();
TRUNCATE gone;
BEGIN;
DELETE FROM many;
SELECT count(*), sum(id) FROM gone;
SELECT count(*), sum(id), min(id % 3), max(id % 3) FROM many;
ROLLBACK;

-- a savepoint takes back what was written on the way
DROP TRIGGER keep ON many;
DROP TRIGGER note ON many;
BEGIN;
SAVEPOINT s;
DELETE FROM many WHERE part < 8;
SELECT count(*) FROM many;
ROLLBACK TO s;
UPDATE many SET n = 0 WHERE part = 9;
SELECT count(*), sum(n) FROM many;
COMMIT;
SELECT count(*), sum(n) FROM many;
DELETE FROM many;
SELECT count(*) FROM many;
SELECT count(*) FROM many WHERE part = 3 AND n > 0;
DROP TABLE many, gone;
DROP FUNCTION note_gone, keep_some, rows_left;
