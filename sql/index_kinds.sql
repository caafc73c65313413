-- Indexes of expressions, of a part of the rows, by hash, deferrable ones; scans by bitmaps and of
-- the index alone.
SET jit = off;
CREATE TABLE t (id int PRIMARY KEY, a int, b text COLLATE "C", d date) USING rdmacc;
INSERT INTO t SELECT g, g % 50, CASE WHEN g % 3 = 0 THEN 'Name ' ELSE 'name ' END || g / 2,
  date '2020-01-01' + g FROM generate_series(1, 1000) g;

-- Expressions, unique ones too.
CREATE INDEX t_lower ON t (lower(b), (a + 1) DESC);
CREATE UNIQUE INDEX t_sum ON t ((id * 100 + a));
ANALYZE t;
\d t
EXPLAIN (COSTS OFF) SELECT id FROM t WHERE lower(b) = 'name 21' ORDER BY id;
SELECT id, b FROM t WHERE lower(b) = 'name 21' ORDER BY id;
EXPLAIN (COSTS OFF) SELECT id FROM t WHERE id * 100 + a = 1717;
SELECT id FROM t WHERE id * 100 + a = 1717;
INSERT INTO t VALUES (-1, 1817, 'x', NULL); -- 1717
UPDATE t SET b = 'NAME 21' WHERE id = 1;
UPDATE t SET id = id + 10000 WHERE id = 42;
DELETE FROM t WHERE id = 43;
SELECT id, b FROM t WHERE lower(b) = 'name 21' ORDER BY id;
BEGIN;
UPDATE t SET b = upper(b) || '!' WHERE a = 7;
SELECT count(*) FROM t WHERE lower(b) LIKE 'name%!' AND lower(b) >= 'name';
ROLLBACK;
INSERT INTO t VALUES (17, 17, 'y', NULL) ON CONFLICT ((id * 100 + a)) DO UPDATE SET b = 'conflict';
SELECT id, b FROM t WHERE lower(b) = 'conflict';
-- A function that fails, and one that is not immutable.
CREATE FUNCTION inverse(int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT 100 / $1';
CREATE INDEX t_inverse ON t (inverse(a));
CREATE INDEX t_now ON t ((d > now()));
CREATE INDEX t_inverse ON t (inverse(a + 1));
INSERT INTO t VALUES (5000, -1, 'z', NULL);
SELECT count(*) FROM t WHERE inverse(a + 1) = 100;
DROP INDEX t_inverse;
DROP FUNCTION inverse;

-- A part of the rows: they come and go with the predicate.
CREATE UNIQUE INDEX t_part ON t (d) WHERE a = 7;
EXPLAIN (COSTS OFF) SELECT id FROM t WHERE a = 7 AND d = '2020-01-08';
SELECT id FROM t WHERE a = 7 AND d = '2020-01-08';
UPDATE t SET d = '2020-01-08' WHERE a = 8;
UPDATE t SET a = 7 WHERE id IN (8, 58); -- twice the same day
UPDATE t SET a = 7 WHERE id = 8;        -- and 7 has it
UPDATE t SET a = 9 WHERE id = 7;
UPDATE t SET a = 7 WHERE id = 8;
SELECT id FROM t WHERE a = 7 AND d = '2020-01-08';
INSERT INTO t VALUES (6000, 7, 'w', '2020-01-08') ON CONFLICT (d) WHERE a = 7 DO NOTHING;
INSERT INTO t VALUES (6000, 6, 'w', '2020-01-08') ON CONFLICT (d) WHERE a = 7 DO NOTHING;
DELETE FROM t WHERE id = 8;
INSERT INTO t VALUES (6001, 7, 'w', '2020-01-08');
SELECT id FROM t WHERE a = 7 AND d = '2020-01-08';
REINDEX INDEX t_part;
ALTER TABLE t ADD added int DEFAULT 3;
CREATE INDEX t_added ON t (added) WHERE added = 3;
SELECT count(*) FROM t WHERE added = 3;
DROP INDEX t_added;

-- By hash: equality alone.
CREATE INDEX t_hash ON t USING hash (b);
EXPLAIN (COSTS OFF) SELECT id FROM t WHERE b = 'name 100';
SELECT id FROM t WHERE b = 'name 100';
EXPLAIN (COSTS OFF) SELECT id FROM t WHERE b > 'name' LIMIT 1;
UPDATE t SET b = 'name 100' WHERE id = 1;
SELECT id FROM t WHERE b = 'name 100' ORDER BY id;
SELECT count(*) FROM t WHERE b = NULL;
REINDEX INDEX t_hash;
CREATE UNIQUE INDEX t_hash_unique ON t USING hash (id);
ALTER TABLE t SET ACCESS METHOD heap;
SELECT id FROM t WHERE b = 'name 100' ORDER BY id;
ALTER TABLE t SET ACCESS METHOD rdmacc;
SELECT id FROM t WHERE b = 'name 100' ORDER BY id;
DROP INDEX t_hash;
-- Of an expression whose operator class is for many types.
CREATE TABLE listed (id int PRIMARY KEY, x int, y int) USING rdmacc;
INSERT INTO listed SELECT i, i % 10, i FROM generate_series(1, 100) i;
CREATE INDEX ON listed USING hash ((ARRAY[x, x + 1]));
INSERT INTO listed VALUES (101, 5, 101);
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM listed WHERE ARRAY[x, x + 1] = '{5,6}';
SELECT count(*), sum(y) FROM listed WHERE ARRAY[x, x + 1] = '{5,6}';
RESET enable_seqscan;
SELECT * FROM rdmacc.verify('listed');
DROP TABLE listed;

-- Bitmaps: of one index, of both, of either; rows come in no order.
CREATE INDEX t_a ON t (a);
CREATE INDEX t_d ON t (d);
ANALYZE t;
SET enable_indexscan = off;
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT id FROM t WHERE a = 20 OR d < '2020-01-05';
SELECT id FROM t WHERE a = 20 AND id < 300 OR d < '2020-01-05' ORDER BY id;
SELECT count(*), sum(id) FROM t WHERE a BETWEEN 10 AND 29 AND d BETWEEN '2020-06-01' AND '2020-07-30';
BEGIN;
UPDATE t SET a = 20 WHERE a = 21;
DELETE FROM t WHERE a = 20 AND id > 100;
SELECT id FROM t WHERE a = 20 ORDER BY id;
ROLLBACK;
-- A cursor, up to its end and beyond a savepoint; the inner side of a join.
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM t WHERE a = 20;
FETCH 2 FROM c;
SAVEPOINT one;
FETCH 1 FROM c;
ROLLBACK TO one;
MOVE ALL IN c;
COMMIT;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SELECT count(*), sum(x.id) FROM generate_series(1, 60) g JOIN t x ON x.a = g;
-- More than a bitmap of this size can hold row by row.
CREATE TABLE many (id int PRIMARY KEY, a int) USING rdmacc;
INSERT INTO many SELECT g, g FROM generate_series(1, 6000) g;
CREATE INDEX many_a ON many (a);
SET work_mem = '64kB';
SELECT count(*), sum(id) FROM many WHERE a >= 1;
DROP TABLE many;
RESET ALL;
SET jit = off;

-- The index alone.
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT d, count(*) FROM t WHERE d < '2020-01-07' GROUP BY d ORDER BY d DESC;
SELECT d, count(*) FROM t WHERE d < '2020-01-07' GROUP BY d ORDER BY d DESC;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT a FROM t WHERE a > 47 ORDER BY a;
FETCH 2 FROM c;
DELETE FROM t WHERE CURRENT OF c;
FETCH BACKWARD 1 FROM c;
SELECT count(*) FROM t WHERE a = 48;
ROLLBACK;
SELECT count(*) FROM t WHERE a = 48;
RESET ALL;

-- Deferrable: judged at the end of the statement, or of the transaction.
CREATE TABLE late (id int PRIMARY KEY, u int UNIQUE DEFERRABLE INITIALLY DEFERRED,
  v int UNIQUE DEFERRABLE, w int UNIQUE) USING rdmacc;
INSERT INTO late SELECT g, g, g, g FROM generate_series(1, 3) g;
BEGIN;
INSERT INTO late VALUES (4, 1, 4, 4);
UPDATE late SET u = 9 WHERE id = 1;
COMMIT;
SELECT id, u FROM late ORDER BY id;
BEGIN;
UPDATE late SET u = 2 WHERE id = 3;
COMMIT;
BEGIN;
UPDATE late SET u = 2 WHERE id = 3;
SET CONSTRAINTS ALL IMMEDIATE;
ROLLBACK;
UPDATE late SET v = v + 1, w = w + 1;
INSERT INTO late VALUES (5, 5, 2, 50);
INSERT INTO late VALUES (5, 5, 50, 2);
UPDATE late SET w = 2 WHERE id = 3;
BEGIN;
INSERT INTO late VALUES (5, 2, 60, 60);
DELETE FROM late WHERE id = 5;
COMMIT;
SELECT * FROM late ORDER BY id;
ALTER TABLE late ADD PRIMARY KEY (v) DEFERRABLE;
ALTER TABLE late DROP CONSTRAINT late_pkey, ADD PRIMARY KEY (v) DEFERRABLE;
DROP TABLE late;

-- Unlogged.
CREATE UNLOGGED TABLE loose (id int PRIMARY KEY, u int UNIQUE) USING rdmacc;
INSERT INTO loose VALUES (1, 1);
ALTER TABLE t SET UNLOGGED;
ALTER TABLE t SET LOGGED;
SELECT relname, relpersistence FROM pg_class WHERE relname IN ('t', 'loose', 'loose_u_key') ORDER BY 1;
SELECT count(*) FROM t, loose WHERE loose.u = 1 AND t.a = 1;
DROP TABLE t, loose;
SELECT node, tables FROM rdmacc.stat_nodes ORDER BY node;
