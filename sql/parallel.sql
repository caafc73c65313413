-- Scans that parallel workers share with their leader.
CREATE TABLE p (id int PRIMARY KEY, x int, s text) USING rdmacc;
CREATE TABLE small (id int PRIMARY KEY, v int) USING rdmacc;
INSERT INTO p SELECT i, i % 10, 'row ' || i FROM generate_series(1, 20000) i;
INSERT INTO small SELECT i, i * i FROM generate_series(0, 9) i;
ANALYZE p, small;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET max_parallel_workers_per_gather = 2;
EXPLAIN (COSTS OFF) SELECT x, count(*), sum(id) FROM p GROUP BY x;
SELECT x, count(*), sum(id) FROM p GROUP BY x ORDER BY x;
EXPLAIN (COSTS OFF) SELECT count(*) FROM p a JOIN p b ON a.id = b.id + 1;
SELECT count(*) FROM p a JOIN p b ON a.id = b.id + 1;
SELECT count(DISTINCT id), min(s), max(s) FROM p WHERE x > 3;
SELECT id FROM p WHERE s LIKE 'row 1999_' ORDER BY id;
-- Rows stop the scan, an error ends it.
SELECT count(*) FROM (SELECT id FROM p WHERE x = 3 LIMIT 5) l;
SELECT sum(1 / (id - 15000)) FROM p;
SELECT count(*) FROM p;
DO $$
BEGIN
  PERFORM sum(1 / (id - 15000)) FROM p;
EXCEPTION WHEN division_by_zero THEN
  RAISE NOTICE 'caught, and % rows are there', (SELECT count(*) FROM p);
END $$;
BEGIN;
SELECT sum(id) FROM p;
SELECT sum(1 / (id - 15000)) FROM p;
ROLLBACK;
-- A scan that begins again, for each row outside.
SET enable_material = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SELECT g.n, c.rows FROM generate_series(1, 3) g(n),
  LATERAL (SELECT count(*) AS rows FROM p WHERE x < g.n) c ORDER BY g.n;
SET parallel_leader_participation = off;
SELECT count(*), sum(c.rows) FROM generate_series(1, 30) g(n),
  LATERAL (SELECT count(*) AS rows FROM p WHERE x < g.n % 3) c;
RESET parallel_leader_participation;
RESET enable_material;
RESET enable_hashjoin;
RESET enable_mergejoin;
-- Workers see what their leader has read, and nothing is shared once it has written.
BEGIN;
SELECT sum(id) FROM p;
UPDATE p SET x = 100 WHERE id = 1;
SELECT count(*) FROM p WHERE x = 100;
EXPLAIN (COSTS OFF) SELECT sum(id) FROM p;
INSERT INTO p VALUES (20001, 100, 'new');
SELECT x, count(*) FROM p WHERE x >= 9 GROUP BY x ORDER BY x;
ROLLBACK;
-- Nothing is planned for workers below a savepoint.
BEGIN;
SAVEPOINT a;
EXPLAIN (COSTS OFF) SELECT sum(id) FROM p;
ROLLBACK;
SELECT count(*) FROM p TABLESAMPLE SYSTEM (50);
-- A plan from before the write.
PREPARE total AS SELECT sum(id), count(*) FROM p WHERE x >= $1;
SET plan_cache_mode = force_generic_plan;
EXECUTE total(0);
BEGIN;
DELETE FROM p WHERE id = 20000;
EXECUTE total(0);
ROLLBACK;
EXECUTE total(0);
RESET plan_cache_mode;
-- Functions that may read tables keep workers out, whatever they are declared.
CREATE FUNCTION square_of(int) RETURNS int PARALLEL SAFE LANGUAGE plpgsql STABLE AS
  $$BEGIN RETURN (SELECT v FROM small WHERE id = $1); END$$;
EXPLAIN (COSTS OFF) SELECT sum(square_of(x)) FROM p WHERE id <= 2000;
SELECT sum(square_of(x)) FROM p WHERE id <= 2000;
SELECT sum(x * x) FROM p WHERE id <= 2000;
SELECT sum(square_of(x)), count(*) FROM p WHERE id <= 2000;
-- They see what the transaction has written, or nothing.
CREATE TABLE plain (x int) USING heap;
INSERT INTO plain SELECT i % 10 FROM generate_series(1, 20000) i;
ANALYZE plain;
BEGIN;
SELECT sum(square_of(x)) FROM p WHERE id <= 2000;
SELECT count(*) FROM p;
UPDATE small SET v = 1000 WHERE id = 0;
SET LOCAL parallel_leader_participation = off;
EXPLAIN (COSTS OFF) SELECT sum(square_of(x)) FROM plain;
SELECT sum(square_of(x)) FROM plain;
ROLLBACK;
SET parallel_leader_participation = off;
CREATE FUNCTION squares(int) RETURNS bigint PARALLEL SAFE LANGUAGE sql STABLE AS
  $$SELECT count(*) FROM small WHERE v > $1 OFFSET 0$$;
SELECT sum(squares(x)) FROM p WHERE id <= 10;
SELECT sum(squares(x)) FROM plain;
CREATE FUNCTION add_squares(bigint, int) RETURNS bigint PARALLEL SAFE LANGUAGE sql STABLE
  BEGIN ATOMIC SELECT $1 + (SELECT sum(v) FROM small WHERE id <= $2); END;
CREATE AGGREGATE all_squares(int) (sfunc = add_squares, stype = bigint, initcond = '0',
  combinefunc = int8pl, parallel = safe);
EXPLAIN (COSTS OFF) SELECT all_squares(x) FROM plain;
SELECT all_squares(x) FROM plain;
-- Those without a table do not.
CREATE FUNCTION doubled(fromage int) RETURNS int PARALLEL SAFE LANGUAGE sql IMMUTABLE AS
  'SELECT 2 * fromage';
EXPLAIN (COSTS OFF) SELECT sum(doubled(x)) FROM plain;
SELECT sum(doubled(x)) FROM plain;
-- What is not seen through is refused in a worker, but for look-ups of a guest. A plan that has guests
-- is run again without workers then.
CREATE FUNCTION query_in_worker(text, boolean, boolean, text) RETURNS xml PARALLEL SAFE LANGUAGE internal
  STABLE AS 'query_to_xml';
EXPLAIN (COSTS OFF)
  SELECT count(query_in_worker('SELECT v FROM small WHERE id = 1', x = 1, false, '')) FROM p;
SELECT count(query_in_worker('SELECT v FROM small WHERE id = 1', x = 1, false, '')) FROM p;
SELECT count(query_in_worker('SELECT v FROM small', x = 1, false, '')) FROM p;
SELECT count(query_in_worker('SELECT v FROM small', x = 1, false, '')) FROM plain;
SELECT count(query_in_worker('SELECT v FROM small WHERE id = 1', x = 1, false, '')) FROM plain;
RESET parallel_leader_participation;
DROP FUNCTION squares, doubled, query_in_worker;
DROP AGGREGATE all_squares(int);
DROP FUNCTION add_squares;
DROP TABLE plain;
-- A table of the transaction's own, and one that has got another layout in it.
BEGIN;
CREATE TABLE own (id int PRIMARY KEY, v int) USING rdmacc;
INSERT INTO own SELECT i, i FROM generate_series(1, 5000) i;
ANALYZE own;
SELECT count(*), sum(v) FROM own;
ALTER TABLE p ALTER x TYPE bigint;
SELECT sum(x), count(*) FROM p;
COMMIT;
SELECT count(*), sum(v) FROM own;
SELECT sum(x), pg_typeof(sum(x)) FROM p;
-- Parts of parts, whose scans are made once more for a nested loop.
CREATE TABLE deep (id int, v int) PARTITION BY RANGE (id);
CREATE TABLE deep_1 PARTITION OF deep FOR VALUES FROM (0) TO (5000) USING heap;
CREATE TABLE deep_2 PARTITION OF deep FOR VALUES FROM (5000) TO (10000) PARTITION BY RANGE (id);
CREATE TABLE deep_3 PARTITION OF deep_2 FOR VALUES FROM (5000) TO (10000) USING rdmacc;
INSERT INTO deep SELECT i, i % 5000 FROM generate_series(0, 5100) i;
CREATE INDEX ON deep_1 (v);
CREATE TABLE outside (id int, x int) USING heap;
INSERT INTO outside SELECT i, i % 1000 FROM generate_series(0, 20000) i;
ANALYZE deep, deep_3, outside;
SET parallel_leader_participation = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
SET enable_memoize = off;
EXPLAIN (COSTS OFF)
  SELECT o.id, d.id FROM outside o JOIN deep d ON d.v = o.x WHERE o.id IN (1, 2, 20000);
SELECT o.id, d.id FROM outside o JOIN deep d ON d.v = o.x WHERE o.id IN (1, 2, 20000) ORDER BY 1, 2;
SELECT o.id, d.id FROM outside o
  JOIN (SELECT id, v FROM deep_1 UNION ALL SELECT id, v FROM deep_2) d ON d.v = o.x
  WHERE o.id IN (1, 2, 20000) ORDER BY 1, 2;
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_material;
RESET enable_memoize;
SELECT count(*), sum(v) FROM deep;
RESET parallel_leader_participation;
-- Other protocols: some have their leader read alone.
SET rdmacc.protocol = 'mvcc';
SELECT x, count(*) FROM p GROUP BY x ORDER BY x LIMIT 2;
SET rdmacc.protocol = 'timestamp';
SELECT x, count(*) FROM p GROUP BY x ORDER BY x LIMIT 2;
SET rdmacc.protocol = 'sundial';
EXPLAIN (COSTS OFF) SELECT sum(id) FROM p;
SELECT sum(id) FROM p;
EXECUTE total(0);
SET rdmacc.protocol = 'occ';
SET rdmacc.stages = 'rpc';
EXPLAIN (COSTS OFF) SELECT sum(id) FROM p;
RESET rdmacc.stages;
RESET rdmacc.protocol;
-- Children of both kinds.
CREATE TABLE parts (id int, v int) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (5000) USING rdmacc;
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (5000) TO (10000) USING heap;
INSERT INTO parts SELECT i, i FROM generate_series(0, 9999) i;
ANALYZE parts;
SELECT count(*), sum(v) FROM parts;
DROP FUNCTION square_of;
DROP TABLE p, small, own, parts, deep, outside;
