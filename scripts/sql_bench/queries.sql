-- group: queries
-- rows: 10
-- target: 0.33
-- Tables of a tenth of --rows: a has indexes on n and t, b refers to a by ids that do not repeat, long has a
-- key of two columns and a twentieth as many rows, of 4 KB, and p four partitions.
-- setup: DROP TABLE IF EXISTS a, b, long, p CASCADE;
-- setup: CREATE :TABLE a (id int PRIMARY KEY, part int, n int, t text COLLATE "C", at timestamp, j jsonb, x numeric);
-- setup: INSERT INTO a SELECT i, i % 100, (i * 7919::bigint % :rows)::int, 'text ' || i, timestamp '2020-01-01' + i * interval '1 minute', jsonb_build_object('k', i % 10, 'v', i), i / 4.0 FROM generate_series(1, :rows) i;
-- setup: CREATE INDEX a_n ON a (n);
-- setup: CREATE INDEX a_t ON a (t);
-- setup: CREATE :TABLE b (id int PRIMARY KEY, a_id int, v int);
-- setup: INSERT INTO b SELECT i, (i * 104729::bigint % :rows)::int, i % 1000 FROM generate_series(1, :rows) i;
-- setup: CREATE INDEX b_a ON b (a_id);
-- setup: CREATE :TABLE long (id int, k text, v int, body text, PRIMARY KEY (id, k));
-- setup: INSERT INTO long SELECT i, 'key ' || i, i % 7, repeat(md5(i::text), 125) FROM generate_series(1, :rows / 20) i;
-- setup: CREATE TABLE p (id int PRIMARY KEY, n int) PARTITION BY HASH (id);
-- setup: CREATE :TABLE p0 PARTITION OF p FOR VALUES WITH (MODULUS 4, REMAINDER 0);
-- setup: CREATE :TABLE p1 PARTITION OF p FOR VALUES WITH (MODULUS 4, REMAINDER 1);
-- setup: CREATE :TABLE p2 PARTITION OF p FOR VALUES WITH (MODULUS 4, REMAINDER 2);
-- setup: CREATE :TABLE p3 PARTITION OF p FOR VALUES WITH (MODULUS 4, REMAINDER 3);
-- setup: INSERT INTO p SELECT i, i % 1000 FROM generate_series(1, :rows) i;
-- setup: VACUUM ANALYZE a, b, long, p;
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
-- line: array_agg, jsonb_agg
SELECT md5(array_agg(n ORDER BY id)::text), jsonb_agg(n ORDER BY id) ->> 5 FROM a WHERE part < 10;
-- line: GROUP BY CUBE
SELECT part % 3, n % 5, count(*) FROM a GROUP BY CUBE (part % 3, n % 5);
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
-- line: range of 1,000 by primary key
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
SELECT count(*) FROM a JOIN b ON b.a_id = a.id JOIN p ON p.id = b.id WHERE a.part < 20;
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
-- line: partitions, count and sum
SELECT count(*), sum(n) FROM p;
-- line: partitions, 1,000 look-ups
DO $$ DECLARE v int; BEGIN FOR i IN 1..1000 LOOP SELECT n INTO v FROM p WHERE id = i; END LOOP; END $$;
-- line: partitions, join by primary key
SELECT count(*) FROM b JOIN p ON p.id = b.a_id WHERE b.v < 100;
-- line: rows of 4 KB, read whole
SELECT sum(length(body)), max(md5(body)) FROM long;
-- line: rows of 4 KB, other columns
SELECT sum(v) FROM long;
-- line: key of two columns, 1,000 look-ups
DO $$ DECLARE l int; BEGIN FOR i IN 1..1000 LOOP SELECT v INTO l FROM long WHERE id = i AND k = 'key ' || i; END LOOP; END $$;
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