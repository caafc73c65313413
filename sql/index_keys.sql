-- Primary keys that rows take from each other within a statement, and the entries of secondary indexes.
CREATE TABLE t (id int PRIMARY KEY, a int, u int UNIQUE) USING rdmacc;
CREATE INDEX t_a ON t (a);
INSERT INTO t SELECT g, g % 3, g FROM generate_series(1, 60) g;
CREATE FUNCTION entries_are_rows() RETURNS text LANGUAGE plpgsql AS $$
DECLARE by_rows text; by_a text; by_u text;
BEGIN
  SELECT md5(string_agg(t::text, ',' ORDER BY id)) INTO by_rows FROM t;
  SET LOCAL enable_seqscan = off;
  SELECT md5(string_agg(t::text, ',' ORDER BY id)) INTO by_a FROM t WHERE a >= 0;
  SELECT md5(string_agg(t::text, ',' ORDER BY id)) INTO by_u FROM t WHERE u >= 0;
  RETURN CASE WHEN by_rows = by_a AND by_rows = by_u THEN 'same' ELSE 'DIFFERENT' END;
END $$;
UPDATE t SET id = id + 1;
SELECT entries_are_rows(), min(id), max(id), sum(id * u) FROM t;
UPDATE t SET id = id - 1, u = u + 1;
SELECT entries_are_rows(), min(id), max(id), sum(id * u) FROM t;
UPDATE t SET id = 61 - id;
SELECT entries_are_rows(), min(id), max(id), sum(id * u) FROM t;
UPDATE t SET id = 61 - id, a = 7, u = u + 1000 WHERE id > 10 AND id < 51;
SELECT entries_are_rows(), min(id), max(id), sum(id * u) FROM t;
BEGIN;
UPDATE t SET id = id + 1 WHERE id > 30;
UPDATE t SET id = id + 1;
SELECT entries_are_rows(), count(*) FROM t;
SAVEPOINT one;
UPDATE t SET id = (id - 1) % 30 + 2 WHERE id <= 31;
SELECT entries_are_rows(), count(*) FROM t;
ROLLBACK TO one;
SELECT entries_are_rows(), count(*) FROM t;
ROLLBACK;
SELECT entries_are_rows(), count(*) FROM t;
WITH gone AS (DELETE FROM t WHERE id = 5) UPDATE t SET id = 5 WHERE id = 6;
SELECT entries_are_rows(), count(*) FROM t;
-- Row locks by an index.
EXPLAIN (COSTS OFF) SELECT id FROM t WHERE u = 20 FOR UPDATE NOWAIT;
EXPLAIN (COSTS OFF) SELECT id FROM t WHERE u = 20 FOR UPDATE SKIP LOCKED;
SELECT count(*) FROM (SELECT id FROM t WHERE u = 20 FOR UPDATE NOWAIT) s;
SELECT count(*) FROM (SELECT id FROM t WHERE u = 20 FOR UPDATE SKIP LOCKED) s;
-- Foreign keys to unique columns.
CREATE TABLE child (id int PRIMARY KEY, u int REFERENCES t (u) ON DELETE CASCADE ON UPDATE CASCADE) USING rdmacc;
CREATE INDEX child_u ON child (u);
INSERT INTO child SELECT id, u FROM t WHERE u <= 30;
INSERT INTO child VALUES (1000, 1000);
DELETE FROM t WHERE u IN (20, 21);
UPDATE t SET u = 500 WHERE u = 25;
SELECT count(*), max(u) FROM child;
SELECT count(*) FROM child WHERE u = 500;
DROP TABLE child, t;
DROP FUNCTION entries_are_rows;
-- Entries that are built in the order of what they differ in: behind a long beginning, or NULL.
CREATE TABLE alike (id int PRIMARY KEY, t text COLLATE "C") USING rdmacc;
INSERT INTO alike SELECT g, repeat('the same ', 5) || g % 17 || repeat('z', g % 5) FROM generate_series(1, 5000) g;
CREATE INDEX alike_t ON alike (t);
INSERT INTO alike SELECT g, CASE g % 3 WHEN 0 THEN 'other' END FROM generate_series(5001, 5999) g;
CREATE INDEX alike_desc ON alike (t DESC NULLS LAST, id);
SET enable_seqscan = off;
SET enable_sort = off;
SELECT array_agg(t) AS ascending FROM (SELECT t FROM alike ORDER BY t) s \gset
SELECT array_agg((t, id)) AS descending FROM (SELECT * FROM alike ORDER BY t DESC NULLS LAST, id) s \gset
EXPLAIN (COSTS OFF) SELECT * FROM alike ORDER BY t DESC NULLS LAST, id;
RESET enable_sort;
RESET enable_seqscan;
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
SELECT array_agg(t) = :'ascending' FROM (SELECT t FROM alike ORDER BY t) s;
SELECT array_agg((t, id))::text = :'descending'
FROM (SELECT * FROM alike ORDER BY t DESC NULLS LAST, id) s;
RESET enable_indexscan;
RESET enable_indexonlyscan;
SELECT * FROM rdmacc.verify('alike');
DROP TABLE alike;
