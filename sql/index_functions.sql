-- Functions in indexes: in expressions and predicates that are computed anew, and of which something has changed.
CREATE FUNCTION shifted(i int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT i + 1 + (SELECT 0)';
CREATE FUNCTION half(i int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN i / 2; END';
CREATE FUNCTION counted(i int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT count(*)::int + i FROM pg_class WHERE oid = 0';
CREATE FUNCTION inverse(i int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 12 / i + (SELECT 0)';
SET enable_seqscan = off;

-- Rows lose their primary key, and get others, at the end of a transaction.
CREATE TABLE t (id int PRIMARY KEY, v int) USING rdmacc;
CREATE INDEX ON t (counted(v));
CREATE INDEX ON t (half(v));
CREATE INDEX ON t (v) WHERE half(v) > 0;
INSERT INTO t VALUES (1, 1), (2, 2), (3, 6);
ALTER TABLE t DROP CONSTRAINT t_pkey;
SELECT id FROM t WHERE counted(v) = 2;
SELECT id FROM t WHERE half(v) = 3;
SELECT id FROM t WHERE v = 6 AND half(v) > 0;
ALTER TABLE t ADD PRIMARY KEY (v);
BEGIN; ALTER TABLE t DROP CONSTRAINT t_pkey; COMMIT;
UPDATE t SET v = 4 WHERE counted(v) = 2;
SELECT id FROM t WHERE half(v) = 2;
SELECT * FROM rdmacc.verify('t');
DROP TABLE t;
CREATE TABLE t (id int PRIMARY KEY, v int) USING rdmacc;
CREATE INDEX ON t (half(v));
INSERT INTO t VALUES (1, 1), (2, 2);
ALTER TABLE t DROP COLUMN id;
SELECT * FROM t WHERE half(v) = 1;
DROP TABLE t;

-- Another function in the midst of a transaction that has used the one before.
CREATE TABLE t (id int PRIMARY KEY, v int) USING rdmacc;
CREATE INDEX ON t (shifted(v));
CREATE INDEX ON t (half(v));
BEGIN;
INSERT INTO t VALUES (1, 1);
DELETE FROM t;
CREATE OR REPLACE FUNCTION shifted(i int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT i + 100 + (SELECT 0)';
CREATE OR REPLACE FUNCTION half(i int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN i * 50; END';
INSERT INTO t VALUES (2, 2);
COMMIT;
SELECT id FROM t WHERE shifted(v) = 102;
SELECT id FROM t WHERE half(v) = 100;
UPDATE t SET v = 3;
SELECT id FROM t WHERE shifted(v) = 103;
DELETE FROM t;
SELECT * FROM rdmacc.verify('t');
DROP TABLE t;

-- An error within one, of which the transaction takes a part back.
CREATE TABLE t (id int PRIMARY KEY, v int) USING rdmacc;
CREATE INDEX ON t (inverse(v));
CREATE INDEX ON t (v) WHERE inverse(v) > 3;
BEGIN;
INSERT INTO t VALUES (1, 1);
SAVEPOINT s;
INSERT INTO t VALUES (2, 0);
ROLLBACK TO s;
INSERT INTO t VALUES (3, 2);
COMMIT;
DO $$
BEGIN
  INSERT INTO t VALUES (4, 4);
  BEGIN
    UPDATE t SET v = v - 2;
  EXCEPTION WHEN division_by_zero THEN
    INSERT INTO t VALUES (5, 6);
  END;
  UPDATE t SET v = v + 1 WHERE id = 4;
END $$;
SELECT id, v FROM t ORDER BY id;
SELECT id FROM t WHERE inverse(v) = 2 ORDER BY id;
SELECT id FROM t WHERE v = 2 AND inverse(v) > 3;
SELECT * FROM rdmacc.verify('t');
DROP TABLE t;

-- Entries that another function has computed, another setting, or a row with fewer columns.
CREATE FUNCTION day_of(timestamptz) RETURNS date LANGUAGE sql IMMUTABLE AS 'SELECT $1::date';
SET timezone = 'UTC';
CREATE TABLE t (id int PRIMARY KEY, at timestamptz, v int) USING rdmacc;
CREATE INDEX ON t (day_of(at));
CREATE INDEX ON t (half(v));
INSERT INTO t SELECT i, '2024-01-01 22:00+00', i FROM generate_series(1, 50) i;
SET timezone = 'Asia/Tokyo';
DELETE FROM t WHERE id = 3;
UPDATE t SET at = at + interval '1 day' WHERE id > 45;
CREATE OR REPLACE FUNCTION half(i int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN i / 2 + 1000; END';
UPDATE t SET v = v + 1 WHERE id BETWEEN 10 AND 20;
BEGIN; DELETE FROM t WHERE id = 1; UPDATE t SET v = -v WHERE id = 2; COMMIT;
SELECT count(*), sum(v) FROM t;
DELETE FROM t;
SELECT * FROM rdmacc.verify('t');
SELECT id FROM t WHERE day_of(at) > '2000-01-01';
DROP TABLE t;
CREATE TABLE t (id int PRIMARY KEY, a int, b text) USING rdmacc;
CREATE FUNCTION whole(t) RETURNS text LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1::text; END';
CREATE INDEX ON t (whole(t));
INSERT INTO t VALUES (1, 1, 'x'), (2, 2, 'y'), (3, 3, 'z');
ALTER TABLE t ADD COLUMN c int DEFAULT 7;
UPDATE t SET b = 'q' WHERE id = 1;
DELETE FROM t WHERE id = 2;
SELECT id FROM t WHERE whole(t) = '(1,1,q,7)';
SELECT * FROM t ORDER BY id;
SELECT * FROM rdmacc.verify('t');
DROP TABLE t CASCADE;
DROP FUNCTION shifted, half, counted, inverse, day_of;
