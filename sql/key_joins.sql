-- Nested loops that look up the keys of many outer rows at a time.
CREATE SCHEMA ours;
CREATE SCHEMA heap;
CREATE TABLE ours.item (id int PRIMARY KEY, v int, w text) USING rdmacc;
CREATE TABLE ours.pair (a bigint, b text, n int, PRIMARY KEY (a, b)) USING rdmacc;
CREATE TABLE ours.line (no int PRIMARY KEY, item int, a int, b text, q int) USING rdmacc;
CREATE TABLE heap.item (id int PRIMARY KEY, v int, w text);
CREATE TABLE heap.pair (a bigint, b text, n int, PRIMARY KEY (a, b));
CREATE TABLE heap.line (no int PRIMARY KEY, item int, a int, b text, q int);
INSERT INTO heap.item SELECT i, i * 7 % 100, 'item ' || i FROM generate_series(1, 2000) i;
INSERT INTO heap.pair SELECT i % 50, 'b' || i / 50, i FROM generate_series(0, 999) i;
INSERT INTO heap.line SELECT i, CASE WHEN i % 9 > 0 THEN i * 37 % 2200 END, i * 11 % 60,
                             CASE WHEN i % 7 > 0 THEN 'b' || i % 25 END, i % 10
  FROM generate_series(1, 700) i;
INSERT INTO ours.item SELECT * FROM heap.item;
INSERT INTO ours.pair SELECT * FROM heap.pair;
INSERT INTO ours.line SELECT * FROM heap.line;
ANALYZE ours.item, ours.pair, ours.line, heap.item, heap.pair, heap.line;
SET search_path = ours, public;
SET jit = off;
SET enable_memoize = off; -- the same keys come again and again

-- chosen where the outer side is small against the table
EXPLAIN (COSTS OFF) SELECT * FROM line JOIN item ON item.id = line.item WHERE line.no < 300;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
EXPLAIN (COSTS OFF) SELECT * FROM line l LEFT JOIN item i ON i.id = l.item AND i.v > l.q WHERE l.q <> 3;
EXPLAIN (COSTS OFF) SELECT * FROM line l JOIN pair p ON p.a = l.a AND p.b = l.b;
EXPLAIN (COSTS OFF) SELECT * FROM line l WHERE NOT EXISTS (SELECT FROM item i WHERE i.id = l.item);
EXPLAIN (COSTS OFF) SELECT * FROM line l WHERE EXISTS (SELECT FROM item i WHERE i.id = l.item AND i.v < l.q);
EXPLAIN (COSTS OFF) SELECT * FROM item WHERE id IN (SELECT item FROM line WHERE q = 1);
EXPLAIN (COSTS OFF) SELECT * FROM line l JOIN pair p ON p.a = l.a AND p.b = 'b3';
EXPLAIN (COSTS OFF) SELECT * FROM line l JOIN item i ON i.id = l.item JOIN item j ON j.id = i.v + l.q;
EXPLAIN (COSTS OFF) UPDATE item SET v = v + 1 FROM line l WHERE l.item = item.id AND l.q = 1;
-- one row needs no batch, and what does not wait none either; arrays are batches already
EXPLAIN (COSTS OFF) SELECT * FROM line l JOIN item i ON i.id = l.item WHERE l.no = 3;
EXPLAIN (COSTS OFF) SELECT i.id FROM line l JOIN item i ON i.id = l.item WHERE l.q = 1 FOR UPDATE OF i SKIP LOCKED;
EXPLAIN (COSTS OFF) SELECT l.no FROM line l JOIN item i ON i.id = ANY (ARRAY[l.item, l.a]);

-- batches grow, and a LIMIT ends them
CREATE FUNCTION counts(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE said text;
BEGIN
  FOR said IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
    IF said ~ 'Prefetch|Lookup|Batches' THEN RETURN NEXT said; END IF;
  END LOOP;
END $$;
SELECT counts('SELECT * FROM line l JOIN item i ON i.id = l.item');
SELECT counts('SELECT * FROM line l LEFT JOIN item i ON i.id = l.item WHERE l.item <= 2000 LIMIT 1');
SELECT counts('SELECT * FROM (SELECT * FROM line ORDER BY no) l LEFT JOIN item i ON i.id = l.no LIMIT 5');
SELECT counts('SELECT * FROM line l JOIN item i ON i.id = l.item WHERE l.item IS NULL');
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, FORMAT json) SELECT i.w FROM line l JOIN item i ON i.id = l.item;
EXPLAIN (COSTS OFF, FORMAT yaml) SELECT i.n FROM line l JOIN pair i ON (i.a, i.b) = (l.a, l.b);
EXPLAIN (COSTS OFF, FORMAT xml) SELECT i.w FROM line l JOIN item i ON i.id = l.item + l.a;
EXPLAIN (COSTS OFF, VERBOSE) SELECT i.w FROM line l JOIN item i ON i.id = l.item;
-- rows keep the outer side's order
SELECT l.no, i.v FROM (SELECT * FROM line ORDER BY q DESC, no LIMIT 6) l LEFT JOIN item i ON i.id = l.item;

-- the same answers as from PostgreSQL's own tables
CREATE PROCEDURE same(query text) LANGUAGE plpgsql AS $$
DECLARE of_ours text; of_heap text; rows_ours int; rows_heap int;
BEGIN
  query := 'SELECT count(*), md5(string_agg(x::text, ''|'' ORDER BY x::text)) FROM (' || query || ') x';
  SET LOCAL search_path = ours, public;
  EXECUTE query INTO rows_ours, of_ours;
  SET LOCAL search_path = heap, public;
  EXECUTE query INTO rows_heap, of_heap;
  SET LOCAL search_path = ours, public;
  IF of_ours IS DISTINCT FROM of_heap OR rows_ours = 0 THEN
    RAISE WARNING '% rows, not %: %', rows_ours, rows_heap, query;
  END IF;
END $$;
CALL same('SELECT * FROM line l JOIN item i ON i.id = l.item');
CALL same('SELECT * FROM line l LEFT JOIN item i ON i.id = l.item AND i.v > l.q * 10');
CALL same('SELECT * FROM line l LEFT JOIN item i ON i.id = l.item WHERE i.id IS NULL OR i.v = 4');
CALL same('SELECT * FROM line l JOIN pair p ON p.a = l.a AND p.b = l.b AND p.n % 2 = l.q % 2');
CALL same('SELECT * FROM line l WHERE EXISTS (SELECT FROM pair p WHERE (p.a, p.b) = (l.a, l.b) AND p.n > l.no)');
CALL same('SELECT * FROM line l WHERE NOT EXISTS (SELECT FROM item i WHERE i.id = l.item)');
CALL same('SELECT * FROM item WHERE id IN (SELECT item FROM line WHERE q < 4)');
CALL same('SELECT * FROM item WHERE id NOT IN (SELECT coalesce(item, 0) FROM line WHERE q < 4)');
CALL same('SELECT l.no, i.v, j.w FROM line l JOIN item i ON i.id = l.item LEFT JOIN item j ON j.id = i.v + l.q');
CALL same('SELECT x, s.* FROM generate_series(0, 60) x, LATERAL (SELECT p.n, i.w FROM pair p JOIN item i ON i.id = p.n + x WHERE p.a = x) s');
CALL same('SELECT x, s.* FROM generate_series(1, 9) x LEFT JOIN LATERAL (SELECT i.* FROM line l JOIN item i ON i.id = l.item WHERE l.q = x ORDER BY i.v, i.id LIMIT x) s ON true');
CALL same('SELECT no, (SELECT sum(i.v) FROM line m JOIN item i ON i.id = m.item WHERE m.q = l.q AND m.no < l.no) FROM line l WHERE no < 99');
CALL same('WITH RECURSIVE r (id, depth) AS (VALUES (5, 0), (9, 0) UNION SELECT i.v, depth + 1 FROM r JOIN item i ON i.id = r.id + 1 WHERE depth < 8) SELECT * FROM r');
CALL same('SELECT l, i FROM line l JOIN item i ON i.id = l.item');
CALL same('SELECT count(*), sum(g) FROM (SELECT i.v, count(*) g FROM line l JOIN item i ON i.id = l.item GROUP BY i.v) s JOIN item j ON j.id = s.v');
CALL same('SELECT * FROM (SELECT item, max(q) q FROM line GROUP BY item) l FULL JOIN (SELECT * FROM pair WHERE n < 30) p ON p.a = l.item LEFT JOIN item i ON i.id = coalesce(l.item, p.n)');
CALL same('SELECT * FROM line l LEFT JOIN (SELECT id, coalesce(v, -1) AS v, 1 AS one FROM item) i ON i.id = l.item LEFT JOIN pair p ON p.a = i.v AND p.b = l.b');

-- writes of the own transaction are seen as by any other statement
CREATE PROCEDURE write_both(statement text) LANGUAGE plpgsql AS $$
DECLARE of_ours int; of_heap int;
BEGIN
  SET LOCAL search_path = ours, public;
  EXECUTE statement;
  GET DIAGNOSTICS of_ours = ROW_COUNT;
  SET LOCAL search_path = heap, public;
  EXECUTE statement;
  GET DIAGNOSTICS of_heap = ROW_COUNT;
  SET LOCAL search_path = ours, public;
  IF of_ours <> of_heap OR of_ours = 0 THEN
    RAISE WARNING '% rows, not %: %', of_ours, of_heap, statement;
  END IF;
END $$;
BEGIN;
CALL write_both('UPDATE item SET v = v + l.q FROM line l WHERE l.item = item.id AND l.q < 5 AND l.no = (SELECT min(no) FROM line m WHERE m.item = l.item)');
CALL write_both('DELETE FROM item USING line l WHERE l.item = item.id AND l.q = 6');
CALL write_both('INSERT INTO item SELECT DISTINCT ON (l.item) l.item, l.q, ''new'' FROM line l LEFT JOIN item i ON i.id = l.item WHERE i.id IS NULL AND l.item IS NOT NULL ORDER BY l.item, l.q');
CALL same('SELECT * FROM line l LEFT JOIN item i ON i.id = l.item');
CALL write_both('MERGE INTO item USING (SELECT item, min(q) q FROM line WHERE item IS NOT NULL GROUP BY item) l ON item.id = l.item WHEN MATCHED AND l.q = 2 THEN DELETE WHEN MATCHED THEN UPDATE SET v = l.q WHEN NOT MATCHED THEN INSERT VALUES (l.item, l.q, ''merged'')');
CALL write_both('UPDATE item SET id = id + 10000 FROM line l WHERE l.item = item.id AND l.no < 200 AND l.no = (SELECT min(no) FROM line m WHERE m.item = l.item)');
CALL same('SELECT * FROM line l JOIN item i ON i.id IN (l.item, l.item + 10000)');
CALL same('SELECT * FROM line l LEFT JOIN item i ON i.id = l.item');
SAVEPOINT s;
CALL write_both('DELETE FROM item WHERE v < 50');
CALL same('SELECT * FROM line l LEFT JOIN item i ON i.id = l.item');
ROLLBACK TO s;
CALL same('SELECT * FROM line l LEFT JOIN item i ON i.id = l.item');
COMMIT;
CALL same('SELECT * FROM item');

-- a cursor shows what was there when it was declared; one that scrolls goes back
BEGIN;
DECLARE c CURSOR FOR SELECT l.no, i.w FROM (SELECT * FROM line WHERE no > 690 ORDER BY no) l LEFT JOIN item i ON i.id = l.no;
FETCH 2 FROM c;
SAVEPOINT s;
FETCH 2 FROM c;
ROLLBACK TO s;
UPDATE item SET w = 'changed' WHERE id > 690;
FETCH 3 FROM c;
DECLARE d SCROLL CURSOR FOR SELECT l.no, i.w FROM (SELECT * FROM line WHERE no > 690 ORDER BY no) l LEFT JOIN item i ON i.id = l.no;
FETCH 3 FROM d;
FETCH BACKWARD 2 FROM d;
ROLLBACK;
-- rows of both sides are locked
BEGIN;
SELECT l.no, i.v IS NOT NULL AS there FROM line l JOIN item i ON i.id = l.no WHERE l.no BETWEEN 4 AND 6 ORDER BY l.no FOR UPDATE;
WITH u AS (UPDATE item SET v = -1 FROM line l WHERE l.no = item.id AND l.no BETWEEN 4 AND 6 RETURNING item.id, item.v, l.q) SELECT * FROM u ORDER BY id;
COMMIT;

-- keys as parameters, prepared and generic
PREPARE p (int) AS SELECT count(*), sum(p.n) FROM line l JOIN pair p ON p.a = l.a AND p.b = 'b' || $1;
SET plan_cache_mode = force_generic_plan;
EXECUTE p (3);
EXECUTE p (NULL);
EXECUTE p (4);
RESET plan_cache_mode;
-- keys whose beginning says on which node the row is
ALTER TABLE pair SET (rdmacc.partition_by = 1);
CALL same('SELECT * FROM line l LEFT JOIN pair p ON p.a = l.a AND p.b = l.b');
CALL same('SELECT * FROM line l JOIN pair p ON p.a = l.a AND p.b = l.b AND p.n % 2 = l.q % 2');
-- partitions, each joined with its own
SET enable_partitionwise_join = on;
CREATE TABLE part (id int PRIMARY KEY, v int) PARTITION BY RANGE (id);
CREATE TABLE part_1 PARTITION OF part FOR VALUES FROM (0) TO (50) USING rdmacc;
CREATE TABLE part_2 PARTITION OF part FOR VALUES FROM (50) TO (100) USING rdmacc;
INSERT INTO part SELECT i, i * 3 % 100 FROM generate_series(0, 99) i;
ANALYZE part;
EXPLAIN (COSTS OFF) SELECT count(*), sum(y.v - x.v) FROM part x JOIN part y USING (id) WHERE x.v < 50;
SELECT count(*), sum(y.v - x.v) FROM part x JOIN part y USING (id) WHERE x.v < 50;
SELECT count(*), sum(y.v - x.v) FROM part x JOIN part y ON y.id = x.v WHERE x.v < 50;
SET client_min_messages = warning;
DROP SCHEMA ours, heap CASCADE;
