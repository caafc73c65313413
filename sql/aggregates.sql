-- Aggregates over a whole table take its rows as the nodes hold them.
SET rdmacc.ordered_keys = off; -- the primary key offers no other way
CREATE SCHEMA ours;
CREATE SCHEMA heap;
CREATE TABLE ours.m (id int PRIMARY KEY, s smallint, i int, l bigint, n numeric, f float8, d date, b bool, w text) USING rdmacc;
CREATE TABLE heap.m (id int PRIMARY KEY, s smallint, i int, l bigint, n numeric, f float8, d date, b bool, w text);
INSERT INTO heap.m SELECT x, x % 7, CASE WHEN x % 5 > 0 THEN x * 100003 END, 9223372036854775807 - x % 3, x / 8.0,
                          x, '2000-01-01'::date + x % 999, x % 2 = 0, CASE WHEN x % 3 > 0 THEN repeat('w', x % 90) END
  FROM generate_series(1, 3000) x;
INSERT INTO ours.m SELECT * FROM heap.m;
ANALYZE ours.m, heap.m;
SET search_path = ours, public;
SET jit = off;

EXPLAIN (COSTS OFF) SELECT count(*) FROM m;
EXPLAIN (COSTS OFF) SELECT count(w), sum(l), min(d), max(i), avg(n) FILTER (WHERE b), bool_and(b) FROM m WHERE s < 3 AND w LIKE 'w%' HAVING count(*) > 1;
EXPLAIN (COSTS OFF, VERBOSE) SELECT sum(i + s) + 1 AS total FROM m WHERE id > 5;
EXPLAIN (COSTS OFF, ANALYZE, TIMING OFF, SUMMARY OFF) SELECT count(*) FROM m WHERE s = 3;
EXPLAIN (COSTS OFF, FORMAT json) SELECT count(*) FROM m WHERE s = 3;
EXPLAIN (COSTS OFF) SELECT (SELECT count(*) FROM m WHERE m.s = x) FROM generate_series(1, 2) x;
-- whatever the aggregate; an index knows its ends
EXPLAIN (COSTS OFF) SELECT sum(f) FROM m;
EXPLAIN (COSTS OFF) SELECT array_agg(id), count(*) FROM m;
EXPLAIN (COSTS OFF) SELECT min(n) FROM m;
EXPLAIN (COSTS OFF) SELECT s, count(*) FROM m GROUP BY s;
EXPLAIN (COSTS OFF) SELECT count(*) FROM m WHERE id = 3;
CREATE INDEX ON m (d);
EXPLAIN (COSTS OFF) SELECT max(d) FROM m;
EXPLAIN (COSTS OFF) SELECT sum(i) FROM m WHERE d = '2001-01-01';
DROP INDEX m_d_idx;

-- the same answers as from PostgreSQL's own tables
CREATE PROCEDURE same(query text) LANGUAGE plpgsql AS $$
DECLARE of_ours text; of_heap text;
BEGIN
  query := 'SELECT string_agg(x::text, ''|'') FROM (' || query || ') x';
  SET LOCAL search_path = ours, public;
  EXECUTE query INTO of_ours;
  SET LOCAL search_path = heap, public;
  EXECUTE query INTO of_heap;
  SET LOCAL search_path = ours, public;
  IF of_ours IS DISTINCT FROM of_heap OR of_ours IS NULL THEN
    RAISE WARNING '%, not %: %', of_ours, of_heap, query;
  END IF;
END $$;
CREATE FUNCTION condition() RETURNS text LANGUAGE sql VOLATILE AS $$
  SELECT CASE (random() * 9)::int
    WHEN 0 THEN 'true'
    WHEN 1 THEN 's = ' || (random() * 8)::int
    WHEN 2 THEN 'i > ' || (random() * 3e8)::int
    WHEN 3 THEN 'l < 9223372036854775806'
    WHEN 4 THEN 'n BETWEEN ' || (random() * 400)::int || ' AND ' || (random() * 400)::int
    WHEN 5 THEN 'w IS NULL'
    WHEN 6 THEN 'b AND d > ''2001-01-01'''
    WHEN 7 THEN 'i IS NULL OR s IN (1, 2)'
    WHEN 8 THEN 'id = ' || (random() * 3000)::int
    ELSE 'length(w) > ' || (random() * 90)::int END $$;
CREATE PROCEDURE same_answers(rounds int) LANGUAGE plpgsql AS $$
BEGIN
  FOR round IN 1 .. rounds LOOP
    CALL same('SELECT count(*), count(w), count(DISTINCT s), sum(s), sum(i), sum(l), sum(n), avg(s), avg(i), avg(l), avg(n), '
              'min(s), min(i), min(l), min(d), max(s), max(i), max(l), max(d), bool_and(b), bool_or(b), every(b), '
              'sum(i) FILTER (WHERE ' || condition() || '), sum(length(w) * s) FROM m WHERE ' || condition()
              || ' AND (' || condition() || ')');
  END LOOP;
END $$;
CALL same_answers(60);
CALL same('SELECT x, (SELECT sum(l) FROM m WHERE m.s = x AND m.id > x * 100) FROM generate_series(0, 8) x');
CALL same('SELECT s, c FROM (SELECT s, i FROM m WHERE id < 20) o, LATERAL (SELECT count(*) c FROM m WHERE m.i > o.i) l ORDER BY 1, 2');
CALL same('SELECT 1 AS one WHERE EXISTS (SELECT count(*) FROM m HAVING count(*) = 3000)');
SELECT count(*), count(i), sum(i), sum(l), min(i), max(l), avg(n) FROM m WHERE id < 0;
SELECT pg_typeof(sum(s)), pg_typeof(sum(i)), pg_typeof(sum(l)), pg_typeof(avg(i)), pg_typeof(min(s)) FROM m;
SELECT sum(l * 2) FROM m;

-- own writes, as far as a statement may see them
BEGIN;
INSERT INTO m (id, i) VALUES (0, 1), (5000, -77), (5001, 5);
INSERT INTO heap.m (id, i) VALUES (0, 1), (5000, -77), (5001, 5);
DELETE FROM m WHERE id % 10 = 3;
DELETE FROM heap.m WHERE id % 10 = 3;
UPDATE m SET i = id, w = 'own' WHERE s = 2;
UPDATE heap.m SET i = id, w = 'own' WHERE s = 2;
CALL same_answers(20);
SAVEPOINT s;
DELETE FROM m WHERE id > 100;
SELECT count(*), sum(i) FROM m;
ROLLBACK TO s;
CALL same_answers(5);
DECLARE c CURSOR FOR SELECT count(*), max(id) FROM m;
INSERT INTO m (id) VALUES (6000);
FETCH c;
SELECT count(*), max(id) FROM m;
INSERT INTO m (id) SELECT 7000 + count(*) FROM m RETURNING id;
ROLLBACK;
-- under every protocol; rows that are older than a column, none at all, and long ones
CREATE PROCEDURE under(protocol text) LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('rdmacc.protocol', protocol, false);
  COMMIT;
  TRUNCATE heap.m;
  INSERT INTO heap.m SELECT * FROM m;
  COMMIT;
  CALL same_answers(3);
  COMMIT;
END $$;
CALL under('nowait');
CALL under('waitdie');
CALL under('woundwait');
CALL under('mvcc');
CALL under('sundial');
CALL under('tictoc');
CALL under('maat');
CALL under('timestamp');
CALL under('cicada');
CALL under('drtm');
SET rdmacc.protocol = 'occ';
SET rdmacc.stages = 'rpc';
CALL same_answers(3);
RESET rdmacc.stages;
ALTER TABLE m ADD COLUMN late int DEFAULT 4, DROP COLUMN f;
SELECT count(late), sum(late), count(DISTINCT xmin::text) > 0 AS versions, count(DISTINCT tableoid), count(m) FROM m;
INSERT INTO m (id, w) SELECT 4000 + x, repeat('long', 1000 * x) FROM generate_series(1, 40) x;
SELECT count(*), sum(length(w)) FROM m WHERE id > 4000;
-- columns that nobody wants are left behind: those after the last that is wanted, if all before it
-- have fixed widths
CREATE TABLE doc (id int PRIMARY KEY, kind smallint, gone bigint, size bigint, flag bool, body text, after int) USING rdmacc;
CREATE TABLE heap.doc (LIKE doc);
INSERT INTO heap.doc SELECT x, nullif(x % 5, 0), x, CASE WHEN x % 3 > 0 THEN x * 1000 END, nullif(x % 2, 0) = 1,
                            repeat(chr(97 + x % 26), x * 40), x % 11 FROM generate_series(1, 300) x;
INSERT INTO doc SELECT * FROM heap.doc;
CREATE PROCEDURE same_docs() LANGUAGE plpgsql AS $$
BEGIN
  CALL same('SELECT count(*) FROM doc');
  CALL same('SELECT count(*) FROM doc WHERE kind = 3');
  CALL same('SELECT count(size), sum(size), max(id), min(kind), bool_and(flag) FROM doc WHERE kind IS NULL OR kind < 3');
  CALL same('SELECT sum(length(body)), sum(after) FROM doc WHERE flag');
  CALL same('SELECT count(doc), count(flag) FROM doc WHERE id > 20');
END $$;
CALL same_docs();
SET rdmacc.stages = 'rpc';
CALL same_docs();
ALTER TABLE doc DROP COLUMN gone, ADD COLUMN more int DEFAULT 3;
ALTER TABLE heap.doc DROP COLUMN gone, ADD COLUMN more int DEFAULT 3;
CALL same_docs();
BEGIN;
UPDATE doc SET kind = 3, body = 'short' WHERE id % 7 = 0;
UPDATE heap.doc SET kind = 3, body = 'short' WHERE id % 7 = 0;
DELETE FROM doc WHERE id > 250;
DELETE FROM heap.doc WHERE id > 250;
CALL same_docs();
CALL same('SELECT sum(more), sum(kind) FROM doc');
COMMIT;
RESET rdmacc.stages;
CALL same_docs();
CREATE TABLE bare () USING rdmacc;
SELECT count(*) FROM bare;
INSERT INTO bare DEFAULT VALUES;
SELECT count(*) FROM bare;
-- whoever may not see rows does not count them
CREATE ROLE rdmacc_counter;
GRANT USAGE ON SCHEMA ours TO rdmacc_counter;
GRANT SELECT ON m TO rdmacc_counter;
ALTER TABLE m ENABLE ROW LEVEL SECURITY;
CREATE POLICY few ON m FOR SELECT USING (s = 1);
SET ROLE rdmacc_counter;
EXPLAIN (COSTS OFF) SELECT count(*) FROM m WHERE b;
SELECT count(*) FROM m WHERE b;
RESET ROLE;
SET client_min_messages = warning;
DROP SCHEMA ours, heap CASCADE;
DROP ROLE rdmacc_counter;
