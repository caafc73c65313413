-- rdmacc.ordered_key: a primary key that finds ranges, and gives their order.
CREATE TABLE o (a int, b text COLLATE "C", v int, PRIMARY KEY (a, b)) USING rdmacc WITH (rdmacc.ordered_key = on);
CREATE TABLE h (a int, b text COLLATE "C", v int, PRIMARY KEY (a, b)) USING heap;
SELECT options FROM rdmacc.table_options WHERE relation = 'o'::regclass;
INSERT INTO o SELECT i / 10, 'b' || i % 10, i FROM generate_series(1, 3000) i;
INSERT INTO h SELECT * FROM o;
ANALYZE o;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT * FROM o WHERE a BETWEEN 10 AND 12;
EXPLAIN (COSTS OFF) SELECT * FROM o ORDER BY a DESC, b DESC LIMIT 3;
EXPLAIN (COSTS OFF) SELECT * FROM o WHERE a = 7 ORDER BY b;
EXPLAIN (COSTS OFF) SELECT v FROM o WHERE a = 7 AND b = 'b3';
EXPLAIN (COSTS OFF) SELECT min(a), max(a) FROM o;
SELECT * FROM o ORDER BY a DESC, b DESC LIMIT 3;
SELECT * FROM o WHERE a = 7 AND b > 'b6' ORDER BY b;
SELECT v FROM o WHERE a = 7 AND b = 'b3';
SELECT min(a), max(a) FROM o;
SELECT count(*), sum(v) FROM o WHERE (a, b) > (290, 'b5');
SELECT count(*) FROM (SELECT * FROM o WHERE a BETWEEN 40 AND 260 EXCEPT ALL SELECT * FROM h) d;
RESET enable_bitmapscan;
RESET enable_seqscan;

-- Writes, and a statement's own.
DELETE FROM o WHERE a BETWEEN 100 AND 299;
UPDATE o SET a = a + 1000 WHERE a < 5;
UPDATE o SET v = -v WHERE a = 50;
INSERT INTO o VALUES (50, 'b1', 0) ON CONFLICT (a, b) DO UPDATE SET v = 77;
INSERT INTO o VALUES (50, 'b2', 0), (99, 'new', 1) ON CONFLICT DO NOTHING;
INSERT INTO o VALUES (50, 'b2', 0);
BEGIN;
DELETE FROM o WHERE a > 1000;
SAVEPOINT s;
INSERT INTO o VALUES (2000, 'x', 1);
SELECT max(a) FROM o;
ROLLBACK TO s;
SELECT max(a) FROM o;
ROLLBACK;
SELECT a, count(*), sum(v) FROM o WHERE a >= 98 OR a = 50 GROUP BY a ORDER BY a;

-- DDL.
TRUNCATE o;
INSERT INTO o SELECT i, 'x', i FROM generate_series(1, 100) i;
SELECT a FROM o WHERE a > 97 ORDER BY a;
ALTER TABLE o DROP CONSTRAINT o_pkey;
INSERT INTO o VALUES (500, 'y', 0);
ALTER TABLE o ADD PRIMARY KEY (b, a);
SELECT b, a FROM o WHERE b = 'x' AND a > 98 OR b > 'x' ORDER BY b, a;
REINDEX INDEX CONCURRENTLY o_pkey;
REINDEX TABLE o;
SELECT b, a FROM o WHERE b >= 'x' ORDER BY b DESC, a DESC LIMIT 2;
ALTER TABLE o SET (rdmacc.ordered_key = off);
SELECT rdmacc.relation_size('o_pkey') AS without;
SELECT rdmacc.set_option('o', 'ordered_key', 'on');
SELECT rdmacc.relation_size('o_pkey') > 1000 AS with_entries;
ALTER TABLE o SET (rdmacc.partition_by = 1);
VACUUM FULL o;
SELECT b, a FROM o WHERE b >= 'x' ORDER BY b DESC, a DESC LIMIT 2;
BEGIN;
ALTER TABLE o RESET (rdmacc.ordered_key);
INSERT INTO o VALUES (501, 'y', 0);
ROLLBACK;
SELECT count(*), max(a) FROM o WHERE b >= 'x';

-- A parent, and locks.
CREATE TABLE child (id int PRIMARY KEY, b text COLLATE "C", a int, FOREIGN KEY (b, a) REFERENCES o ON DELETE CASCADE) USING rdmacc;
INSERT INTO child VALUES (1, 'x', 5), (2, 'y', 500);
INSERT INTO child VALUES (3, 'x', 777);
DELETE FROM o WHERE b = 'x' AND a < 50;
SELECT * FROM child;
SELECT a FROM o WHERE b = 'x' AND a < 53 ORDER BY a FOR UPDATE SKIP LOCKED;
SELECT a FROM o WHERE b = 'x' AND a < 53 ORDER BY a FOR UPDATE NOWAIT;
ALTER TABLE o SET (rdmacc.ordered_key = 2);
DROP TABLE child, o, h;
-- For all tables that are made, unless they say otherwise.
SET rdmacc.ordered_keys = on;
CREATE TABLE asked (a int PRIMARY KEY) USING rdmacc;
CREATE TABLE hashed (a int PRIMARY KEY) USING rdmacc WITH (rdmacc.ordered_key = off, rdmacc.record_size = 64);
CREATE TABLE IF NOT EXISTS hashed (a int PRIMARY KEY) USING rdmacc;
CREATE TABLE copied USING rdmacc AS SELECT i AS a FROM generate_series(1, 9) i;
ALTER TABLE copied ADD PRIMARY KEY (a);
CREATE TABLE elsewhere (a int PRIMARY KEY) USING heap;
CREATE TEMP TABLE elsewhere (a int PRIMARY KEY) USING heap;
CREATE SCHEMA inner_one CREATE TABLE made (a int PRIMARY KEY);
SELECT objname, label FROM pg_seclabels WHERE provider = 'rdmacc' AND objname ~ 'asked|hashed|copied|elsewhere|inner_one'
  ORDER BY objname COLLATE "C";
EXPLAIN (COSTS OFF) SELECT a FROM asked ORDER BY a LIMIT 1;
RESET rdmacc.ordered_keys;
CREATE TABLE later (a int PRIMARY KEY) USING rdmacc;
SELECT count(*) FROM pg_seclabels WHERE objname = 'later';
DROP TABLE asked, hashed, copied, later, pg_temp.elsewhere, elsewhere;
DROP SCHEMA inner_one CASCADE;
