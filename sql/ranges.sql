-- Rows of a range by an index that are only read: they are passed by, and not kept by the transaction.
CREATE TABLE ranged (id int PRIMARY KEY, n int, t text) USING rdmacc;
CREATE INDEX ranged_n ON ranged (n);
INSERT INTO ranged SELECT i, i % 100, 'row ' || i FROM generate_series(1, 1000) i;
ANALYZE ranged;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT count(*), sum(n) FROM ranged WHERE id BETWEEN 101 AND 400;
SELECT count(*), sum(n), min(t), max(t) FROM ranged WHERE id BETWEEN 101 AND 400;
SELECT count(*), sum(id) FROM ranged WHERE n BETWEEN 10 AND 29;
SELECT count(*), sum(id) FROM ranged WHERE n = 5;
SELECT id, t FROM ranged WHERE id > 990 ORDER BY id DESC LIMIT 3;
SELECT id, t FROM ranged ORDER BY id OFFSET 700 LIMIT 2;
-- By a bitmap, again and again within one statement, and of a row that is in several ranges.
SET enable_bitmapscan = on;
SET enable_indexscan = off;
SELECT count(*), sum(id), min(t) FROM ranged WHERE n BETWEEN 10 AND 29 OR id < 50;
SELECT sum((SELECT count(*) FROM ranged s WHERE s.n BETWEEN o.n AND o.n + 3)) FROM ranged o WHERE o.id <= 30;
SET enable_indexscan = on;
SET enable_bitmapscan = off;
SELECT sum((SELECT sum(s.id) FROM ranged s WHERE s.n BETWEEN o.n AND o.n + 3)) FROM ranged o WHERE o.id <= 30;
SELECT count(*) FROM ranged a JOIN ranged b ON b.id BETWEEN a.id AND a.id + 20 WHERE a.id BETWEEN 1 AND 50;
-- Own writes, before and after they are undone; the range before keeps nothing from being written.
BEGIN;
SELECT count(*), sum(n) FROM ranged WHERE id BETWEEN 1 AND 300;
UPDATE ranged SET n = n + 1000, t = t || '!' WHERE id BETWEEN 101 AND 200;
DELETE FROM ranged WHERE id BETWEEN 250 AND 259;
INSERT INTO ranged VALUES (0, 7, 'new');
SELECT count(*), sum(n), count(*) FILTER (WHERE t LIKE '%!') FROM ranged WHERE id BETWEEN 0 AND 300;
SELECT count(*), sum(id) FROM ranged WHERE n BETWEEN 1000 AND 1050;
SAVEPOINT s;
DELETE FROM ranged WHERE id < 150;
SELECT count(*), min(id) FROM ranged WHERE id < 300;
ROLLBACK TO s;
SELECT count(*), min(id) FROM ranged WHERE id < 300;
SELECT id, n, t FROM ranged WHERE id = 150 FOR UPDATE;
SELECT count(*), sum(n) FROM ranged WHERE id BETWEEN 140 AND 160;
COMMIT;
SELECT count(*), sum(n), count(*) FILTER (WHERE t LIKE '%!') FROM ranged WHERE id BETWEEN 0 AND 300;
-- A function that the statement calls writes what the range has still to come to.
CREATE FUNCTION change(i int) RETURNS int LANGUAGE plpgsql AS
  $$ BEGIN UPDATE ranged SET n = -1 WHERE id = i + 100; RETURN 0; END $$;
SELECT sum(n + change(id)) FROM ranged WHERE id BETWEEN 501 AND 700;
SELECT count(*) FROM ranged WHERE n = -1 AND id BETWEEN 501 AND 900;
-- Cursors go back and forth, are written through, and outlive savepoints.
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id, t FROM ranged WHERE id BETWEEN 301 AND 500 ORDER BY id;
FETCH 3 FROM c;
MOVE 100 FROM c;
FETCH 2 FROM c;
FETCH BACKWARD 2 FROM c;
FETCH ABSOLUTE 200 FROM c;
FETCH BACKWARD 1 FROM c;
COMMIT;
BEGIN;
DECLARE c CURSOR FOR SELECT id, t FROM ranged WHERE id BETWEEN 301 AND 500;
MOVE 40 FROM c;
FETCH 1 FROM c;
UPDATE ranged SET t = 'by the cursor' WHERE CURRENT OF c;
SAVEPOINT s;
FETCH 1 FROM c;
DELETE FROM ranged WHERE CURRENT OF c;
ROLLBACK TO s;
FETCH 1 FROM c;
DELETE FROM ranged WHERE CURRENT OF c;
SELECT id, t FROM ranged WHERE id BETWEEN 340 AND 344;
COMMIT;
-- The row's system columns, and the whole row.
SELECT tableoid::regclass, id FROM ranged WHERE id BETWEEN 341 AND 343;
SELECT count(*), count(DISTINCT r::text) FROM ranged r WHERE id BETWEEN 501 AND 900;
-- Long rows.
CREATE TABLE long_rows (id int PRIMARY KEY, t text) USING rdmacc;
INSERT INTO long_rows SELECT i, repeat(i::text, 1 + 2000 * (i % 3)) FROM generate_series(1, 60) i;
SELECT count(*), sum(length(t)), min(left(t, 2)) FROM long_rows WHERE id BETWEEN 5 AND 55;
-- Tables with triggers, whose rows' names are kept longer.
CREATE TABLE children (id int PRIMARY KEY, parent int REFERENCES ranged ON DELETE CASCADE) USING rdmacc;
CREATE INDEX ON children (parent);
INSERT INTO children SELECT i, 501 + i / 10 FROM generate_series(1, 990) i;
SELECT count(*), sum(parent) FROM children WHERE parent BETWEEN 510 AND 590;
SELECT count(*), sum(r.id) FROM ranged r WHERE id BETWEEN 501 AND 600;
BEGIN;
DECLARE c CURSOR FOR SELECT id, t FROM ranged WHERE id BETWEEN 601 AND 900;
MOVE 30 FROM c;
FETCH 1 FROM c;
UPDATE ranged SET t = 'through a trigger''s table' WHERE CURRENT OF c;
MOVE 100 FROM c;
FETCH 1 FROM c;
DELETE FROM ranged WHERE CURRENT OF c;
MOVE ALL FROM c;
COMMIT;
SELECT count(*), count(*) FILTER (WHERE t LIKE 'through%') FROM ranged WHERE id BETWEEN 601 AND 900;
DELETE FROM ranged WHERE id BETWEEN 520 AND 529;
SELECT count(*), sum(parent) FROM children WHERE parent BETWEEN 510 AND 590;
-- Every protocol.
SET rdmacc.protocol = 'nowait';
SELECT count(*), sum(id) FROM ranged WHERE id BETWEEN 1 AND 900;
SET rdmacc.protocol = 'mvcc';
SELECT count(*), sum(id) FROM ranged WHERE id BETWEEN 1 AND 900;
SET rdmacc.protocol = 'sundial';
SELECT count(*), sum(id) FROM ranged WHERE id BETWEEN 1 AND 900;
SET rdmacc.protocol = 'occ';
SET rdmacc.stages = 'read=rpc';
SELECT count(*), sum(id) FROM ranged WHERE id BETWEEN 1 AND 900;
RESET rdmacc.stages;
RESET rdmacc.protocol;
DROP TABLE children, long_rows, ranged;
DROP FUNCTION change;
