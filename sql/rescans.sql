-- One statement that scans a table again and again: later passes read a copy of the second.
CREATE TABLE small (id int PRIMARY KEY, n int, t text) USING rdmacc;
CREATE TABLE nothing (n int) USING rdmacc;
INSERT INTO small SELECT i, i % 7, repeat('x', i) FROM generate_series(1, 100) i;
SET enable_material = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_memoize = off;
SET enable_indexscan = off;
SET enable_bitmapscan = off;
SELECT count(*), sum(a.id * b.id), sum(length(b.t)) FROM small a JOIN small b ON a.n = b.n;
SELECT sum((SELECT count(*) FROM small s WHERE s.n = o.n)) FROM small o;
SELECT count(*) FROM small o WHERE EXISTS (SELECT FROM small s WHERE s.n = o.n AND s.id > o.id + 50 OFFSET 0);
SELECT count(*) FROM small o WHERE NOT EXISTS (SELECT FROM nothing WHERE nothing.n = o.n OFFSET 0);
SELECT sum((SELECT count(*) FROM nothing WHERE n = o.n)) FROM small o;
-- The copy is there, also where rows are only counted, or are no aggregate's, and in an UPDATE of the table.
CREATE FUNCTION copies() RETURNS bigint LANGUAGE plpgsql AS
  $$ BEGIN RETURN (SELECT count(*) FROM pg_backend_memory_contexts WHERE name = 'rdmacc passed rows'); END $$;
SELECT max(c) FROM (SELECT (SELECT count(*) FROM small s WHERE s.n = o.n) AS any_count, copies() AS c FROM small o OFFSET 0) rescanned
  WHERE any_count > 0;
SELECT max(c) FROM (SELECT cardinality(ARRAY(SELECT s.id FROM small s WHERE s.n = o.n)) AS any_count, copies() AS c FROM small o OFFSET 0) rescanned
  WHERE any_count > 0;
SELECT max(c) FROM (SELECT (SELECT count(*) FROM small s OFFSET o.n * 0) AS any_count, copies() AS c FROM small o OFFSET 0) rescanned
  WHERE any_count > 0;
BEGIN;
UPDATE small o SET n = (SELECT count(*) FROM small s WHERE s.n = o.n) * 0 + copies();
SELECT max(n) FROM small;
ROLLBACK;
DROP FUNCTION copies;
-- Own writes of the transaction, and of functions that the statement calls, which it does not see.
BEGIN;
UPDATE small SET n = 0 WHERE id <= 50;
DELETE FROM small WHERE id > 90;
INSERT INTO small SELECT i, 0, 'new' FROM generate_series(201, 205) i;
SELECT sum((SELECT count(*) FROM small s WHERE s.n = o.n)), count(*) FROM small o;
CREATE FUNCTION grow(i int) RETURNS int LANGUAGE plpgsql AS
  $$ BEGIN INSERT INTO small VALUES (1000 + i, 1, 'grown'); RETURN 0; END $$;
SELECT sum((SELECT count(*) FROM small s WHERE s.n >= grow(1000 * s.id + o.n))) FROM (VALUES (1), (2), (3), (4)) o(n);
SELECT count(*) FROM small;
ROLLBACK;
SELECT count(*) FROM small;
-- A cursor, with savepoints around.
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT o.id, (SELECT count(*) FROM small s WHERE s.n = o.n) FROM small o WHERE o.id < 6 ORDER BY o.id;
FETCH 2 FROM c;
SAVEPOINT s;
DELETE FROM small WHERE id > 10;
FETCH 1 FROM c;
ROLLBACK TO s;
FETCH ALL FROM c;
COMMIT;
-- An error within a savepoint leaves the copy alone.
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT o.id, (SELECT count(*) FROM small s WHERE s.n = o.n) FROM small o;
MOVE 5 FROM c;
SAVEPOINT s;
SELECT 1 / 0;
ROLLBACK TO s;
MOVE 5 FROM c;
COMMIT;
-- More than work_mem.
SET work_mem = '64kB';
INSERT INTO small SELECT i, i % 7, repeat('y', 500) FROM generate_series(1001, 1300) i;
SELECT sum((SELECT sum(length(t)) FROM small s WHERE s.n = o.n)) FROM small o WHERE id <= 20;
SELECT count(*) FROM small o WHERE n = (SELECT count(*) FROM small a WHERE a.id < 8 AND o.id > 0) AND (SELECT max(b.n) FROM small b WHERE b.id <= o.id) = 6;
SELECT count(*) FROM pg_backend_memory_contexts WHERE name = 'rdmacc passed rows';
RESET work_mem;
-- Rows that are written or locked are not copied.
UPDATE small a SET t = 'z' FROM small b WHERE a.n = b.id AND b.id < 7;
SELECT t, count(*) FROM small WHERE t = 'z' GROUP BY t;
SELECT count(*) FROM (SELECT a.id FROM small a, small b WHERE a.n = b.id AND b.id < 3 FOR UPDATE) locked;
DELETE FROM small a WHERE (SELECT count(*) FROM small s WHERE s.n = a.n) > 57;
SELECT n, count(*) FROM small GROUP BY n ORDER BY n;
DROP TABLE small, nothing;
