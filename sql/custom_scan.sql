-- Which queries look up keys, and that they find what a scan would find.
CREATE TABLE t (id int PRIMARY KEY, v text, n int) USING rdmacc;
CREATE TABLE pair (a int, b text, c int, PRIMARY KEY (a, b)) USING rdmacc;
INSERT INTO t SELECT i, 'v' || i, i % 10 FROM generate_series(1, 200) i;
INSERT INTO pair SELECT i / 4, 'b' || i % 4, i FROM generate_series(0, 39) i;
ANALYZE t;
ANALYZE pair;

EXPLAIN (COSTS OFF) SELECT * FROM t WHERE id = 5;
SELECT * FROM t WHERE id = 5;
EXPLAIN (COSTS OFF) SELECT * FROM t WHERE id = 5 AND n = 4;
SELECT * FROM t WHERE id = 5 AND n = 4;
SELECT * FROM t WHERE 5 = id AND n = 5;
EXPLAIN (COSTS OFF) SELECT * FROM t WHERE id = 5::bigint;
SELECT * FROM t WHERE id = 5::bigint;
SELECT * FROM t WHERE id = 5000000000;
EXPLAIN (COSTS OFF) SELECT * FROM t WHERE id = 5.0;
SELECT * FROM t WHERE id = 5.0;
EXPLAIN (COSTS OFF) SELECT * FROM t WHERE id IN (3, 1, 2, 3, 1000, NULL);
SELECT * FROM t WHERE id IN (3, 1, 2, 3, 1000, NULL) ORDER BY id;
SELECT * FROM t WHERE id = ANY (NULL::int[]);
SELECT * FROM t WHERE id = ANY ('{}'::int[]);
SELECT count(*) FROM t WHERE id = ANY (ARRAY(SELECT generate_series(1, 300)));
EXPLAIN (COSTS OFF) SELECT * FROM t WHERE id > 5;
SELECT count(*) FROM t WHERE id > 5;
EXPLAIN (COSTS OFF) SELECT * FROM t WHERE id = 5 OR id = 6;
EXPLAIN (COSTS OFF) SELECT * FROM t WHERE id = 5 AND id = 6;
SELECT * FROM t WHERE id = 5 AND id = 6;
EXPLAIN (COSTS OFF) SELECT * FROM t WHERE id = NULL;
EXPLAIN (COSTS OFF) SELECT * FROM t ORDER BY id LIMIT 1;
EXPLAIN (COSTS OFF) SELECT max(id) FROM t;
SELECT max(id) FROM t;
EXPLAIN (COSTS OFF) SELECT id FROM t WHERE id = 7;

-- keys of several columns: all of them or none
EXPLAIN (COSTS OFF) SELECT * FROM pair WHERE a = 3 AND b = 'b1';
SELECT * FROM pair WHERE a = 3 AND b = 'b1';
EXPLAIN (COSTS OFF) SELECT * FROM pair WHERE a = 3;
SELECT count(*) FROM pair WHERE a = 3;
EXPLAIN (COSTS OFF) SELECT * FROM pair WHERE (a, b) = (3, 'b1');
EXPLAIN (COSTS OFF) SELECT * FROM pair WHERE a = 3 AND b IN ('b1', 'b2');
SELECT count(*) FROM pair WHERE a = 3 AND b IN ('b1', 'b2');

-- parameters
PREPARE by_id (int) AS SELECT * FROM t WHERE id = $1;
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE by_id (5);
EXECUTE by_id (5);
EXECUTE by_id (NULL);
EXECUTE by_id (7);
RESET plan_cache_mode;
PREPARE by_ids (int[]) AS SELECT id FROM t WHERE id = ANY ($1) ORDER BY id;
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE by_ids ('{1,2}');
EXECUTE by_ids ('{7,3,3}');
RESET plan_cache_mode;

-- nested loops
SET enable_hashjoin = off;
SET enable_mergejoin = off;
EXPLAIN (COSTS OFF) SELECT p.*, t.v FROM pair p JOIN t ON t.id = p.c WHERE p.a = 3;
SELECT p.*, t.v FROM pair p JOIN t ON t.id = p.c WHERE p.a = 3 ORDER BY p.c;
SELECT p.c, t.v FROM pair p LEFT JOIN t ON t.id = p.c WHERE p.a = 0 ORDER BY p.c;
EXPLAIN (COSTS OFF) SELECT x, (SELECT v FROM t WHERE id = x) FROM generate_series(1, 3) x;
SELECT x, (SELECT v FROM t WHERE id = x) FROM generate_series(0, 3) x;
EXPLAIN (COSTS OFF) SELECT x, v FROM generate_series(1, 3) x, LATERAL (SELECT v FROM t WHERE id = x + 1) l;
SELECT x, v FROM generate_series(1, 3) x, LATERAL (SELECT v FROM t WHERE id = x + 1) l;
RESET enable_hashjoin;
RESET enable_mergejoin;

-- UPDATE, DELETE, locks
EXPLAIN (COSTS OFF) UPDATE t SET v = 'new' WHERE id = 9;
UPDATE t SET v = 'new' WHERE id = 9 RETURNING *;
EXPLAIN (COSTS OFF) DELETE FROM t WHERE id IN (9, 10);
DELETE FROM t WHERE id IN (9, 10) RETURNING id;
EXPLAIN (COSTS OFF) SELECT * FROM t WHERE id = 8 FOR UPDATE;
SELECT * FROM t WHERE id = 8 FOR UPDATE;
SELECT count(*) FROM t;

-- no parallel plan for so few rows
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET force_parallel_mode = on;
EXPLAIN (COSTS OFF) SELECT count(*) FROM t;
SELECT count(*) FROM t;
RESET force_parallel_mode;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;

-- what EXPLAIN tells
EXPLAIN (COSTS OFF, VERBOSE) SELECT v FROM t WHERE id = 5;
EXPLAIN (COSTS OFF, ANALYZE, TIMING OFF, SUMMARY OFF) SELECT v FROM t WHERE id = 5;
EXPLAIN (COSTS OFF, ANALYZE, TIMING OFF, SUMMARY OFF) SELECT v FROM t WHERE id = 5000;
EXPLAIN (COSTS OFF, FORMAT yaml) SELECT v FROM t WHERE id = 5;

-- join removal and proofs of uniqueness go on
EXPLAIN (COSTS OFF) SELECT a.* FROM t a LEFT JOIN t b USING (id);
EXPLAIN (COSTS OFF) SELECT id, v, count(*) FROM t GROUP BY id;
DROP TABLE t, pair;
-- a table of one row is no reason to scan all nodes, nor is an empty one
CREATE TABLE single (id int PRIMARY KEY, v int) USING rdmacc;
EXPLAIN (COSTS OFF) SELECT * FROM single WHERE id = 1;
INSERT INTO single VALUES (1, 1);
ANALYZE single;
EXPLAIN (COSTS OFF) SELECT * FROM single WHERE id = 1;
EXPLAIN (COSTS OFF) UPDATE single SET v = 2 WHERE id IN (1, 2);
DROP TABLE single;
