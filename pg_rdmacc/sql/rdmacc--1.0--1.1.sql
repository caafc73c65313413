-- Complain if the script is fed to psql instead of ALTER EXTENSION or CREATE EXTENSION.
\echo Use "ALTER EXTENSION rdmacc UPDATE TO '1.1'" to load this file. \quit

CREATE FUNCTION @extschema@.set_option(
  relation pg_catalog.regclass,
  option pg_catalog.text,
  value pg_catalog.text)
RETURNS pg_catalog.void
AS 'MODULE_PATHNAME', 'rdmacc_set_option'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.set_option(pg_catalog.regclass, pg_catalog.text, pg_catalog.text) IS
  'sets an option of an rdmacc table (record_size, history, partition_by, ordered_key; NULL: what a new table has) and rewrites it';

CREATE VIEW @extschema@.table_options AS
  SELECT objoid::pg_catalog.regclass AS relation, label AS options
  FROM pg_catalog.pg_seclabel
  WHERE provider OPERATOR(pg_catalog.=) 'rdmacc'
    AND classoid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
    AND objsubid OPERATOR(pg_catalog.=) 0;
COMMENT ON VIEW @extschema@.table_options IS
  'options of rdmacc tables that have been chosen';
GRANT SELECT ON @extschema@.table_options TO PUBLIC;

CREATE FUNCTION @extschema@.relation_size(relation pg_catalog.regclass)
RETURNS pg_catalog.int8
AS 'MODULE_PATHNAME', 'rdmacc_sql_relation_size'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.relation_size(pg_catalog.regclass) IS
  'bytes of memory that an rdmacc table without its secondary indexes, or one of those, has in the nodes';

CREATE FUNCTION @extschema@.verify(
  relation pg_catalog.regclass,
  units pg_catalog.bool DEFAULT false,
  OUT finding pg_catalog.text,
  OUT object pg_catalog.regclass,
  OUT node pg_catalog.int4,
  OUT key pg_catalog.bytea,
  OUT detail pg_catalog.text)
RETURNS SETOF pg_catalog.record
AS 'MODULE_PATHNAME', 'rdmacc_sql_verify'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.verify(pg_catalog.regclass, pg_catalog.bool) IS
  'what is wrong with an rdmacc table and its indexes, beside traffic; no row: sound';
REVOKE ALL ON FUNCTION @extschema@.verify(pg_catalog.regclass, pg_catalog.bool) FROM PUBLIC;

-- Transactions of rdmacc rows and of others.
CREATE FUNCTION @extschema@.transactions_in_doubt(
  OUT gtid pg_catalog.text,
  OUT xid pg_catalog.xid8,
  OUT since pg_catalog.timestamptz,
  OUT node pg_catalog.int4,
  OUT state pg_catalog.text,
  OUT worker pg_catalog.int4)
RETURNS SETOF pg_catalog.record
AS 'MODULE_PATHNAME', 'rdmacc_in_doubt'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.transactions_in_doubt() IS 'what rdmacc.in_doubt shows';

CREATE VIEW @extschema@.in_doubt AS SELECT * FROM @extschema@.transactions_in_doubt();
COMMENT ON VIEW @extschema@.in_doubt IS
  'prepared transactions whose session has died, until they are committed or aborted';

CREATE FUNCTION @extschema@.resolve(gtid pg_catalog.text, commit pg_catalog.bool)
RETURNS pg_catalog.void
AS 'MODULE_PATHNAME', 'rdmacc_resolve'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.resolve(pg_catalog.text, pg_catalog.bool) IS
  'commits or aborts a transaction of rdmacc.in_doubt';

REVOKE ALL ON FUNCTION @extschema@.transactions_in_doubt(),
  @extschema@.resolve(pg_catalog.text, pg_catalog.bool) FROM PUBLIC;
REVOKE ALL ON @extschema@.in_doubt FROM PUBLIC;
GRANT EXECUTE ON FUNCTION @extschema@.transactions_in_doubt() TO pg_monitor;
GRANT SELECT ON @extschema@.in_doubt TO pg_monitor;

-- Statements that lose are run again (rdmacc.auto_retry), and so are blocks (rdmacc.replay_limit).
CREATE FUNCTION @extschema@.retry_statistics(
  OUT protocol pg_catalog.text,
  OUT retries pg_catalog.int8,
  OUT given_up pg_catalog.int8,
  OUT replayed_statements pg_catalog.int8,
  OUT replay_ms pg_catalog.float8,
  OUT replays_differed pg_catalog.int8)
RETURNS SETOF pg_catalog.record
AS 'MODULE_PATHNAME', 'rdmacc_stat_retries'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.retry_statistics() IS 'what rdmacc.stat_retries shows';

CREATE VIEW @extschema@.stat_retries AS SELECT * FROM @extschema@.retry_statistics();
COMMENT ON VIEW @extschema@.stat_retries IS
  'how often statements and blocks that lost were run again, how many lost once too often, and what that took';

REVOKE ALL ON FUNCTION @extschema@.retry_statistics() FROM PUBLIC;
REVOKE ALL ON @extschema@.stat_retries FROM PUBLIC;
GRANT EXECUTE ON FUNCTION @extschema@.retry_statistics() TO pg_monitor;
GRANT SELECT ON @extschema@.stat_retries TO pg_monitor;

-- What transactions cost, by RCBench's measures.
CREATE FUNCTION @extschema@.protocol_statistics(
  OUT protocol pg_catalog.text,
  OUT transactions pg_catalog.int8,
  OUT committed pg_catalog.int8,
  OUT reads pg_catalog.int8,
  OUT writes pg_catalog.int8,
  OUT atomics pg_catalog.int8,
  OUT messages pg_catalog.int8,
  OUT doorbells pg_catalog.int8,
  OUT round_trips pg_catalog.int8,
  OUT verbs_per_transaction pg_catalog.float8,
  OUT round_trips_per_transaction pg_catalog.float8,
  OUT nodes_per_transaction pg_catalog.float8,
  OUT effective_share pg_catalog.float8)
RETURNS SETOF pg_catalog.record
AS 'MODULE_PATHNAME', 'rdmacc_stat_protocols'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.protocol_statistics() IS 'what rdmacc.stat_protocols shows';

CREATE VIEW @extschema@.stat_protocols AS SELECT * FROM @extschema@.protocol_statistics();
COMMENT ON VIEW @extschema@.stat_protocols IS
  'verbs and nodes of transactions by protocol, and which share of the stages'' time went to those that committed';

REVOKE ALL ON FUNCTION @extschema@.protocol_statistics() FROM PUBLIC;
REVOKE ALL ON @extschema@.stat_protocols FROM PUBLIC;
GRANT EXECUTE ON FUNCTION @extschema@.protocol_statistics() TO pg_monitor;
GRANT SELECT ON @extschema@.stat_protocols TO pg_monitor;
COMMENT ON FUNCTION @extschema@.stat_reset() IS
  'sets rdmacc.stat_stages, stat_aborts, stat_plans, stat_protocols and stat_retries to zero';

-- Exclusive gate mode by its name.
ALTER VIEW @extschema@.gate RENAME COLUMN alone TO exclusive_worker;
ALTER VIEW @extschema@.gate RENAME COLUMN passages_alone TO exclusive_entries;

-- Rows on disk.
CREATE FUNCTION @extschema@.durability_statistics(
  OUT state pg_catalog.text,
  OUT redo pg_catalog.pg_lsn,
  OUT lag pg_catalog.int8,
  OUT wal_kept pg_catalog.int8,
  OUT made_at pg_catalog.timestamptz,
  OUT duration pg_catalog.float8,
  OUT tables pg_catalog.int8,
  OUT rows pg_catalog.int8,
  OUT bytes pg_catalog.int8,
  OUT written pg_catalog.int8,
  OUT checkpoints pg_catalog.int8,
  OUT failures pg_catalog.int8,
  OUT loaded_rows pg_catalog.int8,
  OUT replayed_writes pg_catalog.int8,
  OUT replayed_until pg_catalog.pg_lsn,
  OUT replay_end pg_catalog.pg_lsn,
  OUT recovery pg_catalog.float8,
  OUT backup pg_catalog.bool)
RETURNS SETOF pg_catalog.record
AS 'MODULE_PATHNAME', 'rdmacc_stat_durability'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.durability_statistics() IS 'what rdmacc.stat_durability shows';

CREATE VIEW @extschema@.stat_durability AS SELECT * FROM @extschema@.durability_statistics();
COMMENT ON VIEW @extschema@.stat_durability IS
  'the last checkpoint of rows, the WAL kept for the next start, and how the last start recovered; no row: rows are in memory only';

CREATE FUNCTION @extschema@.checkpoint()
RETURNS pg_catalog.pg_lsn
AS 'MODULE_PATHNAME', 'rdmacc_sql_checkpoint'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.checkpoint() IS
  'makes a checkpoint of the rows of rdmacc tables and waits for it; its redo position';

REVOKE ALL ON FUNCTION @extschema@.durability_statistics() FROM PUBLIC;
REVOKE ALL ON @extschema@.stat_durability FROM PUBLIC;
REVOKE ALL ON FUNCTION @extschema@.checkpoint() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION @extschema@.durability_statistics() TO pg_monitor;
GRANT SELECT ON @extschema@.stat_durability TO pg_monitor;
GRANT EXECUTE ON FUNCTION @extschema@.checkpoint() TO pg_checkpoint;

-- In the plans of statements these stand for nextval(), currval(), lastval(), identity columns,
-- gen_random_uuid(), random() and clock_timestamp(), so that a transaction block that is run again
-- (rdmacc.replay_limit) draws what it has drawn before.
CREATE FUNCTION @extschema@.noted_nextval(sequence pg_catalog.regclass)
RETURNS pg_catalog.int8
AS 'MODULE_PATHNAME', 'rdmacc_noted_nextval'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.noted_nextval(pg_catalog.regclass) IS
  'nextval(), noted for another attempt of the transaction block';

CREATE FUNCTION @extschema@.noted_currval(sequence pg_catalog.regclass)
RETURNS pg_catalog.int8
AS 'MODULE_PATHNAME', 'rdmacc_noted_currval'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.noted_currval(pg_catalog.regclass) IS
  'currval(), noted for another attempt of the transaction block';

CREATE FUNCTION @extschema@.noted_lastval()
RETURNS pg_catalog.int8
AS 'MODULE_PATHNAME', 'rdmacc_noted_lastval'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.noted_lastval() IS
  'lastval(), noted for another attempt of the transaction block';

CREATE FUNCTION @extschema@.noted_identity(sequence pg_catalog.regclass)
RETURNS pg_catalog.int8
AS 'MODULE_PATHNAME', 'rdmacc_noted_identity'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.noted_identity(pg_catalog.regclass) IS
  'the next value of an identity column, noted for another attempt of the transaction block';

CREATE FUNCTION @extschema@.noted_uuid()
RETURNS pg_catalog.uuid
AS 'MODULE_PATHNAME', 'rdmacc_noted_uuid'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.noted_uuid() IS
  'gen_random_uuid(), noted for another attempt of the transaction block';

CREATE FUNCTION @extschema@.noted_random()
RETURNS pg_catalog.float8
AS 'MODULE_PATHNAME', 'rdmacc_noted_random'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.noted_random() IS
  'random(), noted for another attempt of the transaction block';

CREATE FUNCTION @extschema@.noted_clock()
RETURNS pg_catalog.timestamptz
AS 'MODULE_PATHNAME', 'rdmacc_noted_clock'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.noted_clock() IS
  'clock_timestamp(), noted for another attempt of the transaction block';
