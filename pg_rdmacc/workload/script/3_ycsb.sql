
-- ---- YCSB: records of ten text fields. A record counts its updates, and each writes its number
-- into one field, whose text follows from record, field and number: a torn record, a misplaced one
-- and a lost update are noticed.
CREATE FUNCTION @extschema@.ycsb_value(record int, field int, version int, bytes int)
RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT rpad(record::text || '.' || field::text || '.' || version::text || '.', bytes,
              'abcdefghijklmnopqrstuvwxyz')
$$;
COMMENT ON FUNCTION @extschema@.ycsb_value(int, int, int, int) IS
  'the text of a field that an update''s number went to, 0 for a loaded one';

CREATE PROCEDURE @extschema@.ycsb_create(
  records int DEFAULT 100000, field_bytes int DEFAULT 100, access_method name DEFAULT 'rdmacc')
LANGUAGE plpgsql AS $$
DECLARE
  fields text;
BEGIN
  PERFORM @extschema@.check_at_least('records', records, 1);
  PERFORM @extschema@.check_at_least('field_bytes', field_bytes, 25);
  SELECT string_agg(format('@extschema@.ycsb_value(i, %s, 0, %s) AS field%s', f, field_bytes, f),
                    ', ' ORDER BY f) INTO fields FROM generate_series(1, 10) f;
  CALL @extschema@.load_table('usertable', access_method, format(
    'SELECT i AS ycsb_key, %s, 0 AS updates FROM generate_series(0, %s - 1) i', fields, records),
    'ycsb_key');
  EXECUTE format('CREATE SEQUENCE usertable_key MINVALUE 0 MAXVALUE 2147483647 START %s OWNED BY'
                 ' usertable.ycsb_key', records);
END $$;
COMMENT ON PROCEDURE @extschema@.ycsb_create(int, int, name) IS
  'makes YCSB''s table, usertable, and the sequence of keys for records to come, usertable_key';

CREATE FUNCTION @extschema@.ycsb_check(OUT condition text, OUT detail text)
RETURNS SETOF record LANGUAGE plpgsql AS $$
BEGIN
  RETURN QUERY
    WITH parts AS (
      SELECT ycsb_key, updates, f.number::int, f.value, split_part(f.value, '.', 3)::int AS version
      FROM usertable, unnest(ARRAY[field1, field2, field3, field4, field5, field6, field7, field8,
                                   field9, field10]) WITH ORDINALITY f(value, number)
    )
    SELECT 'record', format('field %s of record %s is torn', number, ycsb_key) FROM parts
      WHERE value <> @extschema@.ycsb_value(ycsb_key, number, version, length(value))
    UNION ALL
    SELECT 'updates', format('record %s has lost an update', ycsb_key) FROM parts
      GROUP BY ycsb_key, updates
      HAVING max(version) <> updates
        OR count(*) FILTER (WHERE version > 0) <> count(DISTINCT version) FILTER (WHERE version > 0);
END $$;
COMMENT ON FUNCTION @extschema@.ycsb_check() IS 'what is wrong with YCSB''s records; no row: nothing';

CREATE FUNCTION @extschema@.ycsb_read_sql(record int) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
  fields text[];
BEGIN
  SELECT ARRAY[field1, field2, field3, field4, field5, field6, field7, field8, field9, field10]
    INTO fields FROM usertable WHERE ycsb_key = record;
  RETURN fields;
END $$;
COMMENT ON FUNCTION @extschema@.ycsb_read_sql(int) IS
  'the fields of a record, NULL if there is none; plain SQL';

-- A statement for each field.
DO $do$
BEGIN
  EXECUTE (SELECT format($create$
CREATE FUNCTION @extschema@.ycsb_update_sql(record int, field int) RETURNS bool
LANGUAGE plpgsql AS $body$
BEGIN
  CASE field%s
  END CASE;
  RETURN FOUND;
END $body$ $create$, string_agg(format($branch$
    WHEN %1$s THEN
      UPDATE usertable SET updates = updates + 1,
        field%1$s = @extschema@.ycsb_value(record, %1$s, updates + 1, length(field%1$s))
        WHERE ycsb_key = record;$branch$, f), '' ORDER BY f))
    FROM generate_series(1, 10) f);
END $do$;
COMMENT ON FUNCTION @extschema@.ycsb_update_sql(int, int) IS
  'writes one field of a record, false if there is none; plain SQL';

CREATE FUNCTION @extschema@.ycsb_read_modify_write_sql(record int, field int) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
  fields text[];
BEGIN
  SELECT ARRAY[field1, field2, field3, field4, field5, field6, field7, field8, field9, field10]
    INTO fields FROM usertable WHERE ycsb_key = record;
  IF FOUND THEN PERFORM @extschema@.ycsb_update_sql(record, field); END IF;
  RETURN fields;
END $$;
COMMENT ON FUNCTION @extschema@.ycsb_read_modify_write_sql(int, int) IS
  'reads a record and writes one of its fields; what it was before; plain SQL';

CREATE FUNCTION @extschema@.ycsb_insert_sql(record int, field_bytes int DEFAULT 100) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO usertable VALUES (record,
    @extschema@.ycsb_value(record, 1, 0, field_bytes), @extschema@.ycsb_value(record, 2, 0, field_bytes),
    @extschema@.ycsb_value(record, 3, 0, field_bytes), @extschema@.ycsb_value(record, 4, 0, field_bytes),
    @extschema@.ycsb_value(record, 5, 0, field_bytes), @extschema@.ycsb_value(record, 6, 0, field_bytes),
    @extschema@.ycsb_value(record, 7, 0, field_bytes), @extschema@.ycsb_value(record, 8, 0, field_bytes),
    @extschema@.ycsb_value(record, 9, 0, field_bytes), @extschema@.ycsb_value(record, 10, 0, field_bytes),
    0);
END $$;
COMMENT ON FUNCTION @extschema@.ycsb_insert_sql(int, int) IS 'inserts a record; plain SQL';

-- Keys are whole numbers, so a range is a list of keys: no index in order is needed.
CREATE FUNCTION @extschema@.ycsb_scan_sql(first int, count int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  keys int[] := ARRAY(SELECT generate_series(first, first + count - 1));
  found_rows int;
BEGIN
  SELECT count(field10) INTO found_rows FROM usertable WHERE ycsb_key = ANY (keys);
  RETURN found_rows;
END $$;
COMMENT ON FUNCTION @extschema@.ycsb_scan_sql(int, int) IS
  'reads the records of a range of keys; how many there are; plain SQL';

CREATE FUNCTION @extschema@.ycsb_transaction_sql(records int[], writes int) RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
  found_rows int;
BEGIN
  SELECT count(field10) INTO found_rows FROM usertable WHERE ycsb_key = ANY (records);
  FOR i IN 1 .. writes LOOP
    PERFORM @extschema@.ycsb_update_sql(records[i], 1 + records[i] % 10);
  END LOOP;
  RETURN found_rows;
END $$;
COMMENT ON FUNCTION @extschema@.ycsb_transaction_sql(int[], int) IS
  'reads records and writes a field of each of the first ones; how many there are; plain SQL';

-- The same, one call of the engine's each: for rdmacc tables alone.
CREATE FUNCTION @extschema@.ycsb_read(record int) RETURNS text[]
AS 'MODULE_PATHNAME', 'rdmacc_ycsb_read' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.ycsb_read(int) IS
  'the fields of a record, NULL if there is none; rdmacc tables alone';

CREATE FUNCTION @extschema@.ycsb_update(record int, field int) RETURNS bool
AS 'MODULE_PATHNAME', 'rdmacc_ycsb_update' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.ycsb_update(int, int) IS
  'writes one field of a record, false if there is none; rdmacc tables alone';

CREATE FUNCTION @extschema@.ycsb_read_modify_write(record int, field int) RETURNS text[]
AS 'MODULE_PATHNAME', 'rdmacc_ycsb_read_modify_write' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.ycsb_read_modify_write(int, int) IS
  'reads a record and writes one of its fields; what it was before; rdmacc tables alone';

CREATE FUNCTION @extschema@.ycsb_insert(record int, field_bytes int DEFAULT 100) RETURNS void
AS 'MODULE_PATHNAME', 'rdmacc_ycsb_insert' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.ycsb_insert(int, int) IS 'inserts a record; rdmacc tables alone';

CREATE FUNCTION @extschema@.ycsb_scan(first int, count int) RETURNS int
AS 'MODULE_PATHNAME', 'rdmacc_ycsb_scan' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.ycsb_scan(int, int) IS
  'reads the records of a range of keys; how many there are; rdmacc tables alone';

CREATE FUNCTION @extschema@.ycsb_transaction(records int[], writes int) RETURNS int
AS 'MODULE_PATHNAME', 'rdmacc_ycsb_transaction' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.ycsb_transaction(int[], int) IS
  'reads records and writes a field of each of the first ones; how many there are; rdmacc tables alone';
