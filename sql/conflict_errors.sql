-- Errors of transactions: what they are called, and what is left afterwards.
CREATE TABLE t (id int PRIMARY KEY, v text) USING rdmacc;
CREATE TABLE other (id int, v text) USING heap;
INSERT INTO t VALUES (1, 'one');

-- rows of rdmacc tables and of other ones do not mix in one transaction, if so wanted
SET rdmacc.mixed_transactions = off;
BEGIN;
INSERT INTO t VALUES (2, 'two');
INSERT INTO other VALUES (2, 'two');
COMMIT;
SELECT count(*) FROM t;
SELECT count(*) FROM other;
BEGIN;
COPY other FROM stdin;
3	three
\.
UPDATE t SET v = 'x' WHERE id = 1;
COMMIT;
SELECT * FROM t;
SELECT count(*) FROM other;
-- reading does
BEGIN;
INSERT INTO other SELECT * FROM t;
COMMIT;
BEGIN;
SELECT count(*) FROM other;
INSERT INTO t VALUES (2, 'two');
COMMIT;
INSERT INTO t SELECT id + 10, v FROM other;
-- a write that changed nothing, or was rolled back, is none
BEGIN;
UPDATE other SET v = 'y' WHERE id = 77;
SAVEPOINT a;
INSERT INTO other VALUES (4, 'four');
ROLLBACK TO a;
INSERT INTO t VALUES (3, 'three');
COMMIT;
SELECT count(*) FROM t;
-- temporary tables and sequences are nobody's concern
CREATE TEMPORARY TABLE scratch (id int);
CREATE SEQUENCE numbers;
BEGIN;
INSERT INTO scratch VALUES (1);
INSERT INTO t VALUES (100 + nextval('numbers'), 'numbered');
COMMIT;
SELECT id FROM t WHERE v = 'numbered';
-- triggers and functions count, too
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO other VALUES (new.id, 'by trigger');
  RETURN NULL;
END $$;
CREATE TRIGGER noting AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION note();
INSERT INTO t VALUES (50, 'fifty');
DROP TRIGGER noting ON t;
SELECT count(*) FROM t WHERE id = 50;

-- PREPARE TRANSACTION
BEGIN;
INSERT INTO t VALUES (60, 'sixty');
PREPARE TRANSACTION 'one';
SELECT count(*) FROM t WHERE id = 60;

-- a failed transaction goes on only after ROLLBACK
BEGIN;
INSERT INTO t VALUES (1, 'duplicate');
SELECT 1;
ROLLBACK;
INSERT INTO t VALUES (70, 'seventy');
SELECT id FROM t WHERE id = 70;
DROP TABLE t, other;
DROP SEQUENCE numbers;
DROP FUNCTION note;
