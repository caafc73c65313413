-- Tables come and go; catalog and dump look like those of any table.
CREATE TABLE plain (a int, b text) USING rdmacc;
CREATE TABLE keyed (id int PRIMARY KEY, v text DEFAULT 'none', CHECK (id > 0)) USING rdmacc;
\d keyed
SELECT am.amname FROM pg_class c JOIN pg_am am ON am.oid = c.relam WHERE c.relname = 'keyed';
INSERT INTO plain VALUES (1, 'one'), (1, 'one'), (NULL, NULL);
INSERT INTO keyed (id) VALUES (1);
INSERT INTO keyed VALUES (0, 'refused by the check');
SELECT * FROM plain ORDER BY a;
SELECT * FROM keyed;

-- default_table_access_method
SET default_table_access_method = rdmacc;
CREATE TABLE by_default (id int PRIMARY KEY);
CREATE TEMPORARY TABLE temporary_one (id int PRIMARY KEY);
CREATE TEMPORARY TABLE temporary_as AS SELECT 1 AS id;
CREATE TABLE pg_temp.temporary_by_schema (id int);
CREATE UNLOGGED TABLE unlogged_one (id int);
CREATE UNLOGGED TABLE unlogged_as AS SELECT 1 AS id;
SELECT c.relname, am.amname FROM pg_class c JOIN pg_am am ON am.oid = c.relam
  WHERE c.relname IN ('by_default', 'temporary_one', 'temporary_as', 'temporary_by_schema',
                      'unlogged_one', 'unlogged_as') ORDER BY 1;
DROP TABLE unlogged_one, unlogged_as;
RESET default_table_access_method;

-- CREATE TABLE AS, materialized views
CREATE TABLE copied USING rdmacc AS SELECT i AS id, i * i AS square FROM generate_series(1, 5) i;
SELECT * FROM copied ORDER BY id;
CREATE MATERIALIZED VIEW summed USING rdmacc AS SELECT count(*) AS rows, sum(square) FROM copied;
SELECT * FROM summed;
INSERT INTO copied VALUES (6, 36);
REFRESH MATERIALIZED VIEW summed;
SELECT * FROM summed;
DROP MATERIALIZED VIEW summed;

-- TRUNCATE, also of several tables
TRUNCATE plain, keyed;
SELECT count(*) FROM plain;
SELECT count(*) FROM keyed;
INSERT INTO keyed VALUES (1, 'again');
SELECT * FROM keyed WHERE id = 1;

-- columns
ALTER TABLE copied ADD COLUMN note text;
ALTER TABLE copied ADD COLUMN level int NOT NULL DEFAULT 7;
ALTER TABLE copied DROP COLUMN square;
INSERT INTO copied VALUES (7, 'late', 8);
SELECT * FROM copied ORDER BY id;
ALTER TABLE copied ALTER COLUMN level TYPE text USING 'level ' || level;
SELECT * FROM copied ORDER BY id;
ALTER TABLE copied ALTER COLUMN note SET NOT NULL;
UPDATE copied SET note = 'n' || id;
ALTER TABLE copied ALTER COLUMN note SET NOT NULL;
ALTER TABLE copied RENAME TO renamed;
SELECT count(*) FROM renamed;

-- rewriting the table
VACUUM FULL keyed;
SELECT * FROM keyed WHERE id = 1;
CLUSTER keyed USING keyed_pkey;
SELECT * FROM keyed WHERE id = 1;
INSERT INTO keyed VALUES (1, 'duplicate');
ALTER TABLE keyed ALTER COLUMN id TYPE bigint;
SELECT * FROM keyed WHERE id = 1;
INSERT INTO keyed VALUES (1, 'duplicate');
REINDEX TABLE keyed;
REINDEX TABLE CONCURRENTLY keyed;
SELECT * FROM keyed WHERE id = 1;
\d keyed

-- another access method and back
ALTER TABLE keyed SET ACCESS METHOD heap;
INSERT INTO keyed VALUES (2, 'in heap');
SELECT * FROM keyed WHERE id = 2;
INSERT INTO keyed VALUES (2, 'duplicate');
ALTER TABLE keyed SET ACCESS METHOD rdmacc;
SELECT * FROM keyed ORDER BY id;
INSERT INTO keyed VALUES (2, 'duplicate');

-- maintenance
ANALYZE renamed;
SELECT reltuples FROM pg_class WHERE relname = 'renamed';
SELECT attname, n_distinct FROM pg_stats WHERE tablename = 'renamed' ORDER BY attname;
VACUUM renamed;
VACUUM (ANALYZE) renamed;

DROP TABLE plain, keyed, by_default, renamed;
SELECT count(*) FROM keyed;

-- partitions of several access methods
CREATE TABLE parent (id int PRIMARY KEY, v text) PARTITION BY RANGE (id);
CREATE TABLE low PARTITION OF parent FOR VALUES FROM (0) TO (10) USING rdmacc;
CREATE TABLE high PARTITION OF parent FOR VALUES FROM (10) TO (20) USING rdmacc;
INSERT INTO parent SELECT i, 'v' || i FROM generate_series(8, 12) i;
SELECT tableoid::regclass, * FROM parent ORDER BY id;
UPDATE parent SET id = id + 5 WHERE id = 9 RETURNING *;
UPDATE parent SET id = 12 WHERE id = 11;
SELECT tableoid::regclass, * FROM parent ORDER BY id;
UPDATE parent SET id = 13 WHERE id = 8;
SELECT tableoid::regclass, * FROM parent ORDER BY id;
EXPLAIN (COSTS OFF) SELECT * FROM parent WHERE id = 12;
INSERT INTO parent VALUES (12, 'conflict') ON CONFLICT (id) DO UPDATE SET v = excluded.v;
SELECT * FROM parent WHERE id = 12;
DROP TABLE parent;
