-- Foreign keys among rdmacc tables, by PostgreSQL's own triggers.
CREATE TABLE parent (id int PRIMARY KEY, v text) USING rdmacc;
INSERT INTO parent SELECT i, 'p' || i FROM generate_series(1, 9) i;

-- the default: NO ACTION
CREATE TABLE child (id int PRIMARY KEY, p int REFERENCES parent, n int DEFAULT 0) USING rdmacc;
INSERT INTO child VALUES (1, 1), (2, 1), (3, NULL);
INSERT INTO child VALUES (4, 10);
INSERT INTO child SELECT 10 + i, i FROM generate_series(8, 10) i;
UPDATE child SET p = 10 WHERE id = 1;
UPDATE child SET p = 2 WHERE id = 1;
UPDATE child SET n = 1;
DELETE FROM parent WHERE id = 2;
UPDATE parent SET id = 20 WHERE id = 2;
UPDATE parent SET v = 'changed' WHERE id = 2;
-- checked at the statement's end: both go at once, and a new parent may take an old one's place
WITH gone AS (DELETE FROM child WHERE p = 2) DELETE FROM parent WHERE id = 2;
SELECT * FROM child ORDER BY id;
SELECT count(*) FROM parent;
UPDATE parent SET id = 8 - id WHERE id <= 7;
SELECT min(id), max(id) FROM parent;
-- what a transaction has written itself is seen
BEGIN;
INSERT INTO parent VALUES (100, 'new');
INSERT INTO child VALUES (100, 100);
SAVEPOINT s;
DELETE FROM parent WHERE id = 100;
ROLLBACK TO s;
DELETE FROM child WHERE id = 100;
DELETE FROM parent WHERE id = 100;
INSERT INTO child VALUES (100, 100);
ROLLBACK;
DROP TABLE child;

-- actions
CREATE TABLE on_delete (
  id int PRIMARY KEY,
  r int REFERENCES parent ON DELETE RESTRICT ON UPDATE RESTRICT,
  c int REFERENCES parent ON DELETE CASCADE ON UPDATE CASCADE,
  n int REFERENCES parent ON DELETE SET NULL ON UPDATE SET NULL,
  d int DEFAULT 9 REFERENCES parent ON DELETE SET DEFAULT ON UPDATE SET DEFAULT
) USING rdmacc;
INSERT INTO parent VALUES (2, 'again') ON CONFLICT DO NOTHING;
INSERT INTO on_delete VALUES (1, 1, NULL, NULL, 1), (2, NULL, 2, 2, 2), (3, NULL, 3, 4, 4),
  (5, NULL, 5, 5, 5);
DELETE FROM parent WHERE id = 1;
UPDATE parent SET id = 11 WHERE id = 1;
DELETE FROM parent WHERE id IN (2, 4);
UPDATE parent SET id = 15 WHERE id = 5;
SELECT * FROM on_delete ORDER BY id;
-- the default is not there any more
DELETE FROM on_delete WHERE id <> 1;
DELETE FROM parent WHERE id = 9;
BEGIN;
UPDATE on_delete SET r = NULL;
DELETE FROM parent WHERE id = 1;
ROLLBACK;
TRUNCATE parent;
TRUNCATE parent CASCADE;
SELECT count(*) FROM on_delete;
DROP TABLE parent;
DROP TABLE parent CASCADE;
DROP TABLE on_delete;

-- deferred constraints; a row that is written twice is checked as it is in the end
CREATE TABLE parent (id int PRIMARY KEY) USING rdmacc;
CREATE TABLE child (
  id int PRIMARY KEY,
  p int REFERENCES parent DEFERRABLE INITIALLY DEFERRED,
  q int REFERENCES parent DEFERRABLE,
  v text
) USING rdmacc;
BEGIN;
INSERT INTO child VALUES (1, 1, NULL, 'before its parent');
INSERT INTO parent VALUES (1);
COMMIT;
BEGIN;
INSERT INTO child VALUES (2, 2, NULL, 'without one');
COMMIT;
BEGIN;
INSERT INTO child VALUES (2, 2, NULL, 'without one');
UPDATE child SET v = 'and changed' WHERE id = 2;
COMMIT;
BEGIN;
INSERT INTO child VALUES (2, 2, NULL, 'without one');
SAVEPOINT s;
UPDATE child SET v = 'and changed' WHERE id = 2;
RELEASE s;
COMMIT;
BEGIN;
INSERT INTO child VALUES (2, 2, NULL, 'mended');
UPDATE child SET p = 1 WHERE id = 2;
COMMIT;
BEGIN;
UPDATE child SET p = 3 WHERE id = 2;
DELETE FROM child WHERE id = 2;
COMMIT;
BEGIN;
SET CONSTRAINTS ALL DEFERRED;
DELETE FROM parent;
INSERT INTO child VALUES (3, NULL, 3, 'late');
SET CONSTRAINTS child_q_fkey IMMEDIATE;
ROLLBACK;
BEGIN;
DELETE FROM parent;
COMMIT;
BEGIN;
DELETE FROM parent;
INSERT INTO parent VALUES (1);
COMMIT;
SELECT * FROM child;
DROP TABLE child, parent;

-- a tree in itself
CREATE TABLE tree (id int PRIMARY KEY, up int REFERENCES tree ON DELETE CASCADE) USING rdmacc;
INSERT INTO tree SELECT i, nullif(i / 2, 0) FROM generate_series(1, 31) i;
DELETE FROM tree WHERE id = 2;
SELECT count(*), count(*) FILTER (WHERE up IS NULL) AS roots FROM tree;
INSERT INTO tree VALUES (100, 101), (101, 100);
INSERT INTO tree VALUES (102, 103);
DELETE FROM tree WHERE id = 1;
SELECT * FROM tree ORDER BY id;
DROP TABLE tree;

-- several columns, other types on the two sides, MATCH FULL
CREATE TABLE pair (a int, b text, PRIMARY KEY (a, b)) USING rdmacc;
CREATE TABLE one (x bigint, y varchar(10), FOREIGN KEY (x, y) REFERENCES pair MATCH FULL
  ON UPDATE CASCADE) USING rdmacc;
INSERT INTO pair VALUES (1, 'one'), (2, 'two');
INSERT INTO one VALUES (1, 'one'), (NULL, NULL);
INSERT INTO one VALUES (1, NULL);
INSERT INTO one VALUES (1, 'two');
INSERT INTO one VALUES (4294967297, 'one');
UPDATE pair SET b = 'uno' WHERE a = 1;
SELECT * FROM one ORDER BY x;
DROP TABLE one, pair;
CREATE TABLE amounts (n numeric PRIMARY KEY) USING rdmacc;
CREATE TABLE uses (n numeric REFERENCES amounts, i int REFERENCES amounts) USING rdmacc;
INSERT INTO amounts VALUES (1.50), (2);
INSERT INTO uses VALUES (1.5, 2);
INSERT INTO uses VALUES (1.5, 3);
UPDATE amounts SET n = 1.5000 WHERE n = 1.5;
UPDATE amounts SET n = 1.6 WHERE n = 1.5;
DROP TABLE uses, amounts;

-- added and validated later
CREATE TABLE parent (id int PRIMARY KEY) USING rdmacc;
CREATE TABLE child (id int PRIMARY KEY, p int) USING rdmacc;
INSERT INTO parent SELECT generate_series(1, 3);
INSERT INTO child SELECT i, i FROM generate_series(1, 4) i;
ALTER TABLE child ADD CONSTRAINT c FOREIGN KEY (p) REFERENCES parent;
ALTER TABLE child ADD CONSTRAINT c FOREIGN KEY (p) REFERENCES parent NOT VALID;
INSERT INTO child VALUES (5, 5);
UPDATE child SET id = 40 WHERE id = 4;
ALTER TABLE child VALIDATE CONSTRAINT c;
DELETE FROM child WHERE p = 4;
ALTER TABLE child VALIDATE CONSTRAINT c;
ALTER TABLE child ALTER CONSTRAINT c DEFERRABLE INITIALLY DEFERRED;
BEGIN;
INSERT INTO child VALUES (5, 5);
COMMIT;
-- the referenced key
ALTER TABLE parent DROP CONSTRAINT parent_pkey;
ALTER TABLE parent ALTER id TYPE bigint;
DELETE FROM parent WHERE id = 1;
ALTER TABLE child DISABLE TRIGGER ALL;
INSERT INTO child VALUES (6, 6);
ALTER TABLE child ENABLE TRIGGER ALL;
ALTER TABLE child DROP CONSTRAINT c;
DELETE FROM parent WHERE id = 1;
DROP TABLE parent, child;

-- partitioned, on both sides
CREATE TABLE parent (id int PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE parent_1 PARTITION OF parent FOR VALUES FROM (0) TO (10) USING rdmacc;
CREATE TABLE parent_2 PARTITION OF parent FOR VALUES FROM (10) TO (20) USING rdmacc;
CREATE TABLE child (id int, p int REFERENCES parent ON DELETE CASCADE ON UPDATE CASCADE)
  PARTITION BY HASH (id);
CREATE TABLE child_0 PARTITION OF child FOR VALUES WITH (MODULUS 2, REMAINDER 0) USING rdmacc;
CREATE TABLE child_1 PARTITION OF child FOR VALUES WITH (MODULUS 2, REMAINDER 1) USING rdmacc;
INSERT INTO parent SELECT generate_series(5, 15);
INSERT INTO child SELECT i, i FROM generate_series(5, 15) i;
INSERT INTO child VALUES (1, 1);
DELETE FROM parent WHERE id IN (7, 12);
UPDATE parent SET id = 1 WHERE id = 5;
UPDATE parent SET id = 19 WHERE id = 6;
UPDATE child SET p = 3 WHERE id = 8;
SELECT * FROM child WHERE id <> p OR id < 9 ORDER BY id;
SELECT count(*) FROM child;
CREATE TABLE parent_3 (id int PRIMARY KEY) USING rdmacc;
ALTER TABLE parent ATTACH PARTITION parent_3 FOR VALUES FROM (20) TO (30);
INSERT INTO parent VALUES (25);
INSERT INTO child VALUES (25, 25);
ALTER TABLE parent DETACH PARTITION parent_3;
DELETE FROM child WHERE p = 25;
ALTER TABLE parent DETACH PARTITION parent_3;
INSERT INTO child VALUES (25, 25);
CREATE TABLE child_d (id int, p int) USING rdmacc;
INSERT INTO child_d VALUES (1, 77);
ALTER TABLE child DETACH PARTITION child_1;
DROP TABLE child, child_1, child_d, parent, parent_3;

-- rules that keep rows in order: triggers, RLS, privileges
CREATE TABLE parent (id int PRIMARY KEY) USING rdmacc;
CREATE TABLE child (id int PRIMARY KEY, p int REFERENCES parent ON DELETE CASCADE) USING rdmacc;
CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE NOTICE '% of % %', TG_OP, TG_TABLE_NAME, coalesce(OLD.id, NEW.id);
  RETURN NULL;
END $$;
CREATE TRIGGER told AFTER DELETE ON child FOR EACH ROW EXECUTE FUNCTION tell();
INSERT INTO parent VALUES (1), (2);
INSERT INTO child VALUES (1, 1), (2, 2);
CREATE ROLE somebody;
GRANT INSERT, SELECT ON child TO somebody;
GRANT DELETE, SELECT ON parent TO somebody;
ALTER TABLE child ENABLE ROW LEVEL SECURITY;
SET ROLE somebody;
SELECT count(*) FROM child;
DELETE FROM parent WHERE id = 1;
RESET ROLE;
SELECT * FROM child;
DROP TABLE child, parent;
DROP FUNCTION tell;
DROP ROLE somebody;
