-- Savepoints and PL/pgSQL exception blocks.
CREATE TABLE t (id int PRIMARY KEY, v text) USING rdmacc;
INSERT INTO t VALUES (1, 'one'), (2, 'two');
BEGIN;
UPDATE t SET v = 'outer' WHERE id = 1;
SAVEPOINT a;
UPDATE t SET v = 'in a' WHERE id = 1;
INSERT INTO t VALUES (3, 'in a');
SAVEPOINT b;
DELETE FROM t WHERE id IN (1, 2, 3);
SELECT count(*) FROM t;
ROLLBACK TO b;
SELECT * FROM t ORDER BY id;
RELEASE b;
SAVEPOINT c;
INSERT INTO t VALUES (1, 'duplicate');
ROLLBACK TO c;
INSERT INTO t VALUES (4, 'in c');
RELEASE c;
SELECT * FROM t ORDER BY id;
ROLLBACK TO a;
SELECT * FROM t ORDER BY id;
INSERT INTO t VALUES (5, 'after a');
COMMIT;
SELECT * FROM t ORDER BY id;

-- released levels belong to their parent
BEGIN;
SAVEPOINT a;
SAVEPOINT b;
INSERT INTO t VALUES (6, 'in b');
RELEASE b;
SAVEPOINT d;
INSERT INTO t VALUES (7, 'in d');
ROLLBACK TO d;
ROLLBACK TO a;
INSERT INTO t VALUES (8, 'kept');
COMMIT;
SELECT * FROM t ORDER BY id;

-- errors caught
CREATE FUNCTION put(k int, value text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO t VALUES (k, value);
  RETURN 'inserted';
EXCEPTION WHEN unique_violation THEN
  UPDATE t SET v = value WHERE id = k;
  RETURN 'updated: ' || sqlerrm;
END $$;
SELECT put(10, 'ten');
SELECT put(10, 'ten again');
SELECT put(k, 'many') FROM generate_series(9, 12) k;
SELECT * FROM t ORDER BY id;
DO $$
BEGIN
  FOR i IN 1..50 LOOP
    BEGIN
      INSERT INTO t VALUES (100 + i, 'loop');
      IF i % 5 <> 0 THEN RAISE EXCEPTION 'no'; END IF;
    EXCEPTION WHEN raise_exception THEN NULL;
    END;
  END LOOP;
END $$;
SELECT id FROM t WHERE v = 'loop' ORDER BY id;

-- a row changed by a command that was rolled back can be changed again
BEGIN;
SAVEPOINT a;
UPDATE t SET v = 'first' WHERE id = 1;
ROLLBACK TO a;
UPDATE t SET v = 'second' WHERE id = 1;
COMMIT;
SELECT v FROM t WHERE id = 1;

-- scans that an error has passed by go with their savepoint, cursors do not
BEGIN;
DECLARE d CURSOR FOR SELECT 'row' AS a FROM t;
DO $$
BEGIN
  FOR i IN 1..40 LOOP
    BEGIN
      PERFORM 1 / (id - id) FROM t FOR UPDATE;
    EXCEPTION WHEN division_by_zero THEN NULL;
    END;
  END LOOP;
END $$;
SELECT count(*) < 10 AS few FROM pg_backend_memory_contexts WHERE name = 'rdmacc row handle block';
SAVEPOINT a;
FETCH d;
ROLLBACK TO a;
FETCH d;
SAVEPOINT b;
FETCH d;
RELEASE b;
SELECT 1 / 0;
ROLLBACK TO a;
FETCH d;
COMMIT;

-- procedures that commit
CREATE PROCEDURE fill(first int, last int) LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN first..last LOOP
    INSERT INTO t VALUES (i, 'committed');
    COMMIT;
  END LOOP;
END $$;
CALL fill(201, 203);
CALL fill(202, 203);
SELECT id FROM t WHERE v = 'committed' ORDER BY id;
DROP PROCEDURE fill;
DROP FUNCTION put;
DROP TABLE t;

-- entries of an index wait for the commit: what is rolled back has none, what reads the index sees all
CREATE TABLE t (id int PRIMARY KEY, v int, w int) USING rdmacc;
CREATE INDEX t_v ON t (v);
SET enable_seqscan = off;
BEGIN;
INSERT INTO t VALUES (1, 10);
SAVEPOINT a;
INSERT INTO t VALUES (2, 20);
ROLLBACK TO a;
INSERT INTO t VALUES (3, 30);
SAVEPOINT b;
INSERT INTO t VALUES (4, 40);
RELEASE b;
SELECT v FROM t WHERE v > 0 ORDER BY v;
INSERT INTO t VALUES (5, 50);
UPDATE t SET v = 51 WHERE id = 5;
INSERT INTO t VALUES (6, 60);
DELETE FROM t WHERE id = 6;
INSERT INTO t VALUES (7, 70);
SAVEPOINT c;
SAVEPOINT d;
INSERT INTO t VALUES (8, 80);
RELEASE d;
ROLLBACK TO c;
CREATE INDEX t_w ON t (w);
INSERT INTO t VALUES (9, 90, 9);
DROP INDEX t_w;
COMMIT;
SELECT v FROM t WHERE v > 0 ORDER BY v;
BEGIN;
INSERT INTO t SELECT i, i FROM generate_series(100, 299) i;
SELECT count(*) FROM t WHERE v BETWEEN 150 AND 159;
DECLARE c CURSOR FOR SELECT v FROM t WHERE v > 295 ORDER BY v;
INSERT INTO t VALUES (300, 300);
FETCH 10 FROM c;
ROLLBACK;
SELECT v FROM t WHERE v > 0 ORDER BY v;
SELECT * FROM rdmacc.verify('t');
RESET enable_seqscan;
DROP TABLE t;
