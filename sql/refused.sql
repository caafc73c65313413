-- What rdmacc tables cannot do is refused, with a hint, and leaves nothing behind.
CREATE TABLE t (id int PRIMARY KEY, a int, b text) USING rdmacc;
INSERT INTO t VALUES (1, 1, 'one');

CREATE TEMPORARY TABLE temporary_one (id int) USING rdmacc;

-- indexes
CREATE INDEX second ON t USING brin (a);
CREATE INDEX CONCURRENTLY second ON t USING brin (a);
ALTER TABLE t ADD EXCLUDE USING btree (a WITH =);
CREATE TABLE t2 (id int PRIMARY KEY DEFERRABLE) USING rdmacc;
CREATE TABLE t2 (p point, PRIMARY KEY (p)) USING rdmacc;
CREATE TABLE t2 (v tsvector PRIMARY KEY) USING rdmacc;
CREATE COLLATION caseless (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE t2 (v text COLLATE caseless PRIMARY KEY) USING rdmacc;
CREATE TABLE t2 (id int PRIMARY KEY, v text COLLATE caseless UNIQUE) USING rdmacc;
CREATE TABLE t2 (id int PRIMARY KEY, v tsvector UNIQUE) USING rdmacc;
\d t

-- queries
SELECT * FROM t TABLESAMPLE system (10);
SELECT ctid FROM t;
SELECT * FROM t WHERE ctid = '(0,1)';
DELETE FROM t x USING t y WHERE x.ctid < y.ctid AND x.id = y.id;

-- logical replication
CREATE PUBLICATION news FOR TABLE t;
SET client_min_messages = error;
CREATE PUBLICATION news;
RESET client_min_messages;
ALTER PUBLICATION news ADD TABLE t;
ALTER PUBLICATION news ADD TABLES IN SCHEMA public;
DROP PUBLICATION news;
CREATE PUBLICATION news FOR ALL TABLES;
DROP PUBLICATION news;
CREATE PUBLICATION news FOR TABLES IN SCHEMA CURRENT_SCHEMA;
DROP PUBLICATION news;
CREATE TABLE whole (id int PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE part PARTITION OF whole FOR VALUES FROM (0) TO (10) USING rdmacc;
CREATE PUBLICATION news FOR TABLE ONLY whole;
CREATE TABLE parent (id int PRIMARY KEY) USING heap;
CREATE TABLE child () INHERITS (parent) USING rdmacc;
CREATE PUBLICATION news FOR TABLE parent;
SET client_min_messages = error;
CREATE PUBLICATION news FOR TABLE ONLY parent;
RESET client_min_messages;
ALTER TABLE parent SET ACCESS METHOD rdmacc;
ALTER TABLE whole DETACH PARTITION part;
ALTER PUBLICATION news ADD TABLE whole;
CREATE TABLE part_2 PARTITION OF whole FOR VALUES FROM (10) TO (20) USING rdmacc;
CREATE TABLE part_2 PARTITION OF whole FOR VALUES FROM (10) TO (20) USING heap;
ALTER TABLE part_2 SET ACCESS METHOD rdmacc;
ALTER TABLE whole ATTACH PARTITION part FOR VALUES FROM (0) TO (10);
SELECT tablename FROM pg_publication_tables ORDER BY 1;
DROP PUBLICATION news;
ALTER TABLE whole ATTACH PARTITION part FOR VALUES FROM (0) TO (10);
DROP TABLE whole, parent, child;

-- another name for the access method
CREATE ACCESS METHOD other TYPE TABLE HANDLER rdmacc.tableam_handler;

-- tablespaces
SET allow_in_place_tablespaces = true;
CREATE TABLESPACE elsewhere LOCATION '';
ALTER TABLE t SET TABLESPACE elsewhere;
CREATE TABLE t2 (id int PRIMARY KEY) USING rdmacc TABLESPACE elsewhere;
INSERT INTO t2 VALUES (1);
SELECT * FROM t2 WHERE id = 1;
CREATE ROLE mover;
ALTER TABLE t2 OWNER TO mover;
ALTER INDEX ALL IN TABLESPACE pg_default OWNED BY mover SET TABLESPACE elsewhere;
ALTER INDEX ALL IN TABLESPACE elsewhere OWNED BY mover SET TABLESPACE pg_default;
SELECT * FROM t2 WHERE id = 1;
DROP TABLE t2;
DROP ROLE mover;
DROP TABLESPACE elsewhere;

SELECT * FROM t;
SELECT count(*) FROM pg_class WHERE relname IN ('t2', 'second', 'temporary_one');
DROP TABLE t;
DROP COLLATION caseless;
