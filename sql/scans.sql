-- A scan returns every row once, in no order; a cursor goes back over what it has passed.
CREATE TABLE keyed (id int PRIMARY KEY, v text) USING rdmacc;
CREATE TABLE plain (v int) USING rdmacc;
INSERT INTO keyed SELECT 100 - i, 'row ' || i FROM generate_series(1, 8) i;
INSERT INTO plain SELECT i * 7 % 13 FROM generate_series(1, 12) i;
SELECT * FROM keyed ORDER BY id;
SELECT string_agg(v::text, ' ' ORDER BY v) FROM plain;
UPDATE keyed SET v = 'updated' WHERE id IN (99, 95);
DELETE FROM keyed WHERE id = 97;
INSERT INTO keyed VALUES (97, 'back');
SELECT * FROM keyed ORDER BY id;
SELECT count(*) FROM (SELECT * FROM keyed LIMIT 3) l;
-- rows of this transaction and of others, a savepoint, a cursor in both directions
BEGIN;
INSERT INTO keyed VALUES (1, 'own');
SAVEPOINT one;
UPDATE keyed SET v = 'rolled back';
ROLLBACK TO one;
SELECT * FROM keyed ORDER BY id;
CREATE FUNCTION fetched(direction text) RETURNS int[] LANGUAGE plpgsql AS $$
DECLARE
  c refcursor := 'c';
  id int;
  ids int[];
BEGIN
  FOR i IN 1 .. 20 LOOP
    IF direction = 'forward' THEN FETCH c INTO id; ELSE FETCH PRIOR FROM c INTO id; END IF;
    EXIT WHEN NOT FOUND;
    ids := ids || id;
  END LOOP;
  RETURN ids;
END $$;
DECLARE c SCROLL CURSOR FOR SELECT id FROM keyed;
CREATE TEMP TABLE passed AS SELECT fetched('forward') AS there, fetched('backward') AS back;
SELECT (SELECT array_agg(id ORDER BY id) FROM unnest(there) id) AS all_rows FROM passed;
SELECT back = (SELECT array_agg(id ORDER BY n DESC) FROM unnest(there) WITH ORDINALITY u (id, n)) AS same_way FROM passed;
SELECT fetched('forward') = there AS once_more FROM passed;
ROLLBACK;
-- rewritten, with another key, copied
ALTER TABLE keyed ALTER v TYPE varchar(20);
ALTER TABLE plain ADD PRIMARY KEY (v);
SELECT * FROM keyed ORDER BY id;
SELECT string_agg(v::text, ' ' ORDER BY v) FROM plain;
CREATE TABLE copied USING rdmacc AS SELECT * FROM keyed;
SELECT string_agg(id::text, ' ' ORDER BY id) FROM copied;
-- many, and long ones
CREATE TABLE large (id int, filler text) USING rdmacc;
INSERT INTO large SELECT i, repeat('x', 9000) FROM generate_series(1, 1200) i;
SELECT count(*), count(DISTINCT id), sum(id) FROM large;
SELECT count(*), count(DISTINCT id) FROM (SELECT id FROM large LIMIT 1000) l;
-- a plan's estimates follow what this session has just written
CREATE TABLE small (id int) USING rdmacc;
INSERT INTO small SELECT generate_series(1, 1000);
ANALYZE small;
SELECT relpages, reltuples FROM pg_class WHERE relname = 'small';
VACUUM small;
VACUUM ANALYZE small;
VACUUM small;
SELECT relpages, reltuples FROM pg_class WHERE relname = 'small';
-- and what it has taken away, before others know of it
CREATE FUNCTION estimated_rows(query text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
  EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
  RETURN plan->0->'Plan'->>'Plan Rows';
END $$;
INSERT INTO small SELECT generate_series(1, 50000);
SELECT estimated_rows('SELECT * FROM small') > 50000 AS filled;
BEGIN;
TRUNCATE small;
INSERT INTO small SELECT generate_series(1, 7);
SELECT estimated_rows('SELECT * FROM small') < 5000 AS truncated;
ROLLBACK;
SELECT estimated_rows('SELECT * FROM small') > 50000 AS filled;
TRUNCATE small;
SELECT estimated_rows('SELECT * FROM small') < 5000 AS truncated;
BEGIN;
TRUNCATE small;
INSERT INTO small SELECT generate_series(1, 20000);
COMMIT;
ANALYZE small;
SELECT estimated_rows('SELECT * FROM small') > 15000 AS filled;
SELECT FROM pg_stat_force_next_flush();
SELECT estimated_rows('SELECT * FROM small') > 15000 AS filled;
DROP FUNCTION estimated_rows;
DROP TABLE keyed, plain, copied, large, small;
