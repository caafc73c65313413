-- Row identifiers through parents of rdmacc tables, and what one transaction must not mix.
CREATE TABLE p (id int PRIMARY KEY, v text) PARTITION BY RANGE (id);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10) USING rdmacc;
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (20) USING rdmacc;
INSERT INTO p VALUES (1, 'one'), (11, 'eleven');
SELECT * FROM p WHERE ctid = '(0,1)';
SELECT ctid FROM p;
DELETE FROM p WHERE ctid = '(0,1)';
CREATE TABLE above (id int) USING heap;
CREATE TABLE below () INHERITS (above) USING rdmacc;
SELECT ctid FROM above;
SELECT ctid FROM ONLY above;
CREATE VIEW on_p AS SELECT * FROM p;
-- without naming them, rows are found and written all the same
BEGIN;
SELECT * FROM p ORDER BY id FOR UPDATE;
UPDATE p SET v = v || '!';
UPDATE on_p SET v = v || '!' WHERE id = 1;
UPDATE p SET id = 12 WHERE id = 1;
DECLARE c CURSOR FOR SELECT * FROM p WHERE v LIKE 'eleven%' FOR UPDATE;
FETCH c;
UPDATE p SET v = 'current' WHERE CURRENT OF c;
DELETE FROM p WHERE id = 12;
COMMIT;
SELECT * FROM p;
-- a parent of other tables only
CREATE TABLE h (id int) PARTITION BY RANGE (id);
CREATE TABLE h1 PARTITION OF h FOR VALUES FROM (0) TO (10) USING heap;
INSERT INTO h VALUES (1);
SELECT ctid FROM h;


-- a TID is of the table that gave it out
INSERT INTO p VALUES (1, 'one');
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM p1;
FETCH c;
SELECT currtid2('p1', '(0,1)');
SELECT currtid2('p2', '(0,1)');
COMMIT;

-- writes of other tables by rules
SET rdmacc.mixed_transactions = off;
CREATE TABLE r (id int PRIMARY KEY) USING rdmacc;
CREATE TABLE log (id int) USING heap;
CREATE RULE also AS ON INSERT TO r DO ALSO INSERT INTO log VALUES (new.id);
INSERT INTO r VALUES (1);
SELECT * FROM r, log;

-- a snapshot of another session says nothing of rdmacc rows
CREATE EXTENSION dblink;
SELECT dblink_connect('other', format('dbname=%s host=%s port=%s user=postgres', current_database(),
  current_setting('unix_socket_directories'), current_setting('port')));
BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ;
SELECT pg_export_snapshot() AS snapshot \gset
SELECT dblink_exec('other', 'BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ');
SELECT dblink_exec('other', format('SET TRANSACTION SNAPSHOT %L', :'snapshot'));
SELECT * FROM dblink('other', 'SELECT id FROM h') AS (id int);
SELECT * FROM dblink('other', 'SELECT id FROM r') AS (id int);
COMMIT;
SELECT dblink_exec('other', 'ROLLBACK');
SELECT * FROM dblink('other', 'SELECT count(*) FROM r') AS (rows int);
SELECT dblink_disconnect('other');

DROP VIEW on_p;
DROP TABLE p, above, below, h, r, log;
DROP EXTENSION dblink;
