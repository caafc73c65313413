-- Primary keys are enforced by the engine; the catalog shows an ordinary btree.
CREATE TABLE one (id int PRIMARY KEY, v text) USING rdmacc;
INSERT INTO one VALUES (1, 'a'), (2, 'b');
INSERT INTO one VALUES (1, 'twice');
INSERT INTO one VALUES (3, 'c'), (3, 'd');
INSERT INTO one VALUES (NULL, 'null');
UPDATE one SET id = 2 WHERE id = 1;
UPDATE one SET id = 1 WHERE id = 1;
SELECT * FROM one ORDER BY id;
SELECT indexrelid::regclass, indisunique, indisprimary, indisvalid, indisready, indislive
  FROM pg_index WHERE indrelid = 'one'::regclass;
SELECT pg_relation_size('one_pkey');

-- a key that was deleted is free
BEGIN;
DELETE FROM one WHERE id = 1;
INSERT INTO one VALUES (1, 'new');
COMMIT;
SELECT * FROM one ORDER BY id;

-- ON CONFLICT
INSERT INTO one VALUES (1, 'ignored'), (5, 'e') ON CONFLICT DO NOTHING;
INSERT INTO one VALUES (1, 'ignored') ON CONFLICT (id) DO NOTHING RETURNING *;
INSERT INTO one VALUES (1, 'set'), (6, 'f') ON CONFLICT (id)
  DO UPDATE SET v = one.v || '+' || excluded.v RETURNING *;
INSERT INTO one VALUES (1, 'x') ON CONFLICT ON CONSTRAINT one_pkey DO UPDATE SET v = 'no' WHERE false;
INSERT INTO one VALUES (7, 'x'), (7, 'y') ON CONFLICT DO NOTHING;
INSERT INTO one VALUES (8, 'x'), (8, 'y') ON CONFLICT (id) DO UPDATE SET v = excluded.v;
INSERT INTO one VALUES (1, 'x'), (1, 'y') ON CONFLICT (id) DO UPDATE SET v = excluded.v;
INSERT INTO one VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET id = 2;
SELECT * FROM one ORDER BY id;
SELECT pg_relation_size('one_pkey');

-- several columns, INCLUDE
CREATE TABLE two (a int, b text, c int, PRIMARY KEY (b, a) INCLUDE (c)) USING rdmacc;
INSERT INTO two VALUES (1, 'x', 1), (2, 'x', 1), (1, 'y', 1);
INSERT INTO two VALUES (1, 'x', 2);
INSERT INTO two VALUES (1, 'x', 5), (9, 'z', 9) ON CONFLICT (a, b) DO UPDATE SET c = excluded.c;
SELECT * FROM two ORDER BY a, b;

-- a key is added to rows that exist
CREATE TABLE late (id int, v text) USING rdmacc;
INSERT INTO late VALUES (1, 'a'), (2, 'b'), (2, 'c');
ALTER TABLE late ADD PRIMARY KEY (id);
DELETE FROM late WHERE v = 'c';
INSERT INTO late VALUES (NULL, 'null');
ALTER TABLE late ADD PRIMARY KEY (id);
DELETE FROM late WHERE id IS NULL;
ALTER TABLE late ADD PRIMARY KEY (id);
SELECT * FROM late WHERE id = 2;
INSERT INTO late VALUES (2, 'd');
SELECT * FROM late ORDER BY id;

-- and dropped
ALTER TABLE late DROP CONSTRAINT late_pkey;
INSERT INTO late VALUES (2, 'd');
SELECT * FROM late ORDER BY id, v;
ALTER TABLE late ADD PRIMARY KEY (id, v);
SELECT * FROM late WHERE id = 2 AND v = 'd';
INSERT INTO late VALUES (2, 'd');

-- add and insert in one transaction, in either order
BEGIN;
CREATE TABLE fresh (id int, v text) USING rdmacc;
INSERT INTO fresh VALUES (1, 'before');
ALTER TABLE fresh ADD PRIMARY KEY (id);
INSERT INTO fresh VALUES (2, 'after');
SELECT * FROM fresh ORDER BY id;
COMMIT;
SELECT * FROM fresh WHERE id = 1;
INSERT INTO fresh VALUES (1, 'duplicate');

-- the same key within one transaction
BEGIN;
ALTER TABLE fresh DROP CONSTRAINT fresh_pkey;
INSERT INTO fresh VALUES (1, 'second');
SELECT * FROM fresh ORDER BY id, v;
ROLLBACK;
BEGIN;
ALTER TABLE fresh DROP CONSTRAINT fresh_pkey;
ALTER TABLE fresh ADD PRIMARY KEY (id);
COMMIT;
INSERT INTO fresh VALUES (1, 'duplicate');
SELECT * FROM fresh ORDER BY id;
-- and changes in the transaction that drops it
BEGIN;
ALTER TABLE fresh DROP CONSTRAINT fresh_pkey;
UPDATE fresh SET v = v || ' changed' WHERE id = 1 RETURNING *;
ROLLBACK;
CREATE INDEX fresh_v ON fresh (v);
BEGIN;
ALTER TABLE fresh DROP CONSTRAINT fresh_pkey;
SAVEPOINT a;
DELETE FROM fresh;
ROLLBACK TO a;
SET LOCAL enable_seqscan = off;
DELETE FROM fresh WHERE v = 'before' RETURNING *;
INSERT INTO fresh SELECT * FROM fresh;
SELECT * FROM fresh ORDER BY id, v;
ROLLBACK;
DROP INDEX fresh_v;

-- the length of a key is limited
CREATE TABLE named (name text PRIMARY KEY) USING rdmacc;
INSERT INTO named VALUES (repeat('n', 2000));
INSERT INTO named VALUES (repeat('n', 3000));
SELECT count(*) FROM named WHERE name = repeat('n', 2000);
SELECT count(*) FROM named WHERE name = repeat('n', 3000);
DROP TABLE one, two, late, fresh, named;

-- A primary key that one statement adds with other changes, which rewrite the table.
CREATE TABLE changed (a int) USING rdmacc;
INSERT INTO changed VALUES (1), (2), (3);
ALTER TABLE changed ADD COLUMN x float8 DEFAULT random(), ADD PRIMARY KEY (x);
SELECT count(*), sum(a), count(DISTINCT x) FROM changed;
ALTER TABLE changed DROP CONSTRAINT changed_pkey, ADD COLUMN z serial PRIMARY KEY, ALTER a TYPE text;
SELECT a FROM changed ORDER BY a;
SELECT z FROM changed ORDER BY z;
BEGIN;
ALTER TABLE changed DROP CONSTRAINT changed_pkey, ADD COLUMN r float8 DEFAULT random(), ADD PRIMARY KEY (a);
ROLLBACK;
ALTER TABLE changed ADD COLUMN same int DEFAULT length(random()::text) * 0, ADD UNIQUE (same);
SELECT z FROM changed WHERE z = 2;
DROP TABLE changed;

-- Keys that come back within a transaction: dropped where the table is new, added and dropped, dropped and added.
BEGIN;
CREATE TABLE back (id int PRIMARY KEY, v int) USING rdmacc;
ALTER TABLE back DROP CONSTRAINT back_pkey;
INSERT INTO back VALUES (1, 1), (1, 2);
COMMIT;
INSERT INTO back VALUES (1, 3);
SELECT * FROM back ORDER BY v;
BEGIN;
TRUNCATE back;
ALTER TABLE back ADD PRIMARY KEY (id);
ALTER TABLE back DROP CONSTRAINT back_pkey;
INSERT INTO back SELECT 2, i FROM generate_series(1, 1000) i;
DELETE FROM back WHERE v > 1;
ALTER TABLE back ADD PRIMARY KEY (id);
COMMIT;
SELECT * FROM back WHERE id = 2;
CREATE INDEX back_v ON back (v);
BEGIN;
ALTER TABLE back DROP CONSTRAINT back_pkey;
INSERT INTO back VALUES (3, 3), (4, 4), (4, 5);
UPDATE back SET v = v + 10;
DELETE FROM back WHERE v = 15;
ALTER TABLE back ADD PRIMARY KEY (id);
INSERT INTO back VALUES (5, 5);
SAVEPOINT a;
ALTER TABLE back DROP CONSTRAINT back_pkey;
INSERT INTO back VALUES (5, 6);
ROLLBACK TO a;
SELECT * FROM back WHERE id = 4;
INSERT INTO back VALUES (5, 6);
ROLLBACK TO a;
COMMIT;
SET enable_seqscan = off;
SELECT * FROM back WHERE v = 14;
RESET enable_seqscan;
SELECT * FROM back ORDER BY id;
INSERT INTO back VALUES (5, 6);
BEGIN;
ALTER TABLE back DROP CONSTRAINT back_pkey;
INSERT INTO back VALUES (5, 6);
ALTER TABLE back ADD PRIMARY KEY (v);
ALTER TABLE back DROP CONSTRAINT back_pkey;
DELETE FROM back WHERE v = 5;
ALTER TABLE back ADD PRIMARY KEY (id);
ROLLBACK;
SELECT * FROM back ORDER BY id;
SELECT * FROM rdmacc.verify('back');
-- What a savepoint has made of the rows is made again: readings of it are not lost with it.
SET rdmacc.protocol = mvcc;
BEGIN;
CREATE TABLE again (id int, v int) USING rdmacc;
INSERT INTO again SELECT i, i FROM generate_series(1, 2000) i;
SAVEPOINT a;
ALTER TABLE again ADD PRIMARY KEY (id);
UPDATE again SET v = v + 1;
ROLLBACK TO a;
ALTER TABLE again ADD PRIMARY KEY (id);
COMMIT;
SET rdmacc.protocol = occ;
SELECT count(*), sum(v) FROM again;
SELECT v FROM again WHERE id = 1000;
SELECT * FROM rdmacc.verify('again');
RESET rdmacc.protocol;
DROP TABLE back, again;

-- the same key again behind a savepoint that was rolled back, where nothing had used the table before
CREATE TABLE again (a int NOT NULL, b int) USING rdmacc;
INSERT INTO again SELECT i, i FROM generate_series(1, 10) i;
BEGIN;
SAVEPOINT s;
ALTER TABLE again ADD PRIMARY KEY (a);
ROLLBACK TO s;
ALTER TABLE again ADD PRIMARY KEY (a);
INSERT INTO again VALUES (11, 11);
COMMIT;
SELECT count(*), sum(b) FROM again;
DO $$ BEGIN
  BEGIN
    ALTER TABLE again DROP CONSTRAINT again_pkey, ADD PRIMARY KEY (b);
    RAISE division_by_zero;
  EXCEPTION WHEN division_by_zero THEN NULL;
  END;
  ALTER TABLE again DROP CONSTRAINT again_pkey, ADD PRIMARY KEY (b);
END $$;
SELECT count(*), sum(b) FROM again;
SELECT * FROM again WHERE b = 7;
BEGIN;
SAVEPOINT s;
ALTER TABLE again DROP CONSTRAINT again_pkey, ADD PRIMARY KEY (a);
ROLLBACK TO s;
ALTER TABLE again DROP CONSTRAINT again_pkey, ADD PRIMARY KEY (a, b);
COMMIT;
SELECT count(*), sum(b) FROM again;
SELECT * FROM rdmacc.verify('again');
DROP TABLE again;
