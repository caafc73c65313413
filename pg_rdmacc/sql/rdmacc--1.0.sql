-- Complain if the script is fed to psql instead of CREATE EXTENSION.
\echo Use "CREATE EXTENSION rdmacc" to load this file. \quit

CREATE FUNCTION @extschema@.tableam_handler(internal)
RETURNS pg_catalog.table_am_handler
AS 'MODULE_PATHNAME', 'rdmacc_tableam_handler'
LANGUAGE C STRICT;

CREATE ACCESS METHOD rdmacc TYPE TABLE HANDLER @extschema@.tableam_handler;
COMMENT ON ACCESS METHOD rdmacc IS
  'distributed in-memory tables with serializable transactions over RDMA';

CREATE FUNCTION @extschema@.version()
RETURNS pg_catalog.text
AS 'MODULE_PATHNAME', 'rdmacc_version'
LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION @extschema@.version() IS 'version of the rdmacc library';

CREATE FUNCTION @extschema@.nodes(
  OUT node pg_catalog.int4,
  OUT pid pg_catalog.int4,
  OUT state pg_catalog.text,
  OUT region_bytes pg_catalog.int8,
  OUT backed_bytes pg_catalog.int8,
  OUT used_bytes pg_catalog.int8,
  OUT tables pg_catalog.int8,
  OUT "rows" pg_catalog.int8,
  OUT started pg_catalog.timestamptz,
  OUT restarts pg_catalog.int4,
  OUT requests pg_catalog.int8,
  OUT host pg_catalog.text,
  OUT port pg_catalog.int4)
RETURNS SETOF pg_catalog.record
AS 'MODULE_PATHNAME', 'rdmacc_stat_nodes'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.nodes() IS 'what rdmacc.stat_nodes shows';

CREATE VIEW @extschema@.stat_nodes AS SELECT * FROM @extschema@.nodes();
COMMENT ON VIEW @extschema@.stat_nodes IS 'the nodes of this server: process, memory, contents';

CREATE FUNCTION @extschema@.stage_statistics(
  OUT protocol pg_catalog.text,
  OUT stage pg_catalog.text,
  OUT primitive pg_catalog.text,
  OUT count pg_catalog.int8,
  OUT mean_us pg_catalog.float8,
  OUT p50_us pg_catalog.float8,
  OUT p99_us pg_catalog.float8)
RETURNS SETOF pg_catalog.record
AS 'MODULE_PATHNAME', 'rdmacc_stat_stages'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.stage_statistics() IS 'what rdmacc.stat_stages shows';

CREATE FUNCTION @extschema@.abort_statistics(
  OUT protocol pg_catalog.text,
  OUT reason pg_catalog.text,
  OUT count pg_catalog.int8)
RETURNS SETOF pg_catalog.record
AS 'MODULE_PATHNAME', 'rdmacc_stat_aborts'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.abort_statistics() IS 'what rdmacc.stat_aborts shows';

CREATE FUNCTION @extschema@.plan_statistics(
  OUT protocol pg_catalog.text,
  OUT stages pg_catalog.text,
  OUT code pg_catalog.int4,
  OUT transactions pg_catalog.int8,
  OUT committed pg_catalog.int8,
  OUT explored pg_catalog.int8)
RETURNS SETOF pg_catalog.record
AS 'MODULE_PATHNAME', 'rdmacc_stat_plans'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.plan_statistics() IS 'what rdmacc.stat_plans shows';

CREATE FUNCTION @extschema@.stat_reset()
RETURNS pg_catalog.void
AS 'MODULE_PATHNAME', 'rdmacc_stat_reset'
LANGUAGE C VOLATILE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.stat_reset() IS
  'sets rdmacc.stat_stages, stat_aborts and stat_plans to zero';

CREATE FUNCTION @extschema@.locked_headers(
  OUT node pg_catalog.int4,
  OUT database pg_catalog.oid,
  OUT relfilenode pg_catalog.oid,
  OUT table_id pg_catalog.int8,
  OUT header pg_catalog.text,
  OUT key_hash pg_catalog.text,
  OUT mode pg_catalog.text,
  OUT granted pg_catalog.bool,
  OUT holders pg_catalog.int4,
  OUT worker pg_catalog.int4,
  OUT pid pg_catalog.int4,
  OUT since pg_catalog.timestamptz)
RETURNS SETOF pg_catalog.record
AS 'MODULE_PATHNAME', 'rdmacc_locks'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.locked_headers() IS 'what rdmacc.locks shows';

CREATE FUNCTION @extschema@.gate_state(
  OUT open_protocol pg_catalog.text,
  OUT next_protocol pg_catalog.text,
  OUT inside pg_catalog.int4,
  OUT waiting pg_catalog.int4,
  OUT switches pg_catalog.int8,
  OUT mean_switch_us pg_catalog.float8,
  OUT max_switch_us pg_catalog.int8,
  OUT alone pg_catalog.int4,
  OUT passages_alone pg_catalog.int8)
RETURNS SETOF pg_catalog.record
AS 'MODULE_PATHNAME', 'rdmacc_gate'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.gate_state() IS 'what rdmacc.gate shows';

CREATE FUNCTION @extschema@.sessions_at_gate(
  OUT worker pg_catalog.int4,
  OUT pid pg_catalog.int4,
  OUT state pg_catalog.text,
  OUT protocol pg_catalog.text,
  OUT waiting pg_catalog.interval)
RETURNS SETOF pg_catalog.record
AS 'MODULE_PATHNAME', 'rdmacc_gate_sessions'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.sessions_at_gate() IS 'what rdmacc.gate_sessions shows';

CREATE VIEW @extschema@.stat_stages AS SELECT * FROM @extschema@.stage_statistics();
COMMENT ON VIEW @extschema@.stat_stages IS
  'how long stages of transactions took, by protocol and primitive, in all sessions';

CREATE VIEW @extschema@.stat_aborts AS SELECT * FROM @extschema@.abort_statistics();
COMMENT ON VIEW @extschema@.stat_aborts IS 'transactions that were aborted, by protocol and reason';

CREATE VIEW @extschema@.stat_plans AS SELECT * FROM @extschema@.plan_statistics();
COMMENT ON VIEW @extschema@.stat_plans IS 'transactions by protocol and stage plan';

-- A relation has one file; its name is known in its own database alone.
CREATE VIEW @extschema@.locks AS
  SELECT l.node, l.database, c.oid::pg_catalog.regclass AS relation, l.table_id, l.header,
         l.key_hash, l.mode, l.granted, l.holders, l.worker, l.pid, l.since
  FROM @extschema@.locked_headers() l
  LEFT JOIN pg_catalog.pg_database d
    ON d.oid OPERATOR(pg_catalog.=) l.database
    AND d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()
  LEFT JOIN pg_catalog.pg_class c
    ON d.oid IS NOT NULL AND c.relfilenode OPERATOR(pg_catalog.=) l.relfilenode
    AND c.relkind OPERATOR(pg_catalog.=) ANY (ARRAY['r', 'm']::pg_catalog."char"[]);
COMMENT ON VIEW @extschema@.locks IS
  'headers of rows and of gaps between them that are locked or waited for, on all nodes';

CREATE VIEW @extschema@.gate AS SELECT * FROM @extschema@.gate_state();
COMMENT ON VIEW @extschema@.gate IS 'the protocol gate: which protocol runs, which waits';

CREATE VIEW @extschema@.gate_sessions AS SELECT * FROM @extschema@.sessions_at_gate();
COMMENT ON VIEW @extschema@.gate_sessions IS 'sessions inside the protocol gate or waiting at it';

-- The schema is for every role (the version is no secret), the rest is for monitoring. Resetting is
-- for superusers, and can be granted, as with PostgreSQL's own statistics.
GRANT USAGE ON SCHEMA @extschema@ TO PUBLIC;
REVOKE ALL ON FUNCTION @extschema@.nodes(), @extschema@.stage_statistics(),
  @extschema@.abort_statistics(), @extschema@.plan_statistics(), @extschema@.stat_reset(),
  @extschema@.locked_headers(), @extschema@.gate_state(), @extschema@.sessions_at_gate() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION @extschema@.nodes(), @extschema@.stage_statistics(),
  @extschema@.abort_statistics(), @extschema@.plan_statistics(), @extschema@.locked_headers(),
  @extschema@.gate_state(), @extschema@.sessions_at_gate() TO pg_monitor;
REVOKE ALL ON @extschema@.stat_nodes, @extschema@.stat_stages, @extschema@.stat_aborts,
  @extschema@.stat_plans, @extschema@.locks, @extschema@.gate, @extschema@.gate_sessions FROM PUBLIC;
GRANT SELECT ON @extschema@.stat_nodes, @extschema@.stat_stages, @extschema@.stat_aborts,
  @extschema@.stat_plans, @extschema@.locks, @extschema@.gate, @extschema@.gate_sessions TO pg_monitor;
