-- Presets: what a session runs with, and what wins over them.
CREATE TABLE t (id int PRIMARY KEY, v int) USING rdmacc;
INSERT INTO t SELECT i, 0 FROM generate_series(1, 10) i;

CREATE FUNCTION in_effect(OUT preset text, OUT protocol text, OUT stages text, OUT lock_mode text,
                          OUT lock_writes text) LANGUAGE sql AS $$
  SELECT current_setting('rdmacc.preset'), current_setting('rdmacc.protocol'),
         current_setting('rdmacc.stages'), current_setting('rdmacc.lock_mode'),
         current_setting('rdmacc.lock_writes') $$;
-- Which protocol and which primitives this session's transactions have run with since.
CREATE FUNCTION ran_since(since jsonb) RETURNS TABLE (protocol text, stages text) LANGUAGE sql AS $$
  SELECT protocol, string_agg(stage || '=' || primitive, ',' ORDER BY stage, primitive)
    FROM rdmacc.stat_stages s
   WHERE count > coalesce((since->>(protocol || stage || primitive))::bigint, 0)
     AND stage IN ('lock', 'validate', 'log', 'commit')  -- not what reads beside the sessions
   GROUP BY protocol ORDER BY protocol $$;

SELECT setting, enumvals FROM pg_settings WHERE name = 'rdmacc.preset';
SELECT * FROM in_effect();
SET rdmacc.preset = 'nonsense';

-- each of them, and the plan that it runs
SET rdmacc.preset = 'farm';
SELECT * FROM in_effect();
EXPLAIN (COSTS OFF, VERBOSE) SELECT v FROM t WHERE id = 5;
EXPLAIN (COSTS OFF, VERBOSE, ANALYZE, TIMING OFF, SUMMARY OFF) SELECT v FROM t WHERE id = 5;
SET rdmacc.preset = 'Drtm_R';
SELECT * FROM in_effect();
SET rdmacc.preset = 'fasst';
SELECT * FROM in_effect();
SET rdmacc.preset = 'drtm_h';
SELECT * FROM in_effect();
EXPLAIN (COSTS OFF, VERBOSE) SELECT v FROM t WHERE id = 5;
SET rdmacc.preset = 'rcbench';
SELECT * FROM in_effect();
SET rdmacc.preset = 'ford';
SELECT * FROM in_effect();
SET rdmacc.preset = 'motor';
SELECT * FROM in_effect();
EXPLAIN (COSTS OFF, VERBOSE) SELECT v FROM t WHERE id = 5;
UPDATE t SET v = v + 1 WHERE id = 5 RETURNING v;

-- what was set in the same place wins, before or after
SET rdmacc.protocol = 'sundial';
SELECT * FROM in_effect();
SET rdmacc.preset = 'farm';
SELECT * FROM in_effect();
EXPLAIN (COSTS OFF, VERBOSE) SELECT v FROM t WHERE id = 5;
SET rdmacc.stages = 'rpc';
SELECT * FROM in_effect();
RESET rdmacc.protocol;
SELECT * FROM in_effect();
RESET rdmacc.stages;
SELECT * FROM in_effect();
RESET rdmacc.preset;
SELECT * FROM in_effect();

-- transactions, savepoints and functions give it back
BEGIN;
SET LOCAL rdmacc.preset = 'rcbench';
SELECT * FROM in_effect();
SAVEPOINT s;
SET LOCAL rdmacc.preset = 'fasst';
SELECT * FROM in_effect();
ROLLBACK TO s;
SELECT * FROM in_effect();
UPDATE t SET v = v + 1 WHERE id = 6 RETURNING v;
EXPLAIN (COSTS OFF, VERBOSE) SELECT v FROM t WHERE id = 6;
COMMIT;
SELECT * FROM in_effect();
BEGIN;
SET rdmacc.preset = 'motor';
ROLLBACK;
SELECT * FROM in_effect();
CREATE FUNCTION of_fasst() RETURNS text LANGUAGE sql SET rdmacc.preset = 'fasst'
  AS $$ SELECT stages FROM in_effect() $$;
SELECT of_fasst(), stages FROM in_effect();

-- in a transaction that has begun, as the protocol
BEGIN;
SET rdmacc.preset = 'farm';
SELECT v FROM t WHERE id = 5;
SET rdmacc.preset = 'farm';
SET rdmacc.protocol = 'occ';
SET rdmacc.preset = 'fasst';
ROLLBACK;
BEGIN;
SET rdmacc.preset = 'farm';
SELECT v FROM t WHERE id = 5;
SET rdmacc.stages = 'one_sided';
ROLLBACK;

-- what ran
SELECT jsonb_object_agg(protocol || stage || primitive, count) AS since
  FROM rdmacc.stat_stages \gset
SET rdmacc.preset = 'farm';
BEGIN; UPDATE t SET v = v + 1 WHERE id = 7; SELECT v FROM t WHERE id = 8; COMMIT;
SELECT * FROM ran_since(:'since');
SELECT jsonb_object_agg(protocol || stage || primitive, count) AS since
  FROM rdmacc.stat_stages \gset
SET rdmacc.preset = 'rcbench';
BEGIN; UPDATE t SET v = v + 1 WHERE id = 7; SELECT v FROM t WHERE id = 8; COMMIT;
SELECT * FROM ran_since(:'since');
SELECT jsonb_object_agg(protocol || stage || primitive, count) AS since
  FROM rdmacc.stat_stages \gset
SET rdmacc.preset = 'fasst';
BEGIN; UPDATE t SET v = v + 1 WHERE id = 7; SELECT v FROM t WHERE id = 8; COMMIT;
SELECT * FROM ran_since(:'since');

-- other two-phase locking that shares its locks
RESET rdmacc.preset;
SET rdmacc.lock_mode = 'shared';
SET rdmacc.protocol = 'waitdie';
BEGIN; SELECT v FROM t WHERE id = 1; SELECT mode, holders FROM rdmacc.locks; COMMIT;
SET rdmacc.protocol = 'woundwait';
BEGIN; SELECT v FROM t WHERE id = 1; SELECT mode, holders FROM rdmacc.locks; COMMIT;
RESET rdmacc.protocol;
RESET rdmacc.lock_mode;
DROP FUNCTION of_fasst, ran_since, in_effect;
DROP TABLE t;
