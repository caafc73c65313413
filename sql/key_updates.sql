-- Whether primary keys are unique is judged when a statement has ended.
CREATE TABLE t (id int PRIMARY KEY, v int) USING rdmacc;
INSERT INTO t SELECT i, i FROM generate_series(1, 1000) i;
UPDATE t SET id = id + 1;
SELECT count(*), min(id), max(id), bool_and(id = v + 1) FROM t;
UPDATE t SET id = id - 1;
UPDATE t SET id = 1001 - id;
SELECT count(*), min(id), max(id), bool_and(id = 1001 - v) FROM t;
UPDATE t SET id = id % 1000 + 1 RETURNING id = (1001 - v) % 1000 + 1 AS as_returned \g /dev/null
SELECT count(*), bool_and(id = (1001 - v) % 1000 + 1) FROM t;
TRUNCATE t;
INSERT INTO t VALUES (1, 10), (2, 20), (3, 30), (4, 40);

-- a swap, a chain that ends in a row that goes, and rows that stay
UPDATE t SET id = 3 - id WHERE id < 3;
SELECT * FROM t ORDER BY id;
UPDATE t SET id = id + 1 WHERE id < 4;
UPDATE t SET id = id + 1 WHERE id IN (1, 3);
UPDATE t SET id = 4 WHERE id IN (1, 2);
UPDATE t SET id = CASE id WHEN 1 THEN 2 ELSE id END;
UPDATE t SET id = CASE id WHEN 4 THEN 3 ELSE id END, v = v + 1;
SELECT * FROM t ORDER BY id;
WITH gone AS (DELETE FROM t WHERE id = 4) UPDATE t SET id = id + 1 WHERE id = 3;
SELECT * FROM t ORDER BY id;
MERGE INTO t USING (VALUES (1, 2), (2, 1), (4, NULL)) s(old, new) ON t.id = s.old
  WHEN MATCHED AND s.new IS NULL THEN DELETE
  WHEN MATCHED THEN UPDATE SET id = s.new;
SELECT * FROM t ORDER BY id;
MERGE INTO t USING (VALUES (1, 2), (7, 7)) s(old, new) ON t.id = s.old
  WHEN MATCHED THEN UPDATE SET id = s.new
  WHEN NOT MATCHED THEN INSERT VALUES (s.new, 70);
SELECT * FROM t ORDER BY id;

-- within a transaction: own rows, savepoints, and what a failed statement leaves
BEGIN;
INSERT INTO t VALUES (3, 300);
UPDATE t SET id = id + 1;
SAVEPOINT s;
UPDATE t SET id = 4;
ROLLBACK TO s;
UPDATE t SET id = id + 1;
SELECT * FROM t ORDER BY id;
UPDATE t SET v = v + 1 WHERE id = 4;
DELETE FROM t WHERE id = 3;
SELECT * FROM t ORDER BY id;
ROLLBACK;

-- triggers see old and new rows, and may themselves write the table
CREATE TABLE log (line text);
CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO told VALUES (format('%s %s: %s -> %s', TG_WHEN, TG_OP, OLD.id || ',' || OLD.v, NEW.id || ',' || NEW.v));
  RETURN NEW;
END $$;
CREATE TABLE told (line text) USING rdmacc;
CREATE TRIGGER b BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION tell();
CREATE TRIGGER a AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION tell();
INSERT INTO t VALUES (3, 30);
UPDATE t SET id = id + 1;
SELECT * FROM told ORDER BY line;
CREATE FUNCTION count_rows() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE NOTICE '% old, % new, %', (SELECT string_agg(id::text, ',' ORDER BY id) FROM old_rows),
    (SELECT string_agg(id::text, ',' ORDER BY id) FROM new_rows),
    (SELECT string_agg(id::text, ',' ORDER BY id) FROM t);
  UPDATE t SET id = id + 10 WHERE id < 10;
  RETURN NULL;
END $$;
DROP TRIGGER a ON t;
DROP TRIGGER b ON t;
CREATE TRIGGER s AFTER UPDATE ON t REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  FOR EACH STATEMENT WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION count_rows();
UPDATE t SET id = id - 1;
SELECT * FROM t ORDER BY id;
DROP TRIGGER s ON t;

-- references follow row by row, so that a key has to be free; or they forbid it, as far as they do
CREATE TABLE child (id int PRIMARY KEY, p int REFERENCES t ON UPDATE CASCADE) USING rdmacc;
INSERT INTO child SELECT row_number() OVER (), id FROM t;
\set VERBOSITY terse
UPDATE t SET id = 24 - id;
\set VERBOSITY default
UPDATE t SET id = id + 100;
SELECT count(*), count(t.id) FROM child LEFT JOIN t ON t.id = p;
ALTER TABLE child DROP CONSTRAINT child_p_fkey, ADD FOREIGN KEY (p) REFERENCES t;
UPDATE t SET id = id + 1;
UPDATE t SET id = 224 - id;
SELECT count(*), count(t.id) FROM child LEFT JOIN t ON t.id = p;

-- keys of other kinds, several columns, ON CONFLICT, a cursor
CREATE TABLE named (a text, b numeric, v int, PRIMARY KEY (a, b)) USING rdmacc;
INSERT INTO named VALUES ('x', 1, 1), ('x', 1.5, 2), ('y', 1, 3);
UPDATE named SET b = b + 0.5;
UPDATE named SET a = CASE a WHEN 'x' THEN 'y' ELSE 'x' END;
SELECT * FROM named ORDER BY v;
INSERT INTO named VALUES ('y', 1.5, 0) ON CONFLICT (a, b) DO UPDATE SET b = 9;
INSERT INTO named VALUES ('y', 9, 0) ON CONFLICT (a, b) DO UPDATE SET b = 2;
SELECT * FROM named ORDER BY v;
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM named WHERE a = 'y' AND b = 9 FOR UPDATE;
FETCH c;
UPDATE named SET b = 10 WHERE CURRENT OF c;
COMMIT;
SELECT * FROM named ORDER BY v;

-- ON CONFLICT DO UPDATE takes no keys: its next row would be the one that took them
CREATE TABLE met (id int PRIMARY KEY, u int) USING rdmacc;
INSERT INTO met VALUES (1, 10), (2, 20), (4, 40);
INSERT INTO met VALUES (1, 0), (2, 0) ON CONFLICT (id) DO UPDATE SET id = met.id + 1;
INSERT INTO met VALUES (1, 0), (2, 0) ON CONFLICT (id) DO UPDATE SET id = 3 - met.id RETURNING *;
DO $$
BEGIN
  INSERT INTO met VALUES (1, 0), (2, 0) ON CONFLICT (id) DO UPDATE SET id = met.id + 1;
EXCEPTION WHEN unique_violation THEN
  RAISE NOTICE '%', SQLERRM;
END $$;
INSERT INTO met VALUES (4, 0), (2, 0), (1, 0) ON CONFLICT (id) DO UPDATE SET id = met.id + 1;
SELECT * FROM met ORDER BY id;
CREATE INDEX ON met (u);
INSERT INTO met VALUES (2, 0), (3, 0) ON CONFLICT (id) DO UPDATE SET id = met.id + 1;
ALTER TABLE met ADD UNIQUE (u);
INSERT INTO met VALUES (2, 1), (3, 2) ON CONFLICT (id) DO UPDATE SET id = met.id + 1;
INSERT INTO met VALUES (7, 10), (8, 20) ON CONFLICT (u) DO UPDATE SET id = 5 - met.id;
-- ... and meets none that another part of its statement has taken
WITH moved AS (UPDATE met SET id = 3 WHERE id = 2 RETURNING id)
  INSERT INTO met SELECT id, 0 FROM moved ON CONFLICT (id) DO UPDATE SET id = 9;
WITH moved AS (UPDATE met SET id = 3 WHERE id = 2 RETURNING id)
  INSERT INTO met VALUES (3, 0) ON CONFLICT (id) DO UPDATE SET u = (SELECT id FROM moved);
SELECT * FROM met ORDER BY id;

-- a trigger deletes the row that took the key of one that stays
CREATE FUNCTION take_and_delete() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (SELECT u FROM met WHERE id = 3) = 20 THEN
    NEW.id = 3;
  ELSE
    DELETE FROM met WHERE id = 3;
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER f BEFORE UPDATE ON met FOR EACH ROW EXECUTE FUNCTION take_and_delete();
UPDATE met SET u = u WHERE id <> 3;
MERGE INTO met USING (VALUES (2), (5)) s(id) ON met.id = s.id WHEN MATCHED THEN UPDATE SET u = met.u;
DROP TRIGGER f ON met;
CREATE TRIGGER f AFTER UPDATE ON met FOR EACH ROW EXECUTE FUNCTION take_and_delete();
WITH a AS (UPDATE met SET id = 3 WHERE id = 2 RETURNING u), b AS (DELETE FROM met WHERE id = 77 RETURNING u)
  SELECT * FROM a UNION ALL SELECT * FROM b;
DROP TRIGGER f ON met;
SELECT * FROM met ORDER BY id;

-- a trigger cannot take a key once more before the row that had it has left
CREATE FUNCTION take_each() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE k int;
BEGIN
  IF pg_trigger_depth() > 1 THEN RETURN NEW; END IF;
  FOR k IN SELECT id FROM met WHERE id < 70 LOOP
    BEGIN
      UPDATE met SET id = k WHERE id = 70;
      RAISE NOTICE 'has taken %', k;
    EXCEPTION WHEN unique_violation THEN NULL;
    END;
  END LOOP;
  RETURN NEW;
END $$;
TRUNCATE met;
INSERT INTO met SELECT i, i FROM generate_series(1, 6) i;
INSERT INTO met VALUES (70, 70);
CREATE TRIGGER f BEFORE UPDATE ON met FOR EACH ROW EXECUTE FUNCTION take_each();
UPDATE met SET id = id + 1 WHERE id < 7;
UPDATE met SET id = id + 1 WHERE id < 6;
SELECT * FROM met ORDER BY id;
DROP INDEX met_u_idx;
ALTER TABLE met DROP CONSTRAINT met_u_key;
UPDATE met SET id = id - 1 WHERE id < 8;
UPDATE met SET id = id + 1 WHERE id < 7;
SELECT * FROM met ORDER BY id;
DROP TABLE child, t, told, log, named, met;
DROP FUNCTION tell, count_rows, take_and_delete, take_each;

-- Unique columns beside the key: a row may have another one's until the statement ends ...
CREATE TABLE p (id int PRIMARY KEY, a int, b int, UNIQUE (a, b)) USING rdmacc;
INSERT INTO p SELECT i, 1, i FROM generate_series(1, 5) i;
UPDATE p SET b = b + 1;
UPDATE p SET b = 8 - b, id = id + 10;
MERGE INTO p USING (SELECT 8 - b AS new, b FROM p) s ON p.b = s.b WHEN MATCHED THEN UPDATE SET b = s.new;
SELECT * FROM p ORDER BY id;
\set VERBOSITY terse
-- ... but not where children follow it row by row,
CREATE TABLE c (id int PRIMARY KEY, a int, b int, FOREIGN KEY (a, b) REFERENCES p (a, b) ON UPDATE CASCADE)
  USING rdmacc;
INSERT INTO c SELECT * FROM p;
UPDATE p SET b = 8 - b;
UPDATE p SET b = 8 - b, id = id + 10;
MERGE INTO p USING (SELECT 8 - b AS new, b FROM p) s ON p.b = s.b WHEN MATCHED THEN UPDATE SET b = s.new;
WITH swapped AS (UPDATE p SET b = 8 - b RETURNING 1) SELECT count(*) FROM swapped;
UPDATE p SET b = b + 10;
SELECT c.id, p.id AS parent FROM c JOIN p USING (a, b) ORDER BY 1;
-- of whatever kind they are, and whenever they are checked;
CREATE TABLE u (a int, b int, UNIQUE (a, b)) PARTITION BY LIST (a);
CREATE TABLE u1 PARTITION OF u FOR VALUES IN (1) USING rdmacc;
CREATE TABLE uc (a int, b int, FOREIGN KEY (a, b) REFERENCES u (a, b)
  ON UPDATE SET NULL DEFERRABLE INITIALLY DEFERRED) USING heap;
INSERT INTO u VALUES (1, 1), (1, 2);
INSERT INTO uc VALUES (1, 1), (1, 2);
UPDATE u SET b = 3 - b;
UPDATE u SET b = b + 2;
SELECT * FROM uc;
-- nor with ON CONFLICT, whose next row goes by what is there
TRUNCATE c, p;
INSERT INTO p VALUES (1, 1, 1), (2, 1, 2);
INSERT INTO p VALUES (1, 1, 2), (2, 1, 1) ON CONFLICT (id) DO UPDATE SET b = excluded.b;
INSERT INTO p VALUES (10, 1, 1), (11, 1, 2) ON CONFLICT (a, b) DO UPDATE SET b = excluded.b + 1;
INSERT INTO p VALUES (10, 1, 1), (11, 1, 2) ON CONFLICT (a, b) DO UPDATE SET id = excluded.id, b = excluded.b + 1;
SELECT * FROM p ORDER BY id;
-- A part of a statement that is run to its end behind it is judged before triggers and references.
DELETE FROM p;
INSERT INTO p VALUES (1, 1, 1), (2, 1, 2);
DROP TABLE c;
-- Rows of another table, that the statement is in the midst of, can wait.
CREATE TABLE met (id int PRIMARY KEY, n int) USING rdmacc;
INSERT INTO met VALUES (1, 0), (2, 0);
WITH moved AS (UPDATE p SET b = 3 - b RETURNING id)
  INSERT INTO met SELECT id, 1 FROM moved ON CONFLICT (id) DO UPDATE SET n = met.n + 1;
SELECT * FROM p JOIN met USING (id) ORDER BY id;
DROP TABLE met;
UPDATE p SET b = 3 - b;
CREATE TABLE c (id int PRIMARY KEY, a int, b int, FOREIGN KEY (a, b) REFERENCES p (a, b)) USING rdmacc;
INSERT INTO c VALUES (1, 1, 1);
CREATE FUNCTION make_room() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM p WHERE id = 2;
  RETURN NULL;
END $$;
CREATE TRIGGER r AFTER UPDATE ON p FOR EACH ROW EXECUTE FUNCTION make_room();
WITH x AS (UPDATE p SET b = 2 WHERE id = 1) SELECT 1;
WITH x AS (UPDATE p SET b = 2 WHERE id = 1) INSERT INTO c VALUES (2, 1, 2);
WITH x AS (UPDATE p SET id = 2 WHERE id = 1) SELECT 1;
SELECT * FROM p ORDER BY id;
\set VERBOSITY default
DROP TABLE c, p, u, uc;
DROP FUNCTION make_room;
