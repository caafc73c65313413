-- Tables that a transaction fills before it commits: rows are in place at once where no other
-- query may see them too soon, and go with the table.
SET client_min_messages = warning;
SET default_table_access_method = rdmacc;
CREATE FUNCTION same(ours regclass, n int) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE found int; distinct_ids int; read_by_key int;
BEGIN
  EXECUTE format('SELECT count(*), count(DISTINCT id) FROM %s', ours) INTO found, distinct_ids;
  EXECUTE format('SELECT count(*) FROM generate_series(1, %s) g, LATERAL (SELECT 1 FROM %s t
    WHERE t.id = g) x', n, ours) INTO read_by_key;
  RETURN found = n AND distinct_ids = n AND read_by_key = n;
END $$;
-- COPY, under protocols of each kind.
SET rdmacc.protocol = nowait;
BEGIN;
CREATE TABLE made (id int PRIMARY KEY, t text);
COPY made FROM PROGRAM 'seq -f %.0f,row 1 5000' (FORMAT csv);
SELECT same('made', 5000);
UPDATE made SET t = 'changed' WHERE id = 77;
DELETE FROM made WHERE id = 78;
INSERT INTO made VALUES (78, 'again'), (5001, 'more');
COMMIT;
SELECT same('made', 5001);
SELECT * FROM made WHERE id IN (76, 77, 78, 5001) ORDER BY id;
SELECT * FROM rdmacc.verify('made');
DROP TABLE made;
SET rdmacc.protocol = mvcc;
BEGIN;
CREATE TABLE made (id int PRIMARY KEY, t text);
COPY made FROM PROGRAM 'seq -f %.0f,row 1 5000' (FORMAT csv);
SELECT same('made', 5000);
COMMIT;
SELECT same('made', 5000);
DROP TABLE made;
SET rdmacc.protocol = sundial;
BEGIN;
CREATE TABLE made (id int PRIMARY KEY, t text);
COPY made FROM PROGRAM 'seq -f %.0f,row 1 5000' (FORMAT csv);
COMMIT;
SELECT same('made', 5000);
DROP TABLE made;
SET rdmacc.protocol = occ;
-- More than the write set may hold: what the statement has to write by itself is refused.
CREATE TABLE made (id int PRIMARY KEY, t text);
\set narrow 'dbname=' :DBNAME ' options=-crdmacc.max_write_set=1MB'
\set wide 'dbname=' :DBNAME
\c :narrow
SET rdmacc.exclusive_loads = off;
SET rdmacc.protocol = occ;
SET client_min_messages = warning;
SET default_table_access_method = rdmacc;
COPY made FROM PROGRAM 'seq -f %.0f,row 1 20000' (FORMAT csv);
-- Within a savepoint it takes back what it has written, and no more.
BEGIN;
INSERT INTO made VALUES (1, 'before');
SAVEPOINT a;
INSERT INTO made SELECT g, repeat('x', 300) FROM generate_series(2, 9000) g;
ROLLBACK TO a;
SELECT * FROM made;
DO $$ BEGIN
  INSERT INTO made SELECT g, repeat('x', 300) FROM generate_series(2, 9000) g;
EXCEPTION WHEN out_of_memory THEN INSERT INTO made VALUES (2, 'refused');
END $$;
UPDATE made SET t = t || '!';
COMMIT;
SELECT * FROM made ORDER BY id;
DELETE FROM made;
-- So it does where an index's entries have filled it.
CREATE TABLE entries (id int PRIMARY KEY, k int UNIQUE);
BEGIN;
INSERT INTO entries VALUES (0, 0);
SAVEPOINT a;
INSERT INTO entries SELECT g, g FROM generate_series(1, 20000) g;
ROLLBACK TO a;
INSERT INTO entries VALUES (1, 1);
COMMIT;
SELECT * FROM entries ORDER BY k;
SELECT * FROM rdmacc.verify('entries');
DROP TABLE entries;
CREATE TABLE many AS SELECT g AS id, repeat('x', 100) AS t FROM generate_series(1, 20000) g;
ALTER TABLE many ADD PRIMARY KEY (id);
CREATE INDEX many_t ON many (t, id);
ALTER TABLE many ADD COLUMN n float8 DEFAULT random();
SELECT same('many', 20000), count(n) FROM many;
-- Entries that do not fit into memory are sorted in files.
SET maintenance_work_mem = '1MB';
CREATE INDEX many_n ON many (n DESC NULLS LAST, t);
RESET maintenance_work_mem;
SELECT * FROM rdmacc.verify('many');
DROP TABLE many;
\c :wide
SET rdmacc.protocol = occ;
SET client_min_messages = warning;
SET default_table_access_method = rdmacc;
-- A table that is written anew keeps its key: what is in it twice then is found as the index would find it.
CREATE TABLE anew (a int, id int, b text, PRIMARY KEY (id, a));
INSERT INTO anew SELECT i % 3, i, repeat('b', i % 500) FROM generate_series(1, 3000) i;
CREATE INDEX anew_b ON anew (b);
ALTER TABLE anew ALTER b TYPE varchar(600), ADD COLUMN c int NOT NULL DEFAULT 7;
SELECT count(*), sum(c), sum(length(b)), min(id), max(id) FROM anew;
SELECT a, id, length(b) FROM anew WHERE id = 1234 AND a = 1;
UPDATE anew SET b = 'new' WHERE id = 1234;
SELECT * FROM rdmacc.verify('anew');
ALTER TABLE anew ALTER id TYPE bigint;
SELECT pg_typeof(id), id FROM anew WHERE id = 1234;
ALTER TABLE anew ALTER a TYPE int USING 0, ALTER id TYPE bigint USING CASE id WHEN 2 THEN 1 ELSE id END;
ALTER TABLE anew ALTER b TYPE text, ALTER id TYPE bigint USING NULL;
BEGIN;
ALTER TABLE anew ALTER b TYPE text;
SAVEPOINT s;
ALTER TABLE anew ALTER c TYPE bigint, DROP CONSTRAINT anew_pkey;
INSERT INTO anew SELECT * FROM anew WHERE id = 1;
ROLLBACK TO s;
INSERT INTO anew SELECT * FROM anew WHERE id = 1;
ROLLBACK;
CLUSTER anew USING anew_b;
VACUUM FULL anew;
SELECT count(*), sum(c), sum(length(b)), min(id), max(id) FROM anew;
SELECT * FROM rdmacc.verify('anew');
DROP TABLE anew;
-- A first load, and one after that.
BEGIN;
TRUNCATE made;
COPY made FROM PROGRAM 'seq -f %.0f,row 1 20000' (FORMAT csv);
SELECT same('made', 20000);
-- A second load into what has been read is the transaction's own.
COPY made FROM PROGRAM 'seq -f %.0f,row 20001 20100' (FORMAT csv);
SELECT same('made', 20100);
ROLLBACK;
SELECT count(*) FROM made;
-- Duplicates: among the rows, and with rows that are there.
BEGIN;
TRUNCATE made;
COPY made FROM PROGRAM '(seq 1 3000; echo 17) | sed s/$/,x/' (FORMAT csv);
ROLLBACK;
BEGIN;
TRUNCATE made;
INSERT INTO made VALUES (2500, 'own');
COPY made FROM PROGRAM 'seq -f %.0f,row 1 3000' (FORMAT csv);
ROLLBACK;
SELECT count(*) FROM made;
-- Savepoints: rows go with the table, and not before it.
BEGIN;
TRUNCATE made;
SAVEPOINT a;
COPY made FROM PROGRAM 'seq -f %.0f,row 1 100' (FORMAT csv);
ROLLBACK TO a;
SELECT count(*) FROM made;
SAVEPOINT b;
TRUNCATE made;
COPY made FROM PROGRAM 'seq -f %.0f,row 1 200' (FORMAT csv);
RELEASE b;
SELECT same('made', 200);
SAVEPOINT c;
TRUNCATE made;
COPY made FROM PROGRAM 'seq -f %.0f,row 1 300' (FORMAT csv);
ROLLBACK TO c;
COMMIT;
SELECT same('made', 200);
-- A cursor does not see what comes after it.
BEGIN;
TRUNCATE made;
DECLARE before CURSOR FOR SELECT count(*) FROM made;
COPY made FROM PROGRAM 'seq -f %.0f,row 1 50' (FORMAT csv);
FETCH before;
SELECT same('made', 50);
COMMIT;
-- Triggers and foreign keys see the rows.
CREATE TABLE noted (n bigint);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN INSERT INTO noted SELECT count(*) FROM fresh; RETURN NULL; END $$;
BEGIN;
CREATE TABLE fresh (id int PRIMARY KEY REFERENCES made);
CREATE TRIGGER note AFTER INSERT ON fresh EXECUTE FUNCTION note();
COPY fresh FROM PROGRAM 'seq 1 50';
COMMIT;
SELECT * FROM noted;
BEGIN;
TRUNCATE fresh;
COPY fresh FROM PROGRAM 'seq 1 51';
ROLLBACK;
SELECT count(*) FROM fresh;
-- CREATE TABLE AS, materialized views, rewrites and indexes.
CREATE TABLE taken AS SELECT g AS id, g % 7 AS n, repeat('x', g % 900) AS t FROM generate_series(1, 3000) g;
SELECT same('taken', 3000);
ALTER TABLE taken ADD PRIMARY KEY (id);
CREATE INDEX taken_n ON taken (n);
ALTER TABLE taken ALTER n TYPE bigint;
SELECT same('taken', 3000), count(*) FILTER (WHERE n = 3) FROM taken;
SELECT count(*), max(length(t)) FROM taken WHERE n = 3;
VACUUM FULL taken;
SELECT same('taken', 3000);
CREATE MATERIALIZED VIEW seen AS SELECT n, count(*) AS id FROM taken GROUP BY n;
REFRESH MATERIALIZED VIEW seen;
SELECT * FROM seen ORDER BY n;
SELECT * FROM rdmacc.verify('taken');
BEGIN;
CREATE TABLE again AS SELECT * FROM taken;
ALTER TABLE again ADD UNIQUE (n);
ROLLBACK;
-- Within a function the caller's query is open: the write set has the rows.
CREATE FUNCTION makes() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
  CREATE TABLE inside AS SELECT g AS id FROM generate_series(1, 500) g;
  RETURN (SELECT count(*) FROM inside);
END $$;
SELECT makes();
SELECT same('inside', 500);
DO $$ BEGIN
  CREATE TABLE beside AS SELECT g AS id FROM generate_series(1, 500) g;
  BEGIN
    CREATE TABLE undone AS SELECT g AS id FROM generate_series(1, 500) g;
    RAISE EXCEPTION 'no';
  EXCEPTION WHEN raise_exception THEN NULL;
  END;
END $$;
SELECT same('beside', 500), to_regclass('undone');
DROP TABLE beside, inside, noted, fresh, made;
DROP MATERIALIZED VIEW seen;
DROP TABLE taken;
DROP FUNCTION makes(), note(), same(regclass, int);

-- What the query of CREATE TABLE AS writes by itself: in a CTE, into another new table, ...
BEGIN;
CREATE TABLE n_other (a int);
CREATE TABLE n_made AS WITH i AS (INSERT INTO n_other SELECT generate_series(1, 10)) SELECT 1 AS b;
SELECT count(*) FROM n_other;
INSERT INTO n_other VALUES (11);
CREATE TABLE n_more AS WITH i AS (INSERT INTO n_other SELECT generate_series(12, 20) RETURNING a)
  SELECT a FROM i;
COMMIT;
SELECT (SELECT count(*) FROM n_other) AS other, (SELECT count(*) FROM n_made) AS made,
  (SELECT sum(a) FROM n_more) AS more;
DROP TABLE n_other, n_made, n_more;
-- ... in a function, into the table that it fills, ...
CREATE FUNCTION n_adds(n int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO n_filled VALUES (-n);
  RETURN n;
END $$;
CREATE TABLE n_filled AS SELECT n_adds(g) AS a FROM generate_series(1, 1500) AS g;
SELECT count(*), sum(a) FROM n_filled;
DROP TABLE n_filled;
-- ... whose rows it has looked at, ...
CREATE FUNCTION n_looks(n int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  IF n % 700 = 0 THEN PERFORM count(*) FROM n_filled; END IF;
  RETURN n;
END $$;
CREATE TABLE n_filled AS SELECT n_looks(g) AS a FROM generate_series(1, 5000) AS g;
SELECT count(*), sum(a) FROM n_filled;
DROP TABLE n_filled;
-- ... or by COPY, row by row for a default's sake: the query that calls the function does not see
-- these rows.
BEGIN;
CREATE TABLE n_source (a int, r float DEFAULT random());
CREATE FUNCTION n_copies() RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE 'COPY n_source (a) FROM PROGRAM ''seq 1 5''';
  RETURN 1;
END $$;
CREATE TABLE n_filled AS
  SELECT s.a FROM (SELECT n_copies() OFFSET 0) AS f, n_source AS s;
SELECT count(*) FROM n_source;
COMMIT;
SELECT (SELECT count(*) FROM n_filled) AS filled, (SELECT count(*) FROM n_source) AS source;
DROP TABLE n_filled, n_source;
DROP FUNCTION n_adds, n_looks, n_copies;
-- An error that a savepoint takes back leaves no query open.
BEGIN;
SAVEPOINT a;
SELECT 1 / g FROM generate_series(0, 1) AS g;
ROLLBACK TO a;
CREATE TABLE n_filled AS SELECT g AS a FROM generate_series(1, 3000) AS g;
COMMIT;
SELECT count(*) FROM n_filled;
DROP TABLE n_filled;
-- A batch that has failed fails its statement, whatever catches the error on the way.
CREATE SEQUENCE calls;
CREATE FUNCTION forgives(i int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE call bigint := nextval('calls');
BEGIN
  IF call = 1500 THEN
    BEGIN CREATE TABLE n_side AS SELECT 1 AS a;
    EXCEPTION WHEN unique_violation THEN PERFORM setval('calls', 1000000); END;
  END IF;
  -- Twice in the first batch alone.
  RETURN CASE WHEN call <= 1000 THEN 5 ELSE i + 10000 END; END $$;
CREATE TABLE n_loaded AS SELECT i AS id FROM generate_series(1, 3000) i;
ALTER TABLE n_loaded ADD PRIMARY KEY (id);
\set VERBOSITY sqlstate
ALTER TABLE n_loaded ALTER id TYPE int USING forgives(id);
\set VERBOSITY default
SELECT last_value > 1000000 AS forgiven FROM calls;
SELECT count(*), count(DISTINCT id) FROM n_loaded;
DROP TABLE n_loaded;
DROP FUNCTION forgives;
DROP SEQUENCE calls;
-- Triggers are for rows that are there.
CREATE TABLE n_parent (id int PRIMARY KEY);
INSERT INTO n_parent VALUES (1);
BEGIN;
CREATE TABLE n_child (id int PRIMARY KEY, p int DEFAULT 1 REFERENCES n_parent);
COPY n_child (id) FROM PROGRAM '(echo 1; echo 1; seq 2 500)';
ROLLBACK;
DROP TABLE n_parent;
