-- Unique indexes and constraints.
CREATE TABLE t (id int PRIMARY KEY, u int UNIQUE, a int, b text) USING rdmacc;
CREATE UNIQUE INDEX t_a_b ON t (a, b);
INSERT INTO t SELECT g, g, g % 10, 'b' || g FROM generate_series(1, 100) g;
INSERT INTO t VALUES (101, 50, 1, 'new');
INSERT INTO t VALUES (101, 101, 5, 'b5');
INSERT INTO t VALUES (101, 101, 5, 'b5'), (102, 101, 6, 'new');
INSERT INTO t VALUES (101, 101, 6, 'x'), (102, 101, 6, 'new');
SELECT count(*) FROM t;
\set VERBOSITY sqlstate
INSERT INTO t VALUES (101, 50, 1, 'new');
\set VERBOSITY default
COPY t FROM stdin;
101	101	1	copied
102	7	1	copied
\.
SELECT count(*) FROM t WHERE b = 'copied';
-- NULLs are distinct.
INSERT INTO t VALUES (101, NULL, NULL, 'x'), (102, NULL, NULL, 'x');
SELECT id FROM t WHERE u IS NULL ORDER BY id;
DELETE FROM t WHERE u IS NULL;

-- Updates are judged when the statement ends.
UPDATE t SET u = u + 1;
UPDATE t SET u = u - 1;
UPDATE t SET u = 101 - u;
SELECT min(u), max(u), count(DISTINCT u), sum(u * id) FROM t;
UPDATE t SET u = 5 WHERE id = 1;
UPDATE t SET u = 7 WHERE id IN (1, 2);
UPDATE t SET u = u % 99;
UPDATE t SET u = u WHERE id = 5;
UPDATE t SET a = 1, b = 'b' WHERE id = 1;
UPDATE t SET a = 1, b = 'b' WHERE id = 2;
UPDATE t SET id = id + 1000;
SELECT id, a, b FROM t WHERE u = 50;
SELECT count(*) FROM t WHERE a = 3 AND b = 'b33';
-- With what triggers and functions do in between.
CREATE FUNCTION swap() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.a = -1 THEN UPDATE t SET u = u + 5000 WHERE id = 1002; NEW.a := OLD.a; END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER swap BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION swap();
UPDATE t SET a = -1, u = (SELECT u FROM t WHERE id = 1002) WHERE id = 1001;
SELECT id, u FROM t WHERE id IN (1001, 1002) ORDER BY id;
DROP TRIGGER swap ON t;
DROP FUNCTION swap;
BEGIN;
SAVEPOINT one;
UPDATE t SET u = 60 WHERE id = 1003;
ROLLBACK TO one;
UPDATE t SET u = u + 10000;
DELETE FROM t WHERE u = 10060;
INSERT INTO t VALUES (60, 10060, 60, 'again');
COMMIT;
SELECT id FROM t WHERE u = 10060;
WITH gone AS (DELETE FROM t WHERE id = 60 RETURNING u) UPDATE t SET u = gone.u FROM gone WHERE id = 1004;
SELECT count(*) FROM t WHERE u = 10060;
MERGE INTO t USING (VALUES (1005, 10060)) AS v (id, u) ON t.id = v.id WHEN MATCHED THEN UPDATE SET u = v.u;
MERGE INTO t USING (VALUES (1, 10060)) AS v (id, u) ON t.id = v.id WHEN NOT MATCHED THEN INSERT VALUES (v.id, v.u);

-- Building finds what is there already.
CREATE TABLE twice (id int PRIMARY KEY, v numeric, w text) USING rdmacc;
INSERT INTO twice VALUES (1, 1.0, 'a'), (2, 1.00, 'b'), (3, NULL, NULL), (4, NULL, NULL);
CREATE UNIQUE INDEX ON twice (v);
CREATE UNIQUE INDEX CONCURRENTLY ON twice (v);
ALTER TABLE twice ADD UNIQUE (v, w);
CREATE UNIQUE INDEX twice_w ON twice (w) NULLS NOT DISTINCT;
DELETE FROM twice WHERE id = 4;
CREATE UNIQUE INDEX twice_w ON twice (w) NULLS NOT DISTINCT;
INSERT INTO twice VALUES (5, 5, NULL);
UPDATE twice SET w = NULL WHERE id = 1;
UPDATE twice SET v = 1, w = 'a' WHERE id = 2;
ALTER TABLE twice ADD CONSTRAINT named UNIQUE USING INDEX twice_w;
INSERT INTO twice VALUES (5, 5, NULL);
\d twice
DROP TABLE twice;

-- Types whose bytes are a hash, and those that are equal without being the same.
CREATE TABLE kinds (id int PRIMARY KEY, j jsonb UNIQUE, r int4range UNIQUE, f float8 UNIQUE,
  c char(10) UNIQUE, i interval UNIQUE) USING rdmacc;
INSERT INTO kinds VALUES (1, '{"a": 1}', '[1,3)', 0, 'x', '1 month');
INSERT INTO kinds VALUES (2, '{"a":1.0}', '[5,6)', 1, 'y', '1 day');
INSERT INTO kinds VALUES (2, '{"a":2}', '[1,2]', 1, 'y', '1 day');
INSERT INTO kinds VALUES (2, '{"a":2}', '[5,6)', '-0', 'y', '1 day');
INSERT INTO kinds VALUES (2, '{"a":2}', '[5,6)', 1, 'x   ', '1 day');
INSERT INTO kinds VALUES (2, '{"a":2}', '[5,6)', 1, 'y', '30 days');
INSERT INTO kinds VALUES (2, '{"a":2}', '[5,6)', 1, 'y', '31 days');
SELECT id FROM kinds WHERE j = '{"a": 2.00}';
DROP TABLE kinds;

-- Partitions.
CREATE TABLE parted (id int, k int, v text, UNIQUE (k, v)) PARTITION BY LIST (k);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES IN (1) USING rdmacc;
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES IN (2) USING rdmacc;
INSERT INTO parted VALUES (1, 1, 'a'), (2, 2, 'a');
INSERT INTO parted VALUES (3, 2, 'a');
UPDATE parted SET k = 2 WHERE id = 1;
UPDATE parted SET k = 2, v = 'b' WHERE id = 1;
SELECT tableoid::regclass, * FROM parted ORDER BY id;
DROP TABLE parted;

-- Unique indexes prove uniqueness to the planner.
EXPLAIN (COSTS OFF) SELECT x.id FROM t x LEFT JOIN t y ON x.a = y.u;
EXPLAIN (COSTS OFF) SELECT * FROM t WHERE u = 10050;
DROP TABLE t;

-- A modifying WITH that nobody reads runs when its query ends.
CREATE TABLE cte (id int PRIMARY KEY, u int UNIQUE) USING rdmacc;
INSERT INTO cte VALUES (1, 1), (2, 2);
WITH x AS (UPDATE cte SET u = 1 WHERE id = 2) SELECT 1;
SELECT * FROM cte ORDER BY id;
BEGIN;
WITH x AS (UPDATE cte SET u = 1 WHERE id = 2) SELECT 1;
ROLLBACK;
WITH x AS (UPDATE cte SET u = 3 - u) SELECT 1 AS swapped;
SELECT * FROM cte ORDER BY id;

-- Queries within the statement do not end it.
CREATE FUNCTION counts(int) RETURNS int STABLE LANGUAGE plpgsql AS
  'DECLARE n int; BEGIN SELECT count(*) INTO n FROM cte; RETURN $1; END';
UPDATE cte SET u = counts(u) + 1;
UPDATE cte SET u = counts(1);
SELECT * FROM cte ORDER BY id;

-- An index function that writes, against its promise.
CREATE TABLE counter (id int PRIMARY KEY, n int) USING rdmacc;
INSERT INTO counter VALUES (1, 0);
CREATE FUNCTION count_up(int) RETURNS int LANGUAGE plpgsql AS
  'BEGIN UPDATE counter SET n = n + 1; RETURN $1; END';
CREATE FUNCTION says_immutable(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
  'BEGIN RETURN count_up($1); END';
ALTER TABLE cte DROP CONSTRAINT cte_u_key;
CREATE UNIQUE INDEX cte_f ON cte (says_immutable(u));
INSERT INTO cte VALUES (3, 2);
SELECT count(*) FROM cte;
DROP TABLE cte, counter;
DROP FUNCTION counts, says_immutable, count_up;
