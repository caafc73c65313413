-- rdmacc.verify(): what is wrong with a table and its indexes; no row means that they are sound
SET rdmacc.auto_retry = 20;
CREATE TABLE sound (id int PRIMARY KEY, u int UNIQUE, v text) USING rdmacc;
CREATE INDEX sound_v ON sound (v DESC NULLS LAST);
CREATE INDEX sound_part ON sound ((u % 7)) WHERE u > 10;
CREATE INDEX sound_hash ON sound USING hash (v);
SELECT * FROM rdmacc.verify('sound');
INSERT INTO sound SELECT i, i * 2, 'value ' || i FROM generate_series(1, 3000) i;
UPDATE sound SET u = -u, v = repeat('long ', 300) WHERE id % 50 = 0;
DELETE FROM sound WHERE id % 3 = 0;
INSERT INTO sound SELECT i, i * 2, NULL FROM generate_series(3, 300, 3) i;
SELECT * FROM rdmacc.verify('sound');
SELECT * FROM rdmacc.verify('sound', units => true);

-- tables of all kinds of keys
CREATE TABLE keyless (a int, b text) USING rdmacc;
INSERT INTO keyless SELECT i, 'b' FROM generate_series(1, 500) i;
CREATE TABLE placed (w int, d int, v int, PRIMARY KEY (w, d)) USING rdmacc
  WITH (rdmacc.partition_by = 1, rdmacc.ordered_key = on);
INSERT INTO placed SELECT i % 10, i, i FROM generate_series(1, 500) i;
CREATE MATERIALIZED VIEW summary USING rdmacc AS SELECT w, sum(v) FROM placed GROUP BY w;
SELECT * FROM rdmacc.verify('keyless');
SELECT * FROM rdmacc.verify('placed');
SELECT * FROM rdmacc.verify('summary');

-- several in one statement, those with secondary indexes among them, and after each other
SELECT c.relname, v.* FROM pg_class c, LATERAL rdmacc.verify(c.oid) v
  WHERE c.relname IN ('sound', 'keyless', 'placed', 'summary');
BEGIN;
SELECT * FROM rdmacc.verify('sound');
SELECT * FROM rdmacc.verify('keyless');
SELECT * FROM rdmacc.verify('placed');
SELECT * FROM rdmacc.verify('sound');
ROLLBACK;
BEGIN;
SELECT * FROM rdmacc.verify('placed');
SELECT count(*) FROM keyless;
SELECT * FROM rdmacc.verify('sound');
ROLLBACK;

-- under every protocol
SET rdmacc.protocol = 'nowait';
SELECT * FROM rdmacc.verify('sound');
SELECT c.relname, v.* FROM pg_class c, LATERAL rdmacc.verify(c.oid) v
  WHERE c.relname IN ('sound', 'keyless', 'placed', 'summary');
SET rdmacc.protocol = 'mvcc';
SELECT * FROM rdmacc.verify('sound');
RESET rdmacc.protocol;

-- an expression that is not what it was when rows were written: entries and rows do not agree
CREATE FUNCTION rounded(i int) RETURNS int IMMUTABLE LANGUAGE plpgsql
  AS 'BEGIN RETURN i / 10; END';
CREATE TABLE lied (id int PRIMARY KEY, v int) USING rdmacc;
CREATE INDEX lied_rounded ON lied (rounded(v));
INSERT INTO lied VALUES (1, 10), (2, 20), (3, 0);
SELECT * FROM rdmacc.verify('lied');
CREATE OR REPLACE FUNCTION rounded(i int) RETURNS int IMMUTABLE LANGUAGE plpgsql
  AS 'BEGIN RETURN i / 20; END';
SELECT finding, object, node, detail FROM rdmacc.verify('lied') ORDER BY 1, 2;
REINDEX INDEX lied_rounded;
SELECT * FROM rdmacc.verify('lied');

-- what cannot be verified
CREATE TABLE stock (id int PRIMARY KEY);
SELECT * FROM rdmacc.verify('stock');
SELECT * FROM rdmacc.verify('sound_v');
CREATE TABLE parted (id int) PARTITION BY RANGE (id);
SELECT * FROM rdmacc.verify('parted');
SELECT * FROM rdmacc.verify(NULL);
SELECT * FROM rdmacc.verify('missing');
BEGIN;
SELECT * FROM rdmacc.verify('keyless');
SELECT count(*) FROM sound;
SELECT * FROM rdmacc.verify('sound');
ROLLBACK;
CREATE ROLE regress_verifier;
SET ROLE regress_verifier;
SELECT * FROM rdmacc.verify('sound');
RESET ROLE;
DROP ROLE regress_verifier;
DROP MATERIALIZED VIEW summary;
DROP TABLE sound, keyless, placed, lied, stock, parted;
DROP FUNCTION rounded(int);
