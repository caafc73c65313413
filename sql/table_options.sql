-- Options of a table: WITH, SET, RESET, rdmacc.set_option(), labels.
CREATE TABLE plain (id int PRIMARY KEY, v text) USING rdmacc;
CREATE TABLE chosen (id int PRIMARY KEY, v text) USING rdmacc
  WITH (rdmacc.history = 5, rdmacc.record_size = 128, fillfactor = 70);
SELECT * FROM rdmacc.table_options;
SELECT reloptions FROM pg_class WHERE relname = 'chosen';
INSERT INTO chosen SELECT i, repeat('x', i) FROM generate_series(1, 200) i;

-- Changes keep the rows.
ALTER TABLE chosen SET (rdmacc.history = 7);
ALTER TABLE chosen RESET (rdmacc.record_size);
SELECT options, (SELECT sum(length(v)) FROM chosen) FROM rdmacc.table_options;
SELECT rdmacc.set_option('chosen', 'record_size', '64');
SELECT options, (SELECT sum(length(v)) FROM chosen) FROM rdmacc.table_options;
SELECT rdmacc.set_option('chosen', 'history', NULL);
SELECT options FROM rdmacc.table_options;

-- Options outlive what gives the table a new file.
VACUUM FULL chosen;
ALTER TABLE chosen ALTER v TYPE varchar(500);
TRUNCATE chosen;
INSERT INTO chosen VALUES (1, 'one');
SELECT options, (SELECT string_agg(v, ',') FROM chosen) FROM rdmacc.table_options;

-- Rolled back, nothing has changed.
BEGIN;
ALTER TABLE chosen SET (rdmacc.history = 9);
INSERT INTO chosen VALUES (2, 'two');
ROLLBACK;
SELECT options, (SELECT string_agg(v, ',') FROM chosen) FROM rdmacc.table_options;

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
SELECT * FROM rdmacc.table_options;
