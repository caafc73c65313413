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
  OUT requests pg_catalog.int8)
RETURNS SETOF pg_catalog.record
AS 'MODULE_PATHNAME', 'rdmacc_stat_nodes'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.nodes() IS 'what rdmacc.stat_nodes shows';

CREATE VIEW @extschema@.stat_nodes AS SELECT * FROM @extschema@.nodes();
COMMENT ON VIEW @extschema@.stat_nodes IS 'the nodes of this server: process, memory, contents';

-- The schema is for everybody (the version is no secret), the nodes are for monitoring.
GRANT USAGE ON SCHEMA @extschema@ TO PUBLIC;
REVOKE ALL ON FUNCTION @extschema@.nodes() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION @extschema@.nodes() TO pg_monitor;
REVOKE ALL ON @extschema@.stat_nodes FROM PUBLIC;
GRANT SELECT ON @extschema@.stat_nodes TO pg_monitor;
