-- What DDL does with secondary indexes.
SET jit = off; -- a plan that is not wanted is dear, and would be compiled
CREATE TABLE t (id int PRIMARY KEY, a int, b varchar(20) COLLATE "C", u int) USING rdmacc;
INSERT INTO t SELECT g, g % 10, 'b' || g, g FROM generate_series(1, 200) g;
CREATE FUNCTION found() RETURNS text LANGUAGE plpgsql AS $$
DECLARE answer text;
BEGIN
  PERFORM set_config('enable_seqscan', 'off', true);
  SELECT (SELECT count(*) FROM t WHERE a = 3) || ' ' || (SELECT count(*) FROM t WHERE b = 'b42')
    || ' ' || (SELECT count(*) FROM t WHERE u BETWEEN 10 AND 19) INTO answer;
  PERFORM set_config('enable_seqscan', 'on', true);
  RETURN answer;
END $$;
CREATE INDEX t_a ON t (a);
CREATE INDEX CONCURRENTLY t_b ON t (b);
ALTER TABLE t ADD CONSTRAINT t_u UNIQUE (u);
SELECT found();
-- Rolled back, with what was written under it.
BEGIN;
DROP INDEX t_a;
CREATE INDEX t_a2 ON t (a);
INSERT INTO t VALUES (1001, 3, 'x', 1001);
SAVEPOINT one;
CREATE INDEX t_a3 ON t (a);
INSERT INTO t VALUES (1002, 3, 'x', 1002);
SELECT found();
ROLLBACK TO one;
SELECT found();
ROLLBACK;
SELECT found();
BEGIN;
CREATE UNIQUE INDEX t_bad ON t (a);
ROLLBACK;
BEGIN;
CREATE INDEX CONCURRENTLY t_bad ON t (a);
ROLLBACK;
BEGIN;
DROP INDEX CONCURRENTLY t_a;
ROLLBACK;
-- Built anew.
REINDEX INDEX t_a;
REINDEX TABLE t;
SELECT found();
REINDEX INDEX CONCURRENTLY t_a;
REINDEX TABLE CONCURRENTLY t;
SELECT found();
BEGIN;
REINDEX TABLE t;
INSERT INTO t VALUES (1001, 3, 'x', 1001);
REINDEX INDEX t_a;
SELECT found();
ROLLBACK;
SELECT found();
VACUUM t;
VACUUM FULL t;
CLUSTER t USING t_a;
ANALYZE t;
SELECT found();
BEGIN;
TRUNCATE t;
INSERT INTO t VALUES (1, 3, 'b42', 15);
SELECT found();
ROLLBACK;
SELECT found();
BEGIN;
CREATE TABLE made (id int PRIMARY KEY, u int UNIQUE) USING rdmacc;
INSERT INTO made VALUES (1, 1);
TRUNCATE made;
INSERT INTO made VALUES (2, 1);
SELECT * FROM made WHERE u = 1;
COMMIT;
INSERT INTO made VALUES (3, 1);
DROP TABLE made;
-- Columns and types.
ALTER TABLE t ALTER a TYPE bigint;
ALTER TABLE t ALTER b TYPE varchar(40);
ALTER TABLE t ALTER b TYPE text COLLATE "C";
ALTER TABLE t ADD extra int DEFAULT 7;
CREATE INDEX t_extra ON t (extra);
SELECT count(*) FROM t WHERE extra = 7;
ALTER TABLE t DROP COLUMN extra;
SELECT found();
BEGIN;
ALTER TABLE t ALTER b TYPE varchar(50);
ALTER TABLE t ALTER u TYPE numeric;
ROLLBACK;
SELECT found();
ALTER INDEX t_a RENAME TO t_a_renamed;
ALTER INDEX t_a_renamed SET (fillfactor = 50);
-- Keys of the rows change.
ALTER TABLE t DROP CONSTRAINT t_pkey;
SELECT found();
INSERT INTO t VALUES (1, 3, 'x', 2001);
SELECT found();
DELETE FROM t WHERE u = 2001;
ALTER TABLE t ADD PRIMARY KEY (id, a);
SELECT found();
-- To heap and back.
ALTER TABLE t SET ACCESS METHOD heap;
SELECT pg_relation_size('t_b') > 8192;
INSERT INTO t VALUES (1001, 3, 'x', 5);
ALTER TABLE t SET ACCESS METHOD rdmacc;
SELECT pg_relation_size('t_b');
INSERT INTO t VALUES (1001, 3, 'x', 5);
SELECT found();
BEGIN;
ALTER TABLE t SET ACCESS METHOD heap;
ROLLBACK;
SELECT found();
-- Materialized views.
CREATE MATERIALIZED VIEW seen USING rdmacc AS SELECT id, u FROM t;
CREATE UNIQUE INDEX seen_u ON seen (u);
CREATE INDEX seen_id ON seen (id);
REFRESH MATERIALIZED VIEW seen;
DELETE FROM t WHERE id <= 3;
REFRESH MATERIALIZED VIEW CONCURRENTLY seen;
REFRESH MATERIALIZED VIEW CONCURRENTLY seen WITH NO DATA;
SELECT count(*) FROM seen WHERE u > 0;
SELECT id FROM seen WHERE u = 4;
DROP MATERIALIZED VIEW seen;
-- Nothing is left in the nodes.
DROP INDEX CONCURRENTLY t_b;
DROP INDEX t_a_renamed;
ALTER TABLE t DROP CONSTRAINT t_u;
SELECT count(*) FROM pg_class WHERE relam = (SELECT oid FROM pg_am WHERE amname = 'rdmacc');
SELECT node, tables FROM rdmacc.stat_nodes ORDER BY node;
DROP TABLE t;
DROP FUNCTION found;
SELECT node, tables FROM rdmacc.stat_nodes ORDER BY node;

-- Refused.
CREATE TABLE t (id int PRIMARY KEY, a int, b text, p point, r int4range, ar int[]) USING rdmacc;
CREATE INDEX bad ON t USING gin (ar);
CREATE INDEX bad ON t USING gist (r);
CREATE INDEX bad ON t USING spgist (p);
CREATE INDEX bad ON t USING brin (a);
CREATE INDEX CONCURRENTLY bad ON t USING gin (ar);
ALTER TABLE t ADD EXCLUDE USING gist (r WITH &&);
ALTER TABLE t ADD EXCLUDE USING btree (a WITH =);
CREATE UNIQUE INDEX t_a ON t (a);
CREATE UNIQUE INDEX t_id ON t (id);
ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY USING INDEX t_id;
SET allow_in_place_tablespaces = true;
CREATE TABLESPACE elsewhere LOCATION '';
ALTER INDEX t_a SET TABLESPACE elsewhere;
CREATE INDEX t_b ON t (b) TABLESPACE elsewhere;
INSERT INTO t VALUES (1, 1, 'one');
SELECT a FROM t WHERE b = 'one';
REINDEX (TABLESPACE elsewhere) INDEX t_a;
SELECT b FROM t WHERE a = 1;
\d t
DROP TABLE t;
DROP TABLESPACE elsewhere;
SELECT node, tables FROM rdmacc.stat_nodes ORDER BY node;
