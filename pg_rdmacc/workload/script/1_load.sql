-- Complain if the script is fed to psql instead of CREATE EXTENSION.
\echo Use "CREATE EXTENSION rdmacc_workloads" to load this file. \quit

-- Tables are made in, and found by, the caller's search_path: the same functions run on rdmacc
-- tables and on heaps. Those named ..._sql are plain; those without are the engine's own path.

-- Procedures, not functions: where no query is open around CREATE TABLE AS, the nodes put its rows
-- in place before the commit.
CREATE PROCEDURE @extschema@.load_table(
  table_name name, access_method name, query text, primary_key text, settings text DEFAULT NULL)
LANGUAGE plpgsql AS $$
DECLARE
  begun timestamptz := clock_timestamp();
  loaded bigint;
BEGIN
  EXECUTE format('CREATE TABLE %I USING %I AS %s', table_name, access_method, query);
  GET DIAGNOSTICS loaded = ROW_COUNT;
  IF settings IS NOT NULL AND access_method = 'rdmacc' THEN
    EXECUTE format('ALTER TABLE %I SET (%s)', table_name, settings);
  END IF;
  IF primary_key IS NOT NULL THEN
    EXECUTE format('ALTER TABLE %I ADD PRIMARY KEY (%s)', table_name, primary_key);
  END IF;
  RAISE NOTICE 'table "%": % rows', table_name, loaded
    USING DETAIL = format('Loaded in %s s.',
      round(extract(epoch FROM clock_timestamp() - begun)::numeric, 1));
END $$;
COMMENT ON PROCEDURE @extschema@.load_table(name, name, text, text, text) IS
  'makes a table of a query''s rows, with a primary key; options are for the access method rdmacc';

CREATE FUNCTION @extschema@.check_at_least(what text, value bigint, smallest bigint)
RETURNS void LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  IF value IS NULL OR value < smallest THEN
    RAISE EXCEPTION '% must be at least %', what, smallest USING ERRCODE = 'invalid_parameter_value';
  END IF;
END $$;
COMMENT ON FUNCTION @extschema@.check_at_least(text, bigint, bigint) IS
  'refuses the size of a workload that is too small';
