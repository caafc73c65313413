-- xmin as the version of a row: changed with the row, the same as long as the row is.
CREATE TABLE t (id int PRIMARY KEY, v text) USING rdmacc;
INSERT INTO t VALUES (1, 'one') RETURNING xmin AS created \gset
INSERT INTO t VALUES (2, 'two'), (3, 'three');
SELECT xmin = :'created' AS as_returned, xmin::text::bigint > 2 AS normal FROM t WHERE id = 1;

-- optimistic concurrency as applications do it: the update says which version it has seen
UPDATE t SET v = 'uno' WHERE id = 1 AND xmin = :'created' RETURNING xmin AS updated \gset
SELECT :'updated' <> :'created' AS changed;
UPDATE t SET v = 'ein' WHERE id = 1 AND xmin = :'created';
SELECT v, xmin = :'updated' AS as_returned FROM t WHERE id = 1;

-- what does not change a row leaves its version alone
SELECT xmin AS second FROM t WHERE id = 2 \gset
UPDATE t SET v = 'drei' WHERE id = 3;
DELETE FROM t WHERE id = 3;
SELECT id FROM t WHERE id = 2 FOR UPDATE;
SELECT id FROM t WHERE id = 2 FOR SHARE;
BEGIN;
UPDATE t SET v = 'undone' WHERE id = 2 RETURNING xmin <> :'second' AS changed;
ROLLBACK;
BEGIN;
SAVEPOINT s;
UPDATE t SET v = 'undone' WHERE id = 2;
ROLLBACK TO s;
COMMIT;
INSERT INTO t VALUES (2, 'again') ON CONFLICT DO NOTHING;
ALTER TABLE t ADD COLUMN w int DEFAULT 7;
SELECT *, xmin = :'second' AS same FROM t WHERE id = 2;
SELECT count(*) FILTER (WHERE xmin = :'second') FROM t;

-- within a transaction, and as others see it afterwards
BEGIN;
UPDATE t SET v = 'a' WHERE id = 2 RETURNING xmin AS in_transaction \gset
SELECT xmin = :'in_transaction' AS same, xmin <> :'second' AS changed FROM t WHERE id = 2;
UPDATE t SET v = 'b' WHERE id = 2;
INSERT INTO t VALUES (4, 'four');
SELECT count(DISTINCT xmin::text) FROM t WHERE id IN (2, 4);
COMMIT;
SELECT xmin = :'in_transaction' AS same FROM t WHERE id IN (2, 4);

-- every way to write returns the version that is read later
CREATE TABLE versions (how text, id int, version xid);
WITH w AS (INSERT INTO t VALUES (5, 'five') RETURNING id, xmin) SELECT id, xmin AS x FROM w \gset
INSERT INTO versions VALUES ('insert', :id, :'x');
INSERT INTO t VALUES (5, 'cinq') ON CONFLICT (id) DO UPDATE SET v = excluded.v RETURNING id, xmin AS x \gset
INSERT INTO versions VALUES ('upsert', :id, :'x');
UPDATE t SET id = 6 WHERE id = 4 RETURNING id, xmin AS x \gset
INSERT INTO versions VALUES ('key update', :id, :'x');
CREATE FUNCTION same_row() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;
CREATE TRIGGER b BEFORE INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION same_row();
CREATE TRIGGER a AFTER INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION same_row();
UPDATE t SET v = 'triggered' WHERE id = 1 RETURNING id, xmin AS x \gset
INSERT INTO versions VALUES ('triggers', :id, :'x');
INSERT INTO t VALUES (7, 'seven') RETURNING id, xmin AS x \gset
INSERT INTO versions VALUES ('insert with triggers', :id, :'x');
SELECT how, version = t.xmin AS same FROM versions JOIN t USING (id) WHERE how <> 'insert' ORDER BY how;
SELECT version <> t.xmin AS changed FROM versions JOIN t USING (id) WHERE how = 'insert';

-- whether a row was inserted or was there
INSERT INTO t VALUES (7, 'sept'), (8, 'huit') ON CONFLICT (id) DO UPDATE SET v = excluded.v
  RETURNING id, xmax = 0 AS inserted;
WITH w AS (INSERT INTO t VALUES (8, 'acht'), (9, 'neun') ON CONFLICT (id) DO UPDATE SET v = excluded.v
             RETURNING id, xmax = 0 AS inserted)
  SELECT * FROM w ORDER BY id;
UPDATE t SET v = 'nine' WHERE id = 9 RETURNING xmax = 0 AS not_in_conflict;
SELECT count(*) FROM t WHERE xmax <> 0;

-- a table without a primary key, and partitions
CREATE TABLE bare (v text) USING rdmacc;
INSERT INTO bare VALUES ('x') RETURNING xmin AS x \gset
INSERT INTO bare VALUES ('z') RETURNING xmax = 0 AS inserted;
UPDATE bare SET v = 'y' WHERE xmin = :'x' RETURNING xmin <> :'x' AS changed;
CREATE TABLE parts (id int PRIMARY KEY, v text) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (10) USING rdmacc;
INSERT INTO parts_1 VALUES (1, 'one') RETURNING xmin AS x \gset
UPDATE parts SET v = 'uno' WHERE id = 1 AND xmin = :'x' RETURNING xmin <> :'x' AS changed;
DROP TABLE t, bare, parts, versions;
DROP FUNCTION same_row;
