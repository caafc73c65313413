-- Rows on disk: what it refuses, and what can be seen of it.
CREATE TABLE kept (id int PRIMARY KEY, v text) USING rdmacc;
INSERT INTO kept SELECT i, 'row ' || i FROM generate_series(1, 1000) i;
SHOW rdmacc.durability;
SET rdmacc.durability = memory;
-- A protocol whose transactions are executed before they could be logged.
SET rdmacc.protocol = calvin;
SELECT count(*) FROM kept;
INSERT INTO kept VALUES (0, 'refused');
RESET rdmacc.protocol;
SELECT count(*) FROM kept;
-- A checkpoint that is asked for has the rows.
SELECT rdmacc.checkpoint() > '0/0' AS made;
SELECT state, redo > '0/0' AS redo, lag >= 0 AS lag, wal_kept >= 0 AS wal_kept, made_at <= now() + interval '1 s' AS made_at,
       duration > 0 AS duration, tables > 0 AS tables, rows >= 1000 AS rows, bytes > 1000 AS bytes, written > 0 AS written,
       checkpoints > 0 AS checkpoints, failures, backup
FROM rdmacc.stat_durability;
-- Tables that did not change keep their files.
UPDATE kept SET v = 'changed' WHERE id = 1;
SELECT rdmacc.checkpoint() > '0/0' AS made;
SELECT written < bytes OR tables = 1 AS keeps FROM rdmacc.stat_durability;
-- The slot is the server's.
SELECT slot_type, active, wal_status = 'lost' AS lost FROM pg_replication_slots WHERE slot_name = 'rdmacc';
SELECT rolname, has_function_privilege(rolname, 'rdmacc.checkpoint()', 'EXECUTE') AS may
FROM pg_roles WHERE rolname IN ('pg_checkpoint', 'pg_monitor') ORDER BY 1;
DROP TABLE kept;
