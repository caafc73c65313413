-- Catalog changes that are rolled back, to a savepoint or altogether.
CREATE TABLE t (id int PRIMARY KEY, v text) USING rdmacc;
INSERT INTO t VALUES (1, 'one'), (2, 'two');

BEGIN;
DROP TABLE t;
ROLLBACK;
SELECT * FROM t ORDER BY id;

BEGIN;
TRUNCATE t;
INSERT INTO t VALUES (3, 'three');
SELECT * FROM t;
ROLLBACK;
SELECT * FROM t ORDER BY id;

BEGIN;
SAVEPOINT a;
TRUNCATE t;
INSERT INTO t VALUES (3, 'three');
ROLLBACK TO a;
SELECT * FROM t ORDER BY id;
INSERT INTO t VALUES (4, 'four');
SAVEPOINT b;
DROP TABLE t;
ROLLBACK TO b;
SELECT * FROM t WHERE id = 4;
COMMIT;
SELECT * FROM t ORDER BY id;

BEGIN;
INSERT INTO t VALUES (5, 'gone');
TRUNCATE t;
INSERT INTO t VALUES (6, 'six');
COMMIT;
SELECT * FROM t;

BEGIN;
CREATE TABLE fresh (id int PRIMARY KEY) USING rdmacc;
INSERT INTO fresh VALUES (1);
ROLLBACK;
SELECT * FROM fresh;
CREATE TABLE fresh (id int PRIMARY KEY) USING rdmacc;
SELECT * FROM fresh;

BEGIN;
SAVEPOINT a;
CREATE TABLE inner_one (id int PRIMARY KEY) USING rdmacc;
INSERT INTO inner_one VALUES (1);
ROLLBACK TO a;
CREATE TABLE inner_one (id int PRIMARY KEY) USING rdmacc;
INSERT INTO inner_one VALUES (2);
COMMIT;
SELECT * FROM inner_one;

-- changes of the layout
BEGIN;
ALTER TABLE t ADD COLUMN n int DEFAULT 3;
SELECT * FROM t;
ROLLBACK;
SELECT * FROM t;
CREATE TABLE loose (id int, v text) USING rdmacc;
INSERT INTO loose VALUES (1, 'one'), (2, 'two');
BEGIN;
ALTER TABLE loose ADD PRIMARY KEY (id);
INSERT INTO loose VALUES (3, 'three');
SELECT * FROM loose WHERE id = 3;
ROLLBACK;
SELECT * FROM loose ORDER BY id;
INSERT INTO loose VALUES (1, 'one again');
BEGIN;
SAVEPOINT a;
DELETE FROM loose WHERE v = 'one again';
ALTER TABLE loose ADD PRIMARY KEY (id);
ROLLBACK TO a;
SELECT count(*) FROM loose;
DELETE FROM loose WHERE v = 'one again';
ALTER TABLE loose ADD PRIMARY KEY (v);
COMMIT;
SELECT * FROM loose WHERE v = 'two';
BEGIN;
ALTER TABLE loose DROP CONSTRAINT loose_pkey;
INSERT INTO loose VALUES (7, 'two');
ROLLBACK;
SELECT * FROM loose ORDER BY id;
BEGIN;
SAVEPOINT a;
ALTER TABLE loose DROP CONSTRAINT loose_pkey;
INSERT INTO loose VALUES (7, 'two');
ROLLBACK TO a;
INSERT INTO loose VALUES (8, 'eight');
COMMIT;
SELECT * FROM loose WHERE v = 'eight';
INSERT INTO loose VALUES (9, 'two');

-- a rewrite
BEGIN;
ALTER TABLE loose ALTER COLUMN id TYPE bigint;
SELECT * FROM loose ORDER BY id;
UPDATE loose SET id = 5000000000 WHERE v = 'two';
ROLLBACK;
SELECT * FROM loose ORDER BY id;
BEGIN;
CLUSTER loose USING loose_pkey;
SELECT * FROM loose ORDER BY id;
DELETE FROM loose;
ROLLBACK;
SELECT * FROM loose ORDER BY id;
ALTER TABLE loose SET ACCESS METHOD heap;
BEGIN;
ALTER TABLE loose SET ACCESS METHOD rdmacc;
SELECT * FROM loose WHERE v = 'two';
ROLLBACK;
SELECT * FROM loose WHERE v = 'two';
DROP TABLE t, fresh, inner_one, loose;
