-- Triggers see old and new rows, when they are deferred, too.
CREATE TABLE t (id int PRIMARY KEY, v text) USING rdmacc;
CREATE TABLE loose (id int, v text) USING rdmacc;
CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE NOTICE '% % % on %: old %, new %', tg_when, tg_op, tg_level, tg_table_name,
    CASE WHEN tg_op <> 'INSERT' AND tg_level = 'ROW' THEN old END,
    CASE WHEN tg_op <> 'DELETE' AND tg_level = 'ROW' THEN new END;
  RETURN CASE WHEN tg_op = 'DELETE' THEN old ELSE new END;
END $$;
CREATE TRIGGER before_row BEFORE INSERT OR UPDATE OR DELETE ON t FOR EACH ROW EXECUTE FUNCTION tell();
CREATE TRIGGER after_row AFTER INSERT OR UPDATE OR DELETE ON t FOR EACH ROW EXECUTE FUNCTION tell();
CREATE TRIGGER after_statement AFTER INSERT OR UPDATE OR DELETE ON t EXECUTE FUNCTION tell();
CREATE TRIGGER after_row AFTER INSERT OR UPDATE OR DELETE ON loose FOR EACH ROW EXECUTE FUNCTION tell();
INSERT INTO t VALUES (1, 'one');
UPDATE t SET v = 'uno' WHERE id = 1;
UPDATE t SET id = 2 WHERE id = 1;
INSERT INTO t VALUES (2, 'conflict') ON CONFLICT (id) DO UPDATE SET v = excluded.v;
DELETE FROM t WHERE id = 2;
INSERT INTO loose VALUES (1, 'one'), (1, 'two');
UPDATE loose SET v = v || '!' WHERE v = 'two';
DELETE FROM loose WHERE v = 'two!';
DELETE FROM loose WHERE id = 1;
COPY t FROM stdin;
7	seven
\.
DROP TRIGGER before_row ON t;
DROP TRIGGER after_row ON t;
DROP TRIGGER after_statement ON t;

-- deferred until the end, after more changes of the same row
CREATE CONSTRAINT TRIGGER late AFTER INSERT OR UPDATE OR DELETE ON t
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION tell();
BEGIN;
UPDATE t SET v = 'first' WHERE id = 7;
UPDATE t SET v = 'second' WHERE id = 7;
INSERT INTO t VALUES (8, 'eight');
DELETE FROM t WHERE id = 7;
SELECT * FROM t;
COMMIT;
DROP TRIGGER late ON t;

-- rows that a BEFORE trigger changes, refuses, or changes behind our back
CREATE FUNCTION meddle() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF new.v = 'refuse' THEN RETURN NULL; END IF;
  IF new.v = 'behind' THEN UPDATE t SET v = 'changed' WHERE id = old.id; END IF;
  new.v := upper(new.v);
  RETURN new;
END $$;
CREATE TRIGGER meddling BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION meddle();
UPDATE t SET v = 'loud' WHERE id = 8 RETURNING *;
UPDATE t SET v = 'refuse' WHERE id = 8 RETURNING *;
UPDATE t SET v = 'behind' WHERE id = 8 RETURNING *;
SELECT * FROM t;
DROP TRIGGER meddling ON t;

-- transition tables
CREATE FUNCTION count_rows() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE NOTICE '% old, % new', (SELECT count(*) FROM old_rows), (SELECT count(*) FROM new_rows);
  RETURN NULL;
END $$;
CREATE TRIGGER counting AFTER UPDATE ON t REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  EXECUTE FUNCTION count_rows();
INSERT INTO t SELECT i, 'v' FROM generate_series(10, 14) i;
UPDATE t SET v = 'w' WHERE id >= 10;

-- a trigger that writes to another rdmacc table
CREATE TABLE history (id int, was text) USING rdmacc;
CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO history VALUES (old.id, old.v);
  RETURN NULL;
END $$;
CREATE TRIGGER keeping AFTER DELETE ON t FOR EACH ROW EXECUTE FUNCTION keep();
DELETE FROM t WHERE id > 12;
SELECT * FROM history ORDER BY id;
DROP TABLE t, loose, history;
DROP FUNCTION tell, meddle, count_rows, keep;

-- a deferred trigger finds a row again that a cursor has found, though the cursor fails
CREATE TABLE deferred (id int PRIMARY KEY, v text) USING rdmacc;
INSERT INTO deferred VALUES (1, 'one'), (2, 'two');
CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE NOTICE '% to %', old.v, new.v;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER tell AFTER UPDATE ON deferred DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION tell();
BEGIN;
DECLARE c CURSOR FOR SELECT id, 1 / (2 - id) AS one FROM deferred
  WHERE id = ANY (ARRAY[1, 2]) FOR UPDATE;
FETCH c;
UPDATE deferred SET v = 'changed' WHERE CURRENT OF c;
SAVEPOINT a;
FETCH c;
ROLLBACK TO a;
SELECT * FROM deferred WHERE id = 1;
COMMIT;
DROP TABLE deferred;
DROP FUNCTION tell;

-- A partition's trigger sees the rows that the statement has put into others.
CREATE TABLE parted (id int PRIMARY KEY, v int) PARTITION BY RANGE (id);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (1000) USING rdmacc;
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (1000) TO (2000) USING rdmacc;
CREATE TABLE parted_3 PARTITION OF parted FOR VALUES FROM (2000) TO (3000) USING heap;
CREATE FUNCTION count_one() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN UPDATE parted SET v = v + 1 WHERE id = NEW.id % 1000; RETURN NEW; END $$;
CREATE TRIGGER count_one BEFORE INSERT ON parted_2 FOR EACH ROW EXECUTE FUNCTION count_one();
CREATE TRIGGER count_one AFTER INSERT ON parted_3 FOR EACH ROW EXECUTE FUNCTION count_one();
INSERT INTO parted SELECT i + 1000 * j, 0 FROM generate_series(0, 2) j, generate_series(1, 100) i;
SELECT tableoid::regclass, count(*), sum(v) FROM parted GROUP BY 1 ORDER BY 1;
DROP TABLE parted;
DROP FUNCTION count_one;

-- Updates that change nothing are suppressed, in tables without text, too, and where it is NULL.
CREATE TABLE numbers (id int PRIMARY KEY, n int, d date) USING rdmacc;
CREATE TABLE texts (id int PRIMARY KEY, v text) USING rdmacc;
CREATE TABLE loose (n int, b bool) USING rdmacc;
INSERT INTO numbers VALUES (1, 1, '2001-01-01'), (2, 2, NULL), (3, NULL, NULL);
INSERT INTO texts VALUES (1, 'one'), (2, NULL), (3, '');
INSERT INTO loose VALUES (1, true), (2, NULL), (NULL, NULL);
CREATE TRIGGER suppress BEFORE UPDATE ON numbers
  FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger();
CREATE TRIGGER suppress BEFORE UPDATE ON texts
  FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger();
CREATE TRIGGER suppress BEFORE UPDATE ON loose
  FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger();
UPDATE numbers SET n = n RETURNING *;
UPDATE numbers SET n = 2 WHERE n < 3 RETURNING *;
UPDATE numbers SET n = 2, d = NULL WHERE id = 2 RETURNING *;
UPDATE numbers SET n = 3 WHERE id = 3 RETURNING *;
UPDATE texts SET v = v RETURNING *;
UPDATE texts SET v = coalesce(v, '') RETURNING *;
UPDATE texts SET v = NULL WHERE id > 1 RETURNING *;
UPDATE texts SET v = NULL RETURNING *;
UPDATE texts SET v = NULL RETURNING *;
UPDATE loose SET b = b RETURNING *;
UPDATE loose SET b = true WHERE n IS NOT NULL RETURNING *;
-- of rows that the transaction has written itself, through a cursor, and in place of an insert
BEGIN;
UPDATE numbers SET n = 7 WHERE id = 1 RETURNING *;
UPDATE numbers SET n = 7 WHERE id < 3 RETURNING *;
DECLARE c CURSOR FOR SELECT * FROM numbers WHERE id = 1;
FETCH c;
UPDATE numbers SET n = 7 WHERE CURRENT OF c RETURNING *;
INSERT INTO numbers VALUES (1, 7), (2, 8) ON CONFLICT (id) DO UPDATE SET n = excluded.n RETURNING *;
COMMIT;
SELECT * FROM numbers ORDER BY id;
DROP TABLE numbers, texts, loose;
