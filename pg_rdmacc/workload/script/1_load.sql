-- Complain if the script is fed to psql instead of CREATE EXTENSION.
\echo Use "CREATE EXTENSION rdmacc_workloads" to load this file. \quit

-- Tables are made in, and found by, the caller's search_path: the same functions run on rdmacc
-- tables and on heaps. Those named ..._sql are plain; those without are the engine's own path.

-- Procedures, not functions: where no query is open around a load, the nodes put its rows in place
-- before the commit.
CREATE PROCEDURE @extschema@.load_rows(relation regclass, query text)
AS 'MODULE_PATHNAME', 'rdmacc_load_rows' LANGUAGE C;
COMMENT ON PROCEDURE @extschema@.load_rows(regclass, text) IS
  'inserts a query''s rows into a plain rdmacc table that the transaction has made';

-- Rows of an rdmacc table go to their keys at once, and are found by whole keys unless the settings
-- say more; an index of a heap is made when its rows are there.
CREATE PROCEDURE @extschema@.load_table(
  table_name name, access_method name, query text, primary_key text, settings text DEFAULT NULL)
LANGUAGE plpgsql AS $$
DECLARE
  begun timestamptz := clock_timestamp();
  columns name := table_name || '_columns';
BEGIN
  IF access_method <> 'rdmacc' THEN
    EXECUTE format('CREATE TABLE %I USING %I AS %s', table_name, access_method, query);
    IF primary_key IS NOT NULL THEN
      EXECUTE format('ALTER TABLE %I ADD PRIMARY KEY (%s)', table_name, primary_key);
    END IF;
  ELSE
    EXECUTE format('CREATE TABLE %I USING heap AS %s WITH NO DATA', columns, query);
    EXECUTE format('CREATE TABLE %I (LIKE %I%s) USING rdmacc WITH (rdmacc.ordered_key = off)',
                   table_name, columns, ', PRIMARY KEY (' || primary_key || ')');
    EXECUTE format('DROP TABLE %I', columns);
    CALL @extschema@.load_rows(quote_ident(table_name)::regclass, query);
    IF settings IS NOT NULL THEN
      EXECUTE format('ALTER TABLE %I SET (%s)', table_name, settings);
    END IF;
  END IF;
  RAISE NOTICE 'table "%" is loaded', table_name
    USING DETAIL = format('It took %s s.',
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

CREATE FUNCTION @extschema@.draw_text(bytes int) RETURNS text LANGUAGE sql VOLATILE PARALLEL SAFE AS
$$ SELECT left(repeat(md5(random()::text), bytes / 32 + 1), bytes) $$;
COMMENT ON FUNCTION @extschema@.draw_text(int) IS 'letters and figures, as random as they need be';
