-- Transactions that write rows of rdmacc tables and of others: all of it, or nothing.
SET client_min_messages = warning;
CREATE TABLE mixed_ours (id int PRIMARY KEY, v int) USING rdmacc;
CREATE TABLE mixed_heap (id int PRIMARY KEY, v int) USING heap;
CREATE SEQUENCE mixed_sequence;
INSERT INTO mixed_ours VALUES (1, 100), (2, 100);
INSERT INTO mixed_heap VALUES (1, 100), (2, 100);
RESET client_min_messages;

CREATE FUNCTION mixed_total() RETURNS bigint LANGUAGE sql AS
  'SELECT (SELECT sum(v) FROM mixed_ours) + (SELECT sum(v) FROM mixed_heap)';

-- Commit and rollback.
BEGIN;
UPDATE mixed_ours SET v = v - 30 WHERE id = 1;
UPDATE mixed_heap SET v = v + 30 WHERE id = 1;
COMMIT;
SELECT o.v AS ours, h.v AS heap, mixed_total() FROM mixed_ours o JOIN mixed_heap h USING (id)
  WHERE id = 1;
BEGIN;
UPDATE mixed_ours SET v = v - 30 WHERE id = 1;
UPDATE mixed_heap SET v = v + 30 WHERE id = 1;
ROLLBACK;
SELECT o.v AS ours, h.v AS heap, mixed_total() FROM mixed_ours o JOIN mixed_heap h USING (id)
  WHERE id = 1;

-- One statement, and what triggers and functions write.
WITH taken AS (UPDATE mixed_heap SET v = v - 5 WHERE id = 2 RETURNING id)
UPDATE mixed_ours SET v = v + 5 FROM taken WHERE mixed_ours.id = taken.id;
CREATE FUNCTION mixed_journal() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO mixed_heap VALUES (new.id + 100, 0);
  RETURN new;
END $$;
CREATE TRIGGER mixed_journal AFTER INSERT ON mixed_ours
  FOR EACH ROW EXECUTE FUNCTION mixed_journal();
INSERT INTO mixed_ours VALUES (3, 0);
SELECT id, v FROM mixed_heap ORDER BY id;
DROP TRIGGER mixed_journal ON mixed_ours;

-- An error at the end of PostgreSQL's part undoes the engine's.
ALTER TABLE mixed_heap ADD CONSTRAINT mixed_unique UNIQUE (v) DEFERRABLE INITIALLY DEFERRED;
DELETE FROM mixed_heap WHERE id > 100;
BEGIN;
UPDATE mixed_ours SET v = 0 WHERE id = 2;
UPDATE mixed_heap SET v = (SELECT v FROM mixed_heap WHERE id = 1) WHERE id = 2;
COMMIT;
SELECT v FROM mixed_ours WHERE id = 2;
ALTER TABLE mixed_heap DROP CONSTRAINT mixed_unique;

-- What was written to one of them and rolled back makes no mixture, nor does a sequence.
SET rdmacc.mixed_transactions = off;
BEGIN;
SAVEPOINT s;
INSERT INTO mixed_heap VALUES (50, 50);
ROLLBACK TO s;
UPDATE mixed_ours SET v = v WHERE id = 1;
COMMIT;
INSERT INTO mixed_ours VALUES (nextval('mixed_sequence') + 10, 0);
BEGIN;
UPDATE mixed_ours SET v = v - 30 WHERE id = 1;
UPDATE mixed_heap SET v = v + 30 WHERE id = 1;
COMMIT;
RESET rdmacc.mixed_transactions;
SELECT mixed_total();

-- Catalog changes and rows.
BEGIN;
CREATE TABLE mixed_new (id int PRIMARY KEY) USING rdmacc;
INSERT INTO mixed_new SELECT generate_series(1, 10);
INSERT INTO mixed_heap VALUES (10, 0);
COMMIT;
SELECT count(*) FROM mixed_new;
BEGIN;
TRUNCATE mixed_new;
INSERT INTO mixed_new VALUES (77);
COMMENT ON TABLE mixed_new IS 'never';
ROLLBACK;
SELECT count(*) FROM mixed_new;

-- Every protocol that can prepare, with every primitive; the deterministic one refuses.
CREATE PROCEDURE mixed_transfer(protocol text, stages text) LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('rdmacc.protocol', protocol, false);
  PERFORM set_config('rdmacc.stages', stages, false);
  COMMIT;
  UPDATE mixed_ours SET v = v - 1 WHERE id = 1;
  UPDATE mixed_heap SET v = v + 1 WHERE id = 1;
  INSERT INTO mixed_ours VALUES (1000, 0);
  COMMIT;
  DELETE FROM mixed_ours WHERE id = 1000;
  UPDATE mixed_heap SET v = v WHERE id = 1;
  COMMIT;
END $$;
CALL mixed_transfer('nowait', 'one_sided');
CALL mixed_transfer('nowait', 'rpc');
CALL mixed_transfer('waitdie', 'one_sided');
CALL mixed_transfer('waitdie', 'rpc');
CALL mixed_transfer('woundwait', 'one_sided');
CALL mixed_transfer('woundwait', 'rpc');
CALL mixed_transfer('occ', 'one_sided');
CALL mixed_transfer('occ', 'rpc');
CALL mixed_transfer('mvcc', 'one_sided');
CALL mixed_transfer('mvcc', 'rpc');
CALL mixed_transfer('sundial', 'one_sided');
CALL mixed_transfer('sundial', 'rpc');
CALL mixed_transfer('tictoc', 'one_sided');
CALL mixed_transfer('tictoc', 'rpc');
CALL mixed_transfer('maat', 'one_sided');
CALL mixed_transfer('maat', 'rpc');
CALL mixed_transfer('timestamp', 'one_sided');
CALL mixed_transfer('timestamp', 'rpc');
CALL mixed_transfer('cicada', 'one_sided');
CALL mixed_transfer('cicada', 'rpc');
CALL mixed_transfer('drtm', 'one_sided');
CALL mixed_transfer('drtm', 'rpc');
SELECT o.v AS ours, h.v AS heap, mixed_total() FROM mixed_ours o JOIN mixed_heap h USING (id)
  WHERE id = 1;
RESET rdmacc.stages;
SET rdmacc.protocol = occ;
SELECT mixed_total();

-- Nothing is in doubt, and what is not cannot be decided.
SELECT * FROM rdmacc.in_doubt;
SELECT rdmacc.resolve('1:2', true);
SELECT rdmacc.resolve('1', true);
SELECT rdmacc.resolve('1:2;', true);
BEGIN;
UPDATE mixed_ours SET v = v WHERE id = 1;
UPDATE mixed_heap SET v = v WHERE id = 1;
PREPARE TRANSACTION 'mixed';
CREATE ROLE mixed_user;
SET ROLE mixed_user;
SELECT rdmacc.resolve('1:2', true);
SELECT count(*) FROM rdmacc.in_doubt;
SET rdmacc.debug_stop_at = prepared;
RESET ROLE;
DROP ROLE mixed_user;
DROP FUNCTION mixed_total();
DROP PROCEDURE mixed_transfer(text, text);
DROP TABLE mixed_ours, mixed_heap, mixed_new;
DROP FUNCTION mixed_journal();
DROP SEQUENCE mixed_sequence;
