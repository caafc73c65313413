-- Foreign keys between rdmacc tables and heaps, both ways.
CREATE TABLE ours (id int PRIMARY KEY, v text) USING rdmacc;
CREATE TABLE heap (id int PRIMARY KEY, v text) USING heap;
INSERT INTO ours SELECT i, 'p' || i FROM generate_series(1, 9) i;
INSERT INTO heap SELECT i, 'p' || i FROM generate_series(1, 9) i;

-- the default: NO ACTION
CREATE TABLE of_ours (id int PRIMARY KEY, p int REFERENCES ours, n int DEFAULT 0) USING heap;
CREATE TABLE of_heap (id int PRIMARY KEY, p int REFERENCES heap, n int DEFAULT 0) USING rdmacc;
INSERT INTO of_ours VALUES (1, 1), (2, 1), (3, NULL);
INSERT INTO of_heap VALUES (1, 1), (2, 1), (3, NULL);
INSERT INTO of_ours VALUES (4, 10);
INSERT INTO of_heap VALUES (4, 10);
UPDATE of_ours SET p = 10 WHERE id = 1;
UPDATE of_heap SET p = 10 WHERE id = 1;
UPDATE of_ours SET p = 2 WHERE id = 1;
UPDATE of_heap SET p = 2 WHERE id = 1;
DELETE FROM ours WHERE id = 2;
DELETE FROM heap WHERE id = 2;
UPDATE ours SET id = 20 WHERE id = 2;
UPDATE heap SET id = 20 WHERE id = 2;
UPDATE ours SET v = 'changed' WHERE id = 2;
UPDATE heap SET v = 'changed' WHERE id = 2;
DELETE FROM ours WHERE id = 9;
DELETE FROM heap WHERE id = 9;
-- many children of few parents; the parents stay as they are
INSERT INTO of_ours SELECT i, 1 + i % 3, i FROM generate_series(100, 1099) i;
INSERT INTO of_heap SELECT i, 1 + i % 3, i FROM generate_series(100, 1099) i;
SELECT ours.id, ours.v, count(*) FROM ours JOIN of_ours c ON c.p = ours.id GROUP BY 1, 2 ORDER BY 1;
SELECT heap.id, heap.v, count(*) FROM heap JOIN of_heap c ON c.p = heap.id GROUP BY 1, 2 ORDER BY 1;
-- a child and its parent in one transaction, and neither of them after a rollback
BEGIN;
INSERT INTO ours VALUES (30, 'new');
INSERT INTO of_ours VALUES (30, 30);
SAVEPOINT s;
INSERT INTO of_ours VALUES (31, 31);
ROLLBACK TO s;
DELETE FROM ours WHERE id = 30;
ROLLBACK TO s;
INSERT INTO heap VALUES (30, 'new');
INSERT INTO of_heap VALUES (30, 30);
COMMIT;
BEGIN;
DELETE FROM of_ours WHERE id = 30;
DELETE FROM ours WHERE id = 30;
DELETE FROM of_heap WHERE id = 30;
DELETE FROM heap WHERE id = 30;
ROLLBACK;
SELECT (SELECT count(*) FROM ours WHERE id >= 30), (SELECT count(*) FROM of_ours WHERE p >= 30),
  (SELECT count(*) FROM heap WHERE id >= 30), (SELECT count(*) FROM of_heap WHERE p >= 30);
TRUNCATE ours;
TRUNCATE heap;
TRUNCATE ours, of_ours;
TRUNCATE heap CASCADE;
SELECT count(*) FROM of_heap;
DROP TABLE of_ours, of_heap;

-- actions
INSERT INTO ours SELECT i, 'p' || i FROM generate_series(1, 9) i;
INSERT INTO heap SELECT i, 'p' || i FROM generate_series(1, 9) i;
CREATE TABLE of_ours (
  id int PRIMARY KEY,
  r int REFERENCES ours ON DELETE RESTRICT ON UPDATE RESTRICT,
  c int REFERENCES ours ON DELETE CASCADE ON UPDATE CASCADE,
  n int REFERENCES ours ON DELETE SET NULL ON UPDATE SET NULL,
  d int DEFAULT 9 REFERENCES ours ON DELETE SET DEFAULT ON UPDATE SET DEFAULT
) USING heap;
CREATE TABLE of_heap (
  id int PRIMARY KEY,
  r int REFERENCES heap ON DELETE RESTRICT ON UPDATE RESTRICT,
  c int REFERENCES heap ON DELETE CASCADE ON UPDATE CASCADE,
  n int REFERENCES heap ON DELETE SET NULL ON UPDATE SET NULL,
  d int DEFAULT 9 REFERENCES heap ON DELETE SET DEFAULT ON UPDATE SET DEFAULT
) USING rdmacc;
INSERT INTO of_ours VALUES (1, 1, NULL, NULL, 1), (2, NULL, 2, 2, 2), (3, NULL, 3, 4, 4),
  (5, NULL, 5, 5, 5);
INSERT INTO of_heap SELECT * FROM of_ours;
DELETE FROM ours WHERE id = 1;
DELETE FROM heap WHERE id = 1;
DELETE FROM ours WHERE id IN (2, 4);
DELETE FROM heap WHERE id IN (2, 4);
UPDATE ours SET id = 15 WHERE id = 5;
UPDATE heap SET id = 15 WHERE id = 5;
SELECT * FROM of_ours ORDER BY id;
SELECT * FROM of_heap ORDER BY id;
DROP TABLE of_ours, of_heap;

-- a chain through both kinds
CREATE TABLE chain_1 (id int PRIMARY KEY) USING heap;
CREATE TABLE chain_2 (id int PRIMARY KEY REFERENCES chain_1 ON DELETE CASCADE ON UPDATE CASCADE)
  USING rdmacc;
CREATE TABLE chain_3 (id int PRIMARY KEY REFERENCES chain_2 ON DELETE CASCADE ON UPDATE CASCADE)
  USING heap;
CREATE TABLE chain_4 (id int PRIMARY KEY REFERENCES chain_3 ON DELETE CASCADE ON UPDATE CASCADE)
  USING rdmacc;
INSERT INTO chain_1 VALUES (1), (2), (3);
INSERT INTO chain_2 VALUES (1), (2), (3);
INSERT INTO chain_3 VALUES (1), (2), (3);
INSERT INTO chain_4 VALUES (1), (2), (3);
DELETE FROM chain_1 WHERE id = 2;
UPDATE chain_1 SET id = 30 WHERE id = 3;
SELECT * FROM chain_2 NATURAL JOIN chain_3 NATURAL JOIN chain_4 ORDER BY id;
DROP TABLE chain_1, chain_2, chain_3, chain_4;

-- deferred constraints
CREATE TABLE of_ours (id int PRIMARY KEY, p int REFERENCES ours DEFERRABLE INITIALLY DEFERRED)
  USING heap;
CREATE TABLE of_heap (id int PRIMARY KEY, p int REFERENCES heap DEFERRABLE INITIALLY DEFERRED)
  USING rdmacc;
BEGIN;
INSERT INTO of_ours VALUES (1, 100);
INSERT INTO of_heap VALUES (1, 100);
INSERT INTO ours VALUES (100);
INSERT INTO heap VALUES (100);
COMMIT;
BEGIN;
INSERT INTO of_ours VALUES (2, 200);
COMMIT;
BEGIN;
INSERT INTO of_heap VALUES (2, 200);
COMMIT;
BEGIN;
DELETE FROM ours WHERE id = 100;
COMMIT;
BEGIN;
DELETE FROM heap WHERE id = 100;
COMMIT;
DROP TABLE of_ours, of_heap;

-- added and validated later
CREATE TABLE of_ours (p int) USING heap;
CREATE TABLE of_heap (p int) USING rdmacc;
INSERT INTO of_ours VALUES (100), (200);
INSERT INTO of_heap VALUES (100), (200);
ALTER TABLE of_ours ADD FOREIGN KEY (p) REFERENCES ours;
ALTER TABLE of_heap ADD FOREIGN KEY (p) REFERENCES heap;
ALTER TABLE of_ours ADD CONSTRAINT c FOREIGN KEY (p) REFERENCES ours NOT VALID;
ALTER TABLE of_heap ADD CONSTRAINT c FOREIGN KEY (p) REFERENCES heap NOT VALID;
ALTER TABLE of_ours VALIDATE CONSTRAINT c;
ALTER TABLE of_heap VALIDATE CONSTRAINT c;
DELETE FROM of_ours WHERE p = 200;
DELETE FROM of_heap WHERE p = 200;
ALTER TABLE of_ours VALIDATE CONSTRAINT c;
ALTER TABLE of_heap VALIDATE CONSTRAINT c;
-- tables change their kind
ALTER TABLE of_ours SET ACCESS METHOD rdmacc;
ALTER TABLE of_heap SET ACCESS METHOD heap;
DELETE FROM ours WHERE id = 100;
DELETE FROM heap WHERE id = 100;
ALTER TABLE ours SET ACCESS METHOD heap;
ALTER TABLE heap SET ACCESS METHOD rdmacc;
DELETE FROM ours WHERE id = 100;
DELETE FROM heap WHERE id = 100;
INSERT INTO of_ours VALUES (300);
INSERT INTO of_heap VALUES (300);
DROP TABLE of_ours, of_heap, ours, heap;

-- partitions of both kinds
CREATE TABLE parent (id int PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE parent_1 PARTITION OF parent FOR VALUES FROM (0) TO (10) USING heap;
CREATE TABLE parent_2 PARTITION OF parent FOR VALUES FROM (10) TO (20) USING rdmacc;
CREATE TABLE child (id int, p int REFERENCES parent ON DELETE CASCADE ON UPDATE CASCADE)
  PARTITION BY HASH (id);
CREATE TABLE child_0 PARTITION OF child FOR VALUES WITH (MODULUS 2, REMAINDER 0) USING rdmacc;
CREATE TABLE child_1 PARTITION OF child FOR VALUES WITH (MODULUS 2, REMAINDER 1) USING heap;
INSERT INTO parent SELECT generate_series(5, 15);
INSERT INTO child SELECT i, i FROM generate_series(5, 15) i;
INSERT INTO child VALUES (1, 1);
INSERT INTO child VALUES (2, 2);
DELETE FROM parent WHERE id IN (7, 12);
UPDATE parent SET id = 1 WHERE id = 5;
UPDATE parent SET id = 19 WHERE id = 6;
SELECT * FROM child WHERE id <> p OR id < 9 ORDER BY id;
SELECT count(*) FROM child;
DROP TABLE child, parent;

-- under a protocol whose transactions happen at a time of their own
SET rdmacc.protocol = 'mvcc';
CREATE TABLE heap (id int PRIMARY KEY, v int) USING heap;
CREATE TABLE of_heap (id int PRIMARY KEY, p int REFERENCES heap) USING rdmacc;
INSERT INTO heap VALUES (1), (2);
INSERT INTO of_heap VALUES (1, 1);
UPDATE heap SET v = 1;
DELETE FROM heap WHERE id = 1;
DELETE FROM heap WHERE id = 2;
BEGIN;
SELECT count(*) FROM of_heap;
ALTER TABLE of_heap ADD FOREIGN KEY (id) REFERENCES heap;
UPDATE of_heap SET p = NULL;
DELETE FROM of_heap;
DELETE FROM heap;
COMMIT;
DROP TABLE of_heap, heap;
