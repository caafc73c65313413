-- Statistics and activity: what the views have, who may see them, and that they move.
SELECT c.relname, string_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod), ', '
                             ORDER BY a.attnum) AS columns
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_attribute a ON a.attrelid = c.oid
  WHERE n.nspname = 'rdmacc' AND c.relkind = 'v' AND a.attnum > 0
  GROUP BY c.relname ORDER BY c.relname;

-- for pg_monitor; resetting is for superusers
CREATE ROLE regress_plain;
CREATE ROLE regress_monitor IN ROLE pg_monitor;
SELECT c.relname, has_table_privilege('regress_plain', c.oid, 'SELECT') AS plain,
       has_table_privilege('regress_monitor', c.oid, 'SELECT') AS monitor
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname = 'rdmacc' AND c.relkind = 'v' ORDER BY 1;
SELECT p.proname, has_function_privilege('regress_plain', p.oid, 'EXECUTE') AS plain,
       has_function_privilege('regress_monitor', p.oid, 'EXECUTE') AS monitor
  FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
  WHERE n.nspname = 'rdmacc' ORDER BY 1;
SET ROLE regress_plain;
SELECT count(*) FROM rdmacc.stat_stages;
SELECT rdmacc.stat_reset();
SET ROLE regress_monitor;
SELECT count(*) > 0 AS seen FROM rdmacc.stat_stages;
SELECT count(*) > 0 AS seen FROM rdmacc.stat_aborts;
SELECT count(*) >= 0 AS seen FROM rdmacc.stat_plans;
SELECT count(*) >= 0 AS seen FROM rdmacc.locks;
SELECT count(*) AS gates FROM rdmacc.gate;
SELECT count(*) >= 0 AS seen FROM rdmacc.gate_sessions;
SELECT rdmacc.stat_reset();
RESET ROLE;
GRANT EXECUTE ON FUNCTION rdmacc.stat_reset() TO regress_plain;
SET ROLE regress_plain;
SELECT rdmacc.stat_reset();
RESET ROLE;
REVOKE EXECUTE ON FUNCTION rdmacc.stat_reset() FROM regress_plain;
DROP ROLE regress_plain, regress_monitor;

-- every protocol has its own stages, abort reasons are the same for all
SELECT protocol, string_agg(DISTINCT stage, ', ' ORDER BY stage) AS stages,
       count(DISTINCT primitive) AS primitives
  FROM rdmacc.stat_stages WHERE protocol IN ('nowait', 'occ') GROUP BY protocol ORDER BY protocol;
SELECT count(DISTINCT reasons) FROM (SELECT array_agg(reason) AS reasons FROM rdmacc.stat_aborts
                                     GROUP BY protocol) AS of_protocols;

-- counts move with transactions, of each protocol and plan apart
CREATE TABLE t (id int PRIMARY KEY, v int NOT NULL) USING rdmacc WITH (autovacuum_enabled = off);
SET rdmacc.protocol = 'occ';
INSERT INTO t SELECT i, 0 FROM generate_series(1, 100) i;
SET rdmacc.protocol = 'nowait';
SET rdmacc.stages = 'lock=rpc';
SELECT rdmacc.stat_reset();
UPDATE t SET v = v + 1 WHERE id = 1;
UPDATE t SET v = v + 1 WHERE id = 2;
BEGIN; UPDATE t SET v = v + 1 WHERE id = 3; ROLLBACK;
SELECT stage, primitive, count > 0 AS moved, mean_us > 0 AS mean, p50_us <= p99_us AS ordered
  FROM rdmacc.stat_stages WHERE protocol = 'nowait' ORDER BY stage, primitive;
SELECT reason, count FROM rdmacc.stat_aborts WHERE protocol = 'nowait' AND count > 0;
SELECT transactions, committed, reads > 0 AS reads, messages > 0 AS messages, round_trips > 0 AS trips,
       abs(verbs_per_transaction - (reads + writes + atomics + messages)::float8 / committed) < 1e-9 AS sigma,
       nodes_per_transaction >= 1 AS theta, effective_share > 0 AND effective_share < 1 AS effective
  FROM rdmacc.stat_protocols WHERE protocol = 'nowait';
SELECT stages, code, transactions, committed, explored FROM rdmacc.stat_plans
  WHERE protocol = 'nowait' AND code = 28;
SELECT rdmacc.stat_reset();
SELECT sum(count) AS stages FROM rdmacc.stat_stages WHERE protocol = 'nowait';
SELECT sum(count) AS aborts FROM rdmacc.stat_aborts WHERE protocol = 'nowait';
SELECT count(*) AS plans FROM rdmacc.stat_plans WHERE protocol = 'nowait';
SELECT transactions, committed, verbs_per_transaction, effective_share
  FROM rdmacc.stat_protocols WHERE protocol = 'nowait';

-- stages = auto
SET rdmacc.stages = 'AUTO';
SHOW rdmacc.stages;
DO $$ BEGIN FOR i IN 1 .. 100 LOOP UPDATE t SET v = v + 1 WHERE id = i; COMMIT; END LOOP; END $$;
SELECT sum(transactions) >= 100 AS transactions, sum(committed) >= 100 AS committed,
       sum(explored) BETWEEN 1 AND 90 AS explored
  FROM rdmacc.stat_plans WHERE protocol = 'nowait';
SELECT bool_and(count > 0) AS both_were_tried FROM rdmacc.stat_stages
  WHERE protocol = 'nowait' AND stage IN ('lock', 'log', 'commit');
EXPLAIN (COSTS OFF, VERBOSE) SELECT v FROM t WHERE id = 5;
EXPLAIN (COSTS OFF, VERBOSE, ANALYZE, TIMING OFF, SUMMARY OFF) SELECT v FROM t WHERE id = 5;
BEGIN;
SELECT v FROM t WHERE id = 5;
SET rdmacc.stages = 'auto';
SET rdmacc.stages = 'rpc';
ROLLBACK;
SET rdmacc.stages = 'rpc';
BEGIN;
SELECT v FROM t WHERE id = 5;
SET rdmacc.stages = 'auto';
ROLLBACK;
RESET rdmacc.stages;

-- locks: none, one, none
SELECT count(*) FROM rdmacc.locks WHERE relation = 't'::regclass;
BEGIN;
UPDATE t SET v = 0 WHERE id = 7;
SELECT d.datname = current_database() AS here, relation, header, length(key_hash), mode, granted,
       holders, pid = pg_backend_pid() AS mine, since BETWEEN now() - '1 min'::interval
       AND clock_timestamp() AS recent
  FROM rdmacc.locks l JOIN pg_database d ON d.oid = l.database WHERE relation = 't'::regclass;
SELECT node IN (SELECT node FROM rdmacc.stat_nodes) AS known FROM rdmacc.locks
  WHERE relation = 't'::regclass;
-- where a key is missing the gap is locked
SELECT v FROM t WHERE id = 1000;
SELECT header, count(*) FROM rdmacc.locks WHERE relation = 't'::regclass GROUP BY header
  ORDER BY header;
ROLLBACK;
SELECT count(*) FROM rdmacc.locks WHERE relation = 't'::regclass;

-- the gate
BEGIN;
SELECT count(*) FROM t WHERE id = 1;
SELECT open_protocol, next_protocol, inside > 0 AS inside, switches > 0 AS switched,
       mean_switch_us <= max_switch_us AS ordered FROM rdmacc.gate;
SELECT state, protocol, waiting FROM rdmacc.gate_sessions WHERE pid = pg_backend_pid();
COMMIT;
SELECT count(*) FROM rdmacc.gate_sessions WHERE pid = pg_backend_pid();
RESET rdmacc.protocol;
DROP TABLE t;
