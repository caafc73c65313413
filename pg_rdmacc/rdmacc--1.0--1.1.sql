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
  'sets an option of an rdmacc table (record_size, history; NULL: its default) and rewrites it';

CREATE VIEW @extschema@.table_options AS
  SELECT objoid::pg_catalog.regclass AS relation, label AS options
  FROM pg_catalog.pg_seclabel
  WHERE provider OPERATOR(pg_catalog.=) 'rdmacc'
    AND classoid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
    AND objsubid OPERATOR(pg_catalog.=) 0;
COMMENT ON VIEW @extschema@.table_options IS
  'options of rdmacc tables that differ from the defaults';
GRANT SELECT ON @extschema@.table_options TO PUBLIC;
