-- NOWAIT and SKIP LOCKED under every protocol: rows that another session holds are an error or are
-- left out.
CREATE TABLE jobs (id int PRIMARY KEY, v text) USING rdmacc;
INSERT INTO jobs SELECT i, 'job ' || i FROM generate_series(1, 6) i;
CREATE EXTENSION dblink;
SELECT dblink_connect('other', format('dbname=%s host=%s port=%s user=postgres', current_database(),
  split_part(current_setting('unix_socket_directories'), ',', 1), current_setting('port')));
CREATE FUNCTION other(query text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  IF query ILIKE 'SELECT%' THEN
    RETURN (SELECT string_agg(v, ',' ORDER BY v) FROM dblink('other', query) AS t(v text));
  END IF;
  RETURN dblink_exec('other', query);
EXCEPTION WHEN OTHERS THEN
  RETURN SQLSTATE;
END $$;
CREATE FUNCTION try(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  result text;
BEGIN
  EXECUTE 'SELECT string_agg(id::text, '','') FROM (' || query || ') q' INTO result;
  RETURN coalesce(result, 'none');
EXCEPTION WHEN OTHERS THEN
  RETURN SQLSTATE;
END $$;
CREATE PROCEDURE play(protocol text) LANGUAGE plpgsql AS $$
DECLARE
  query text;
BEGIN
  PERFORM set_config('rdmacc.protocol', protocol, false);
  PERFORM other('SET rdmacc.protocol = ' || protocol), other('BEGIN');
  RAISE NOTICE '%: the other session has %', protocol,
    other('SELECT id FROM jobs WHERE v <> ''x'' ORDER BY id LIMIT 2 FOR UPDATE SKIP LOCKED');
  FOREACH query IN ARRAY ARRAY[
    'SELECT id FROM jobs ORDER BY id FOR UPDATE SKIP LOCKED LIMIT 1',
    'SELECT id FROM jobs ORDER BY id FOR NO KEY UPDATE SKIP LOCKED LIMIT 2',
    'SELECT id FROM jobs ORDER BY id FOR KEY SHARE SKIP LOCKED',
    'SELECT id FROM jobs WHERE id = 2 FOR SHARE SKIP LOCKED',
    'SELECT id FROM jobs WHERE id IN (1, 4, 7) FOR UPDATE SKIP LOCKED',
    'SELECT id FROM jobs WHERE id = 7 FOR UPDATE NOWAIT',
    'SELECT id FROM jobs WHERE id = 5 FOR UPDATE NOWAIT',
    'SELECT id FROM jobs WHERE id = 1 FOR UPDATE NOWAIT',
    'SELECT id FROM jobs WHERE id IN (2, 3) FOR SHARE NOWAIT',
    'SELECT j.id FROM jobs j JOIN (VALUES (2), (3)) k(id) USING (id) FOR UPDATE OF j SKIP LOCKED'
  ] LOOP
    RAISE NOTICE '%: %', try(query), query;
  END LOOP;
  RAISE NOTICE '%: and the other, after that', other('SELECT id FROM jobs FOR UPDATE SKIP LOCKED');
  ROLLBACK;
  RAISE NOTICE '%: once it is over', other('SELECT id FROM jobs WHERE id > 4 FOR UPDATE SKIP LOCKED');
  PERFORM other('ROLLBACK');
  -- a scan that does not wait sees all rows or fails
  PERFORM other('BEGIN'), other('SELECT id FROM jobs WHERE id = 6 FOR UPDATE NOWAIT');
  RAISE NOTICE '%: all rows at once', try('SELECT id FROM jobs ORDER BY id FOR UPDATE NOWAIT');
  ROLLBACK;
  PERFORM other('ROLLBACK');
  RAISE NOTICE '%: all rows at last', try('SELECT id FROM jobs ORDER BY id FOR UPDATE NOWAIT');
  COMMIT;
END $$;
CALL play('nowait');
CALL play('waitdie');
CALL play('woundwait');
CALL play('occ');
CALL play('mvcc');
CALL play('sundial');
CALL play('tictoc');
CALL play('maat');
CALL play('timestamp');
CALL play('cicada');
CALL play('drtm');

-- a job that is taken and given back, with its write rolled back before the end
SET rdmacc.protocol = sundial;
SELECT other('SET rdmacc.protocol = sundial');
BEGIN;
SAVEPOINT s;
SELECT id FROM jobs WHERE id = 1 FOR UPDATE NOWAIT;
ROLLBACK TO s;
UPDATE jobs SET v = 'beside' WHERE id = 2;
COMMIT;
SELECT other('UPDATE jobs SET v = ''job'' WHERE id IN (1, 2)');

-- what has changed between a look and the lock is looked at again
CREATE FUNCTION take(id int) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  IF id IN (1, 3) THEN PERFORM other(format('UPDATE jobs SET v = ''taken'' WHERE id = %s', id)); END IF;
  IF id = 2 THEN PERFORM other('DELETE FROM jobs WHERE id = 2'); END IF;
  RETURN true;
END $$;
SELECT id, v FROM jobs WHERE v LIKE 'job%' AND take(id) ORDER BY id FOR UPDATE SKIP LOCKED;
UPDATE jobs SET v = 'job' WHERE id IN (1, 3);
SET enable_nestloop = off;
SELECT j.id, k.id AS k FROM jobs j JOIN generate_series(1, 6) k(id) USING (id)
  WHERE v LIKE 'job%' AND take(j.id) ORDER BY 1 FOR UPDATE OF j SKIP LOCKED;
RESET enable_nestloop;
SELECT * FROM jobs ORDER BY id;

-- only the scan that is meant skips; partitions
SELECT other('BEGIN'), other('SELECT id FROM jobs WHERE id = 4 FOR UPDATE NOWAIT');
SELECT (SELECT id FROM jobs WHERE id > 3 ORDER BY id FOR UPDATE SKIP LOCKED LIMIT 1) AS skips;
WITH next AS (SELECT id FROM jobs WHERE id > 3 ORDER BY id FOR UPDATE SKIP LOCKED LIMIT 1)
DELETE FROM jobs USING next WHERE jobs.id = next.id RETURNING jobs.id;
DELETE FROM jobs WHERE id = ANY (ARRAY(SELECT id FROM jobs FOR UPDATE SKIP LOCKED)) RETURNING id;
SELECT other('COMMIT');
SELECT id FROM jobs;
CREATE TABLE parts (id int PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (10) USING rdmacc;
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (10) TO (20) USING rdmacc;
INSERT INTO parts VALUES (1), (2), (11), (12);
SELECT other('BEGIN'), other('SELECT id FROM parts WHERE id IN (1, 12) FOR UPDATE NOWAIT');
SELECT id FROM parts ORDER BY id FOR UPDATE SKIP LOCKED;
SELECT id FROM parts WHERE id = 12 FOR UPDATE NOWAIT;
SELECT other('ROLLBACK');
SELECT dblink_disconnect('other');
DROP TABLE jobs, parts;
DROP PROCEDURE play;
DROP FUNCTION take, try, other;
DROP EXTENSION dblink;
