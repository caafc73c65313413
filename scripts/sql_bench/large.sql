-- group: all rows
-- Tables of --rows rows. Lines that read come first: later ones change the table.
-- setup: DROP TABLE IF EXISTS big, ranged;
-- setup: CREATE :TABLE big (id int PRIMARY KEY, part int, n int, filler text);
-- setup: CREATE :TABLE ranged (id int PRIMARY KEY, n int, filler text);
-- setup: COPY (SELECT i, i % 100, (i * 7919::bigint % :rows)::int, repeat('x', 60) FROM generate_series(1, :rows) i) TO :'csv' (FORMAT csv);
-- setup: COPY big FROM :'csv' (FORMAT csv);
-- setup: INSERT INTO ranged SELECT i, (i * 7919::bigint % :rows)::int, repeat('x', 60) FROM generate_series(1, :rows) i;
-- setup: CREATE INDEX ranged_n ON ranged (n);
-- setup: VACUUM ANALYZE big, ranged;
-- setup: CHECKPOINT;

-- target: 0.7
-- line: count(*)
SELECT count(*) FROM big;
-- line: sum
SELECT sum(n) FROM big;
-- line: GROUP BY, 100 groups
SELECT part, count(*), sum(n) FROM big GROUP BY part;
-- target: 0.8
-- line: hash join of the table with itself
-- before: SET enable_nestloop = off; SET enable_mergejoin = off;
SELECT count(*), sum(b.n) FROM big a JOIN big b ON a.n = b.id;
-- target: 0.33
-- line: LIMIT 1
SELECT count(*) FROM (SELECT * FROM big LIMIT 1) one;

-- target: 0.7
-- line: range of a tenth as many rows, primary key
SELECT count(*), sum(n) FROM ranged WHERE id BETWEEN :rows / 20 AND :rows / 20 + :rows / 10 - 1;
-- line: range of a tenth as many rows, secondary index
-- before: SET enable_seqscan = off;
SELECT count(*), sum(id) FROM ranged WHERE n BETWEEN :rows / 20 AND :rows / 20 + :rows / 10 - 1;

-- target: 0.5
-- line: CREATE INDEX
-- before: DROP INDEX IF EXISTS big_n;
CREATE INDEX big_n ON big (n);
-- target: 0.7
-- line: UPDATE of all rows
-- before: DROP INDEX IF EXISTS big_n;
-- before: VACUUM big;
UPDATE big SET n = n + 1;
-- line: DELETE of 1 % of the rows
DELETE FROM big WHERE part = :turn;
-- target: 0.5
-- line: ALTER TYPE
-- before: ALTER TABLE big ALTER n TYPE int;
ALTER TABLE big ALTER n TYPE bigint;

-- target: 0.7
-- line: COPY
-- before: TRUNCATE big;
COPY big FROM :'csv' (FORMAT csv);
-- target: 0.5
-- line: DELETE of all rows
-- before: TRUNCATE big;
-- before: COPY big FROM :'csv' (FORMAT csv);
DELETE FROM big;
-- line: TRUNCATE
-- before: TRUNCATE big;
-- before: COPY big FROM :'csv' (FORMAT csv);
TRUNCATE big;
-- line: count(*) of what is left
SELECT count(*) FROM big;
