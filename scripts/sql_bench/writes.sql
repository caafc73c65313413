-- group: writes and definitions
-- rows: 10
-- target: 0.33
-- Tables of a tenth of --rows: a and b as in queries.sql; w, with an index on n, log and p, with two
-- partitions, are written.
-- setup: DROP TABLE IF EXISTS a, b, w, log, made, parent, child, p CASCADE;
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
-- setup: CREATE TABLE p (id int PRIMARY KEY, n int) PARTITION BY HASH (id);
-- setup: CREATE :TABLE p0 PARTITION OF p FOR VALUES WITH (MODULUS 2, REMAINDER 0);
-- setup: CREATE :TABLE p1 PARTITION OF p FOR VALUES WITH (MODULUS 2, REMAINDER 1);
-- setup: VACUUM ANALYZE a, b, w, parent;
-- setup: CHECKPOINT;

-- line: INSERT of 1,000 rows
-- before: TRUNCATE log;
INSERT INTO log SELECT i, i, 'new' FROM generate_series(1, 1000) i;
-- line: INSERT … SELECT of all rows
-- before: TRUNCATE log;
INSERT INTO log SELECT id, n, t FROM a;
-- line: INSERT … RETURNING
-- before: TRUNCATE log;
WITH i AS (INSERT INTO log SELECT id, n, t FROM a WHERE part < 10 RETURNING n) SELECT count(*), sum(n) FROM i;
-- line: INSERT … RETURNING to the client
-- before: TRUNCATE log;
INSERT INTO log SELECT i, i, 'returned' FROM generate_series(1, :rows / 10) i RETURNING id;
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
-- line: WHERE CURRENT OF, 1,000 rows
DO $$ DECLARE c CURSOR FOR SELECT * FROM w WHERE n BETWEEN 0 AND 9 FOR UPDATE; BEGIN FOR r IN c LOOP UPDATE w SET t = 'current' WHERE CURRENT OF c; END LOOP; END $$;
-- line: ROLLBACK of an UPDATE of all rows
-- before: VACUUM w;
BEGIN;
UPDATE w SET t = 'never';
ROLLBACK;
-- line: rows of 4 KB, INSERT … SELECT of 1,000
-- before: TRUNCATE log;
INSERT INTO log SELECT i, i, repeat(md5(i::text), 125) FROM generate_series(1, 1000) i;
-- line: partitions, INSERT … SELECT
-- before: TRUNCATE p;
INSERT INTO p SELECT id, n FROM a;
-- line: partitions, UPDATE of a tenth
UPDATE p SET n = n + 1 WHERE n % 10 = 0;
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
