-- Options of a table: WITH, SET, RESET, rdmacc.set_option(), labels.
CREATE TABLE plain (id int PRIMARY KEY, v text) USING rdmacc;
CREATE TABLE chosen (id int PRIMARY KEY, v text) USING rdmacc
  WITH (rdmacc.history = 5, rdmacc.record_size = 128, fillfactor = 70);
SELECT * FROM rdmacc.table_options ORDER BY options;
SELECT reloptions FROM pg_class WHERE relname = 'chosen';
INSERT INTO chosen SELECT i, repeat('x', i) FROM generate_series(1, 200) i;

-- Changes keep the rows.
ALTER TABLE chosen SET (rdmacc.history = 7);
ALTER TABLE chosen RESET (rdmacc.record_size);
SELECT options, (SELECT sum(length(v)) FROM chosen) FROM rdmacc.table_options ORDER BY options;
SELECT rdmacc.set_option('chosen', 'record_size', '64');
SELECT options, (SELECT sum(length(v)) FROM chosen) FROM rdmacc.table_options ORDER BY options;
BEGIN READ ONLY;
SELECT rdmacc.set_option('chosen', 'history', NULL);
ROLLBACK;
SELECT rdmacc.set_option('chosen', 'history', NULL);
SELECT options FROM rdmacc.table_options ORDER BY options;

-- Options outlive what gives the table a new file.
VACUUM FULL chosen;
ALTER TABLE chosen ALTER v TYPE varchar(500);
TRUNCATE chosen;
INSERT INTO chosen VALUES (1, 'one');
SELECT options, (SELECT string_agg(v, ',') FROM chosen) FROM rdmacc.table_options ORDER BY options;

-- Rolled back, nothing has changed.
BEGIN;
ALTER TABLE chosen SET (rdmacc.history = 9);
INSERT INTO chosen VALUES (2, 'two');
ROLLBACK;
SELECT options, (SELECT string_agg(v, ',') FROM chosen) FROM rdmacc.table_options ORDER BY options;

-- As a dump writes it.
SECURITY LABEL FOR rdmacc ON TABLE plain IS 'history=1, record_size=40';
INSERT INTO plain VALUES (1, repeat('long', 100));
SELECT * FROM rdmacc.table_options ORDER BY 1;
SECURITY LABEL FOR rdmacc ON TABLE plain IS NULL;
SELECT length(v) FROM plain;

CREATE TABLE made USING rdmacc WITH (rdmacc.history = 2) AS SELECT * FROM plain;
SELECT options FROM rdmacc.table_options WHERE relation = 'made'::regclass;
CREATE TABLE IF NOT EXISTS made (a int) USING rdmacc WITH (rdmacc.history = 4);
SELECT options FROM rdmacc.table_options WHERE relation = 'made'::regclass;

-- Rows of one place are on one node, of whichever table; a change of the option moves them.
CREATE TABLE warehouse (w int PRIMARY KEY, v int) USING rdmacc WITH (rdmacc.partition_by = 1);
CREATE TABLE stock (w int, item text, v int, PRIMARY KEY (w, item)) USING rdmacc;
CREATE UNIQUE INDEX stock_v ON stock (v);
INSERT INTO warehouse SELECT w, w FROM generate_series(1, 8) w;
INSERT INTO stock SELECT w, 'item ' || i, 10 * i + w FROM generate_series(1, 8) w, generate_series(1, 8) i;
CREATE FUNCTION nodes_of_place(place int) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
  PERFORM FROM warehouse WHERE w = place FOR UPDATE;
  FOR i IN 1 .. 8 LOOP
    PERFORM FROM stock WHERE w = place AND item = 'item ' || i FOR UPDATE;
  END LOOP;
  RETURN (SELECT count(DISTINCT node) FROM rdmacc.locks);
END $$;
SET rdmacc.protocol = nowait;
SELECT nodes_of_place(1) > 1 AS apart;
ALTER TABLE stock SET (rdmacc.partition_by = 1);
SELECT nodes_of_place(1);
SELECT nodes_of_place(2);
SELECT nodes_of_place(7);
SELECT count(*), sum(v), (SELECT item FROM stock WHERE v = 35) FROM stock;
SELECT v FROM stock WHERE w = 5 AND item = 'item 3';
INSERT INTO stock VALUES (5, 'item 3', 0);
SELECT rdmacc.set_option('stock', 'partition_by', '2');
SELECT v FROM stock WHERE w = 5 AND item = 'item 3';
ALTER TABLE stock DROP CONSTRAINT stock_pkey;
ALTER TABLE stock ADD PRIMARY KEY (item, w);
SELECT v FROM stock WHERE w = 5 AND item = 'item 3';
SECURITY LABEL FOR rdmacc ON TABLE stock IS 'partition_by=1';
TRUNCATE stock;
INSERT INTO stock VALUES (5, 'item 3', 7);
SELECT v FROM stock WHERE w = 5 AND item = 'item 3';
BEGIN;
ALTER TABLE stock RESET (rdmacc.partition_by);
INSERT INTO stock VALUES (5, 'item 4', 8);
ROLLBACK;
SELECT * FROM stock WHERE w = 5 AND item IN ('item 3', 'item 4');
RESET rdmacc.protocol;
DROP FUNCTION nodes_of_place;

-- Sizes in memory.
CREATE TABLE sized (id int PRIMARY KEY, v text) USING rdmacc;
CREATE INDEX sized_v ON sized (v);
SELECT rdmacc.relation_size('sized') AS empty FROM (SELECT 1) x \gset
INSERT INTO sized SELECT i, 'short' FROM generate_series(1, 1000) i;
SELECT rdmacc.relation_size('sized') AS short FROM (SELECT 1) x \gset
UPDATE sized SET v = repeat('long', 250);
SELECT :short - :empty BETWEEN 100000 AND 1000000 AS rows,
       rdmacc.relation_size('sized') - :short >= 1000000 AS long_rows,
       rdmacc.relation_size('sized_v') > 10000 AS index,
       rdmacc.relation_size('sized_pkey') AS primary_key;
SELECT rdmacc.relation_size(0);
SELECT rdmacc.relation_size('pg_class');
DROP TABLE sized, warehouse, stock;

-- Refused.
CREATE TABLE wrong (id int) USING rdmacc WITH (rdmacc.nonsense = 1);
CREATE TABLE wrong (id int) USING rdmacc WITH (rdmacc.history = 16);
CREATE TABLE wrong (id int) USING rdmacc WITH (rdmacc.record_size = 'large');
CREATE TABLE wrong (id int) USING heap WITH (rdmacc.history = 1);
SELECT rdmacc.set_option('pg_class', 'history', '1');
SELECT rdmacc.set_option('plain', NULL, '1');
SECURITY LABEL FOR rdmacc ON TABLE plain IS 'nonsense';
SECURITY LABEL FOR rdmacc ON COLUMN plain.v IS 'history=1';
CREATE ROLE options_stranger;
SET ROLE options_stranger;
ALTER TABLE plain SET (rdmacc.history = 1);
SELECT rdmacc.set_option('plain', 'history', '1');
RESET ROLE;
DROP ROLE options_stranger;
ALTER TABLE IF EXISTS wrong SET (rdmacc.history = 1);
DROP TABLE plain, chosen, made;
SELECT * FROM rdmacc.table_options ORDER BY options;
-- a table that becomes a view has no label, and one can always be taken away
CREATE TABLE seen (a int) USING rdmacc;
SELECT label FROM pg_seclabels WHERE objoid = 'seen'::regclass;
CREATE RULE "_RETURN" AS ON SELECT TO seen DO INSTEAD SELECT 1 AS a;
SELECT label FROM pg_seclabels WHERE objoid = 'seen'::regclass;
SECURITY LABEL FOR rdmacc ON VIEW seen IS NULL;
SECURITY LABEL FOR rdmacc ON VIEW seen IS 'history=1';
SELECT * FROM seen;
DROP VIEW seen;
