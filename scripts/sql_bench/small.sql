-- group: anything else
-- rows: 10
-- target: 0.33
-- Whatever else a table can do, on tables of a tenth of --rows. a has indexes on n and t; b refers to a by
-- ids that do not repeat; w is what is written.
-- setup: DROP TABLE IF EXISTS a, b, w, log, made, parent, child CASCADE;
-- setup: CREATE :TABLE a (id int PRIMARY KEY, part int, n int, t text COLLATE "C", at timestamp, j jsonb, x numeric);
-- setup: INSERT INTO a SELECT i, i % 100, (i * 7919::bigint % :rows)::int, 'text ' || i, timestamp '2020-01-01' + i * interval '1 minute', jsonb_build_object('k', i % 10, 'v', i), i / 4.0 FROM generate_series(1, :rows) i;
-- setup: CREATE INDEX a_n ON a (n);
-- setup: CREATE INDEX a_t ON a (t);
-- setup: CREATE :TABLE b (id int PRIMARY KEY, a_id int, v int);
-- setup: INSERT INTO b SELECT i, (i * 104729::bigint % :rows)::int, i % 1000 FROM generate_series(1, :rows) i;
-- setup: CREATE INDEX b_a ON b (a_id);
-- setup: CREATE :TABLE w (id int PRIMARY KEY, n int, t text);
-- setup: INSERT INTO w SELECT i, i % 1000, 'text ' || i FROM generate_series(1, :rows) i;
-- setup: CREATE INDEX w_n ON w (n);
-- setup: CREATE :TABLE log (id int PRIMARY KEY, n int, t text);
-- setup: CREATE :TABLE parent (id int PRIMARY KEY);
-- setup: INSERT INTO parent SELECT generate_series(1, 1000);
-- setup: CREATE :TABLE child (id int PRIMARY KEY, parent_id int REFERENCES parent);
-- setup: VACUUM ANALYZE a, b, w, parent;
-- setup: CHECKPOINT;

-- line: count(*)
SELECT count(*) FROM a;
-- line: count(*) with a condition
SELECT count(*) FROM a WHERE x > 100 AND part < 50;
-- line: avg, stddev, variance
SELECT round(avg(n), 2), round(stddev(n), 2), round(variance(part), 2) FROM a;
-- line: min, max of an indexed column
SELECT min(n), max(n) FROM a;
-- line: min, max of the primary key
SELECT min(id), max(id) FROM a;
-- line: min, max of a column without an index
SELECT min(x), max(at) FROM a;
-- line: GROUP BY, 100 groups
SELECT part, count(*), max(x) FROM a GROUP BY part;
-- line: GROUP BY, as many groups as rows
SELECT count(*) FROM (SELECT n, count(*) FROM a GROUP BY n) g;
-- line: GROUP BY ROLLUP
SELECT part, j -> 'k', count(*) FROM a GROUP BY ROLLUP (part, j -> 'k');
-- line: HAVING
SELECT part FROM a GROUP BY part HAVING sum(n) > 0;
-- line: string_agg in order
SELECT md5(string_agg(t, ',' ORDER BY id)) FROM a WHERE part < 10;
-- line: DISTINCT
SELECT DISTINCT part FROM a;
-- line: DISTINCT ON
SELECT DISTINCT ON (part) part, id, n FROM a ORDER BY part, n, id;
-- line: count(DISTINCT)
SELECT count(DISTINCT n) FROM a;
-- line: percentile_cont
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY x) FROM a;
-- line: window, row_number
SELECT sum(r) FROM (SELECT row_number() OVER (PARTITION BY part ORDER BY n, id) r FROM a) s;
-- line: window, running sum
SELECT max(s) FROM (SELECT sum(n) OVER (ORDER BY id) s FROM a) w;
-- line: window, lag
SELECT count(*) FROM (SELECT n - lag(n) OVER (ORDER BY id) d FROM a) w WHERE d > 0;
-- line: ORDER BY a column without an index
SELECT count(*) FROM (SELECT * FROM a ORDER BY x DESC, id OFFSET 1) s;
-- line: ORDER BY primary key, LIMIT 10
SELECT id, t FROM a ORDER BY id LIMIT 10;
-- line: ORDER BY indexed column, LIMIT 10
SELECT id, n FROM a ORDER BY n LIMIT 10;
-- line: ORDER BY column without an index, LIMIT 10
SELECT id, x FROM a ORDER BY x DESC LIMIT 10;
-- line: ORDER BY … OFFSET half of the rows
SELECT id FROM a ORDER BY n OFFSET :rows / 2 LIMIT 5;
-- line: LIMIT 1
SELECT count(*) FROM (SELECT * FROM a LIMIT 1) l;
-- line: LIMIT 1,000
SELECT count(*) FROM (SELECT * FROM a LIMIT 1000) l;
-- line: all rows to the client
SELECT id, n FROM a;
-- line: whole rows to the client
SELECT * FROM a;
-- line: a row by primary key
SELECT t FROM a WHERE id = 77;
-- line: a row by secondary index
SELECT t FROM a WHERE n = 77;
-- line: a row that is absent
SELECT t FROM a WHERE id = -1;
-- line: IN list of 10 keys
SELECT sum(n) FROM a WHERE id IN (1, 12, 23, 34, 45, 56, 67, 78, 89, 100);
-- line: = ANY of 1,000 keys
SELECT sum(n) FROM a WHERE id = ANY (ARRAY(SELECT generate_series(1, :rows, :rows / 100)));
-- line: range of 1,000 in a secondary index
SELECT count(*), sum(id) FROM a WHERE n BETWEEN 50 AND 1049;
-- line: count(*) of a range in a secondary index
SELECT count(*) FROM a WHERE n < :rows / 10;
-- line: range of 1,000 by primary key without ordered_key
SELECT count(*), sum(n) FROM a WHERE id BETWEEN 51 AND 1050;
-- line: OR of two indexed columns
SELECT count(*) FROM a WHERE n = 5 OR t = 'text 9';
-- line: LIKE with a prefix, indexed
SELECT count(*) FROM a WHERE t LIKE 'text 12%';
-- line: LIKE in the middle
SELECT count(*) FROM a WHERE t LIKE '%99%';
-- line: regular expression
SELECT count(*) FROM a WHERE t ~ '7[0-3]$';
-- line: function of a column
SELECT count(*) FROM a WHERE upper(t) = 'TEXT 5';
-- line: dates by month
SELECT date_trunc('month', at), count(*) FROM a GROUP BY 1;
-- line: jsonb, one member
SELECT count(*) FROM a WHERE j ->> 'k' = '3';
-- line: jsonb, containment
SELECT count(*) FROM a WHERE j @> '{"k": 7}';
-- line: jsonb, sum of a member
SELECT sum((j ->> 'v')::int) FROM a;
-- line: CASE and FILTER
SELECT sum(CASE WHEN part < 10 THEN n ELSE 0 END), count(*) FILTER (WHERE part > 90) FROM a;

-- line: join by primary key
SELECT count(*), sum(a.n) FROM b JOIN a ON a.id = b.a_id;
-- line: join by secondary index of few rows
SELECT count(*), sum(b.v) FROM a JOIN b ON b.a_id = a.id WHERE a.part = 7 AND a.n < :rows / 2;
-- line: join of 100 rows by primary key
SELECT count(*), sum(a.n) FROM b JOIN a ON a.id = b.a_id WHERE b.v = 500;
-- line: merge join
-- before: SET enable_hashjoin = off; SET enable_nestloop = off;
SELECT count(*) FROM a JOIN b ON a.n = b.a_id;
-- line: self join
SELECT count(*) FROM a x JOIN a y ON y.id = x.n;
-- line: LEFT JOIN
SELECT count(*), count(b.id) FROM a LEFT JOIN b ON b.a_id = a.id AND b.v < 100;
-- line: FULL JOIN
SELECT count(*) FROM a FULL JOIN b ON a.id = b.a_id;
-- line: three tables
SELECT count(*) FROM a JOIN b ON b.a_id = a.id JOIN w ON w.id = b.id WHERE a.part < 20;
-- line: LATERAL, the newest of each
SELECT count(l.id) FROM generate_series(1, 100) g, LATERAL (SELECT id FROM a WHERE a.n = g LIMIT 1) l;
-- line: EXISTS
SELECT count(*) FROM a WHERE EXISTS (SELECT FROM b WHERE b.a_id = a.id AND b.v < 500);
-- line: NOT EXISTS
SELECT count(*) FROM a WHERE NOT EXISTS (SELECT FROM b WHERE b.a_id = a.id AND b.v < 500);
-- line: IN with a query
SELECT count(*) FROM a WHERE id IN (SELECT a_id FROM b WHERE v < 100);
-- line: NOT IN with a query
SELECT count(*) FROM a WHERE id NOT IN (SELECT a_id FROM b WHERE v < 100);
-- line: correlated subquery, 1,000 times
SELECT sum((SELECT b.v FROM b WHERE b.a_id = a.id LIMIT 1)) FROM a WHERE n < 1000;
-- line: UNION
SELECT count(*) FROM (SELECT n FROM a UNION SELECT v FROM b) u;
-- line: UNION ALL
SELECT count(*) FROM (SELECT n FROM a UNION ALL SELECT v FROM b) u;
-- line: INTERSECT
SELECT count(*) FROM (SELECT n FROM a INTERSECT SELECT a_id FROM b) u;
-- line: EXCEPT
SELECT count(*) FROM (SELECT n FROM a EXCEPT SELECT v FROM b) u;
-- line: CTE that is used twice
WITH s AS MATERIALIZED (SELECT part, sum(n) n FROM a GROUP BY part) SELECT count(*) FROM s x, s y WHERE x.n < y.n;
-- line: recursive CTE, 1,000 steps by primary key
WITH RECURSIVE r (id, steps) AS (SELECT 1, 1 UNION ALL SELECT a.n, steps + 1 FROM r JOIN a ON a.id = r.id WHERE steps < 1000) SELECT count(*) FROM r;
-- line: cursor, row by row
BEGIN;
DECLARE c CURSOR FOR SELECT id, n FROM a WHERE part < 50;
DO $$ DECLARE c refcursor := 'c'; r record; k int := 0; BEGIN LOOP FETCH c INTO r; EXIT WHEN NOT FOUND; k := k + 1; END LOOP; RAISE NOTICE '% rows', k; END $$;
COMMIT;
-- line: loop over a query in PL/pgSQL
DO $$ DECLARE r record; s bigint := 0; BEGIN FOR r IN SELECT n FROM a LOOP s := s + r.n; END LOOP; END $$;
-- line: 10,000 look-ups in PL/pgSQL
DO $$ DECLARE s bigint := 0; v int; BEGIN FOR i IN 1..10000 LOOP SELECT n INTO v FROM a WHERE id = i % 1000; s := s + coalesce(v, 0); END LOOP; END $$;
-- line: SELECT FOR UPDATE of 1,000 rows
SELECT count(*) FROM (SELECT id FROM a WHERE n BETWEEN 50 AND 1049 FOR UPDATE) l;
-- line: SELECT FOR SHARE of 1,000 rows
SELECT count(*) FROM (SELECT id FROM a WHERE n BETWEEN 50 AND 1049 FOR SHARE) l;

-- line: INSERT of 1,000 rows
-- before: TRUNCATE log;
INSERT INTO log SELECT i, i, 'new' FROM generate_series(1, 1000) i;
-- line: INSERT … SELECT of all rows
-- before: TRUNCATE log;
INSERT INTO log SELECT id, n, t FROM a;
-- line: INSERT … RETURNING
-- before: TRUNCATE log;
WITH i AS (INSERT INTO log SELECT id, n, t FROM a WHERE part < 10 RETURNING n) SELECT count(*), sum(n) FROM i;
-- line: INSERT … ON CONFLICT DO NOTHING
INSERT INTO w SELECT i, 0, 'other' FROM generate_series(1, :rows / 10) i ON CONFLICT DO NOTHING;
-- line: INSERT … ON CONFLICT DO UPDATE
INSERT INTO w SELECT i, 0, 'other' FROM generate_series(1, :rows / 10) i ON CONFLICT (id) DO UPDATE SET t = excluded.t;
-- line: MERGE
MERGE INTO w USING (SELECT id, n FROM a WHERE part < 10) s ON w.id = s.id WHEN MATCHED AND s.id % 2 = 0 THEN UPDATE SET t = 'merged' WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.n, 'new');
-- line: UPDATE of all rows
-- before: VACUUM w;
UPDATE w SET t = t || '.';
-- line: UPDATE of an indexed column of all rows
-- before: VACUUM w;
UPDATE w SET n = n + 1;
-- line: UPDATE of a tenth by a condition
-- before: VACUUM w;
UPDATE w SET t = 'tenth' WHERE id % 10 = 0;
-- line: UPDATE by secondary index
UPDATE w SET t = 'by index' WHERE n = 500;
-- line: UPDATE … FROM
-- before: VACUUM w;
UPDATE w SET n = a.part FROM a WHERE a.id = w.id AND a.part < 20;
-- line: UPDATE … RETURNING
-- before: VACUUM w;
WITH u AS (UPDATE w SET t = 'returned' WHERE id % 10 = 1 RETURNING id) SELECT count(*) FROM u;
-- line: UPDATE of the primary key, 1,000 rows
UPDATE w SET id = id + 10000000 WHERE id BETWEEN :turn * 1000 + 1 AND :turn * 1000 + 1000;
-- line: DELETE of a tenth, and back
DELETE FROM w WHERE id % 10 = 2;
INSERT INTO w SELECT i, i % 1000, 'back' FROM generate_series(2, :rows, 10) i ON CONFLICT DO NOTHING;
-- line: DELETE USING
-- before: INSERT INTO w SELECT i, i % 1000, 'back' FROM generate_series(1, :rows) i ON CONFLICT DO NOTHING;
DELETE FROM w USING a WHERE a.id = w.id AND a.part = 5;
-- line: DELETE … WHERE IN
-- before: INSERT INTO w SELECT i, i % 1000, 'back' FROM generate_series(1, :rows) i ON CONFLICT DO NOTHING;
DELETE FROM w WHERE id IN (SELECT a_id FROM b WHERE v = 7);
-- line: 1,000 UPDATEs in one transaction
DO $$ BEGIN FOR i IN 1..1000 LOOP UPDATE w SET t = 'loop' WHERE id = i * 3; END LOOP; END $$;
-- line: 1,000 INSERTs in one transaction
-- before: TRUNCATE log;
DO $$ BEGIN FOR i IN 1..1000 LOOP INSERT INTO log VALUES (i, i, 'loop'); END LOOP; END $$;
-- line: 100 transactions in a procedure
-- before: TRUNCATE log;
DO $$ BEGIN FOR i IN 1..100 LOOP INSERT INTO log VALUES (i, i, 'loop'); COMMIT; END LOOP; END $$;
-- line: 1,000 savepoints
DO $$ BEGIN FOR i IN 1..1000 LOOP BEGIN UPDATE w SET t = 'saved' WHERE id = i * 3; EXCEPTION WHEN division_by_zero THEN NULL; END; END LOOP; END $$;
-- line: 1,000 savepoints that are rolled back
DO $$ BEGIN FOR i IN 1..1000 LOOP BEGIN UPDATE w SET n = i WHERE id = i * 3; RAISE division_by_zero; EXCEPTION WHEN division_by_zero THEN NULL; END; END LOOP; END $$;
-- line: ROLLBACK of an UPDATE of all rows
-- before: VACUUM w;
BEGIN;
UPDATE w SET t = 'never';
ROLLBACK;
-- line: foreign key, 1,000 children
-- before: TRUNCATE child;
INSERT INTO child SELECT i, i FROM generate_series(1, 1000) i;
-- line: trigger of each row
-- before: TRUNCATE log; CREATE OR REPLACE FUNCTION bench_trigger() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.n := NEW.n + 1; RETURN NEW; END'; DROP TRIGGER IF EXISTS bench ON log; CREATE TRIGGER bench BEFORE INSERT ON log FOR EACH ROW EXECUTE FUNCTION bench_trigger();
INSERT INTO log SELECT id, n, t FROM a WHERE part < 10;

-- line: COPY TO
COPY a TO :'csv';
-- line: COPY FROM
-- before: DROP TRIGGER IF EXISTS bench ON log; TRUNCATE log; COPY (SELECT id, n, t FROM a) TO :'csv';
COPY log FROM :'csv';
-- line: CREATE TABLE AS
-- before: DROP TABLE IF EXISTS made;
CREATE :TABLE made AS SELECT * FROM a;
-- line: CREATE UNIQUE INDEX
-- before: DROP INDEX IF EXISTS a_unique;
CREATE UNIQUE INDEX a_unique ON a (x);
-- line: CREATE INDEX of an expression
-- before: DROP INDEX IF EXISTS a_upper;
CREATE INDEX a_upper ON a (upper(t));
-- line: partial index
-- before: DROP INDEX IF EXISTS a_some;
CREATE INDEX a_some ON a (at) WHERE part < 10;
-- line: REINDEX
REINDEX INDEX a_n;
-- line: VACUUM
VACUUM w;
-- line: ANALYZE
ANALYZE a;
-- line: ADD COLUMN with a constant default
-- before: ALTER TABLE w DROP COLUMN IF EXISTS added;
ALTER TABLE w ADD COLUMN added int DEFAULT 7;
-- line: ADD COLUMN with a volatile default
-- before: ALTER TABLE w DROP COLUMN IF EXISTS added;
ALTER TABLE w ADD COLUMN added float8 DEFAULT random();
-- line: DROP COLUMN
-- before: ALTER TABLE w ADD COLUMN IF NOT EXISTS added int DEFAULT 7;
ALTER TABLE w DROP COLUMN added;
-- line: ADD CHECK
-- before: ALTER TABLE w DROP CONSTRAINT IF EXISTS positive;
ALTER TABLE w ADD CONSTRAINT positive CHECK (id > 0);
-- line: SET NOT NULL
-- before: ALTER TABLE w ALTER n DROP NOT NULL;
ALTER TABLE w ALTER n SET NOT NULL;
-- line: REFRESH MATERIALIZED VIEW
-- before: DROP MATERIALIZED VIEW IF EXISTS bench_view; CREATE MATERIALIZED VIEW bench_view AS SELECT part, count(*) FROM a GROUP BY part;
REFRESH MATERIALIZED VIEW bench_view;
-- line: CREATE and DROP TABLE
-- before: DROP TABLE IF EXISTS made;
CREATE :TABLE made (id int PRIMARY KEY);
DROP TABLE made;
-- line: rows of w afterwards
SELECT count(*), sum(n), sum(hashtext(t)::bigint), sum(id::bigint) FROM w;
-- line: rows of a and log afterwards
SELECT (SELECT count(*) FROM log), (SELECT sum(hashtext(a::text)::bigint) FROM a);
