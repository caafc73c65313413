-- Rows of a table of up to 256 KB come in the order in which they were written, as PostgreSQL's own
-- tables return them: what was updated comes last.
CREATE TABLE keyed (id int PRIMARY KEY, v text) USING rdmacc;
CREATE TABLE plain (v int) USING rdmacc;
INSERT INTO keyed SELECT 100 - i, 'row ' || i FROM generate_series(1, 8) i;
INSERT INTO plain SELECT i * 7 % 13 FROM generate_series(1, 12) i;
SELECT * FROM keyed;
SELECT string_agg(v::text, ' ') FROM plain;
UPDATE keyed SET v = 'updated' WHERE id IN (99, 95);
DELETE FROM keyed WHERE id = 97;
INSERT INTO keyed VALUES (97, 'back');
SELECT * FROM keyed;
UPDATE keyed SET v = v || '!' WHERE id > 94 RETURNING *;
-- rows of this transaction and of others, a savepoint, a cursor in both directions
BEGIN;
INSERT INTO keyed VALUES (1, 'own');
SAVEPOINT one;
UPDATE keyed SET v = 'rolled back';
ROLLBACK TO one;
SELECT * FROM keyed;
DECLARE c SCROLL CURSOR FOR SELECT id FROM keyed;
FETCH 3 FROM c;
FETCH BACKWARD 2 FROM c;
FETCH ALL FROM c;
FETCH BACKWARD 2 FROM c;
COMMIT;
-- rewritten, with another key, copied
ALTER TABLE keyed ALTER v TYPE varchar(20);
ALTER TABLE plain ADD PRIMARY KEY (v);
SELECT string_agg(id::text, ' ') FROM keyed;
SELECT string_agg(v::text, ' ') FROM plain;
CREATE TABLE copied USING rdmacc AS SELECT * FROM keyed;
SELECT string_agg(id::text, ' ') FROM copied;
-- larger than that: every row comes, once
CREATE TABLE large (id int, filler text) USING rdmacc;
INSERT INTO large SELECT i, repeat('x', 9000) FROM generate_series(1, 25) i;
SELECT bool_and(id > before) FROM (SELECT id, lag(id, 1, 0) OVER () AS before FROM large) rows;
INSERT INTO large SELECT i, repeat('x', 9000) FROM generate_series(26, 1200) i;
SELECT count(*), count(DISTINCT id), sum(id) FROM large;
-- a plan's estimates follow what this session has just written
CREATE TABLE small (id int) USING rdmacc;
INSERT INTO small SELECT generate_series(1, 1000);
ANALYZE small;
SELECT relpages, reltuples FROM pg_class WHERE relname = 'small';
VACUUM small;
VACUUM ANALYZE small;
VACUUM small;
SELECT relpages, reltuples FROM pg_class WHERE relname = 'small';
DROP TABLE keyed, plain, copied, large, small;
