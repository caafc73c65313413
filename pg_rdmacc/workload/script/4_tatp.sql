
-- ---- TATP: a telephone network's subscribers, what they may use, and how their calls are forwarded.
CREATE PROCEDURE @extschema@.tatp_create(
  subscribers int DEFAULT 100000, access_method name DEFAULT 'rdmacc')
LANGUAGE plpgsql AS $$
DECLARE
  attributes text;
BEGIN
  PERFORM @extschema@.check_at_least('subscribers', subscribers, 1);
  SELECT string_agg(format('(random() * 1)::smallint AS bit_%s', i), ', ' ORDER BY i) || ', ' ||
    string_agg(format('(floor(random() * 16))::smallint AS hex_%s', i), ', ' ORDER BY i) || ', ' ||
    string_agg(format('(floor(random() * 256))::smallint AS byte2_%s', i), ', ' ORDER BY i)
    INTO attributes FROM generate_series(1, 10) i;
  CALL @extschema@.load_table('subscriber', access_method, format(
    'SELECT i AS s_id, lpad(i::text, 15, ''0'')::varchar(15) AS sub_nbr, %s,
       (random() * 2147483647)::int AS msc_location, (random() * 2147483647)::int AS vlr_location
     FROM generate_series(1, %s) i', attributes, subscribers), 's_id');
  EXECUTE 'CREATE UNIQUE INDEX subscriber_sub_nbr ON subscriber (sub_nbr)';
  -- Each subscriber has one to four of the four types of access and of facilities: which ones, and
  -- how many, follow from the number, so that what is loaded is known.
  CALL @extschema@.load_table('access_info', access_method, format(
    'SELECT i AS s_id, t::smallint AS ai_type, (floor(random() * 256))::smallint AS data1,
       (floor(random() * 256))::smallint AS data2, substr(md5(i::text), t, 3)::varchar(3) AS data3,
       substr(md5(i::text), t + 8, 5)::varchar(5) AS data4
     FROM generate_series(1, %s) i, generate_series(1, 4) t WHERE t <= 1 + i %% 4', subscribers),
    's_id, ai_type');
  CALL @extschema@.load_table('special_facility', access_method, format(
    'SELECT i AS s_id, t::smallint AS sf_type, (random() < 0.85)::int::smallint AS is_active,
       (floor(random() * 256))::smallint AS error_cntrl, (floor(random() * 256))::smallint AS data_a,
       substr(md5(i::text), t + 16, 5)::varchar(5) AS data_b
     FROM generate_series(1, %s) i, generate_series(1, 4) t WHERE t <= 1 + i / 4 %% 4', subscribers),
    's_id, sf_type');
  CALL @extschema@.load_table('call_forwarding', access_method, format(
    'SELECT i AS s_id, t::smallint AS sf_type, (8 * f)::smallint AS start_time,
       (8 * f + 1 + floor(random() * 8))::smallint AS end_time,
       lpad((floor(random() * %1$s) + 1)::int::text, 15, ''0'')::varchar(15) AS numberx
     FROM generate_series(1, %1$s) i, generate_series(1, 4) t, generate_series(0, 2) f
     WHERE t <= 1 + i / 4 %% 4 AND f < (i / 16 + t) %% 4', subscribers),
    's_id, sf_type, start_time');
END $$;
COMMENT ON PROCEDURE @extschema@.tatp_create(int, name) IS
  'makes TATP''s tables: subscriber, access_info, special_facility, call_forwarding';

CREATE FUNCTION @extschema@.tatp_check(OUT condition text, OUT detail text)
RETURNS SETOF record LANGUAGE plpgsql AS $$
BEGIN
  RETURN QUERY
    SELECT 'access_info', format('no subscriber %s', a.s_id) FROM access_info a
      WHERE NOT EXISTS (SELECT FROM subscriber s WHERE s.s_id = a.s_id)
    UNION ALL
    SELECT 'special_facility', format('no subscriber %s', f.s_id) FROM special_facility f
      WHERE NOT EXISTS (SELECT FROM subscriber s WHERE s.s_id = f.s_id)
    UNION ALL
    SELECT 'call_forwarding', format('subscriber %s has no facility %s', c.s_id, c.sf_type)
      FROM call_forwarding c WHERE NOT EXISTS
        (SELECT FROM special_facility f WHERE (f.s_id, f.sf_type) = (c.s_id, c.sf_type))
    UNION ALL
    SELECT 'call_forwarding', format('a call of subscriber %s is forwarded to %s', s_id, numberx)
      FROM call_forwarding c WHERE NOT EXISTS (SELECT FROM subscriber s WHERE s.sub_nbr = c.numberx)
    UNION ALL
    SELECT 'subscriber', format('subscriber %s has number %s', s_id, sub_nbr) FROM subscriber
      WHERE sub_nbr <> lpad(s_id::text, 15, '0');
END $$;
COMMENT ON FUNCTION @extschema@.tatp_check() IS
  'rows of TATP''s tables that refer to none; no row: nothing is wrong';

CREATE FUNCTION @extschema@.tatp_get_subscriber_data_sql(id int) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
  found_row record;
BEGIN
  SELECT * INTO STRICT found_row FROM subscriber WHERE s_id = id;
  RETURN found_row::text;
END $$;
COMMENT ON FUNCTION @extschema@.tatp_get_subscriber_data_sql(int) IS
  'a subscriber''s row as text; plain SQL';

-- Forwarding starts at 0, 8 or 16 o'clock: whole keys.
CREATE FUNCTION @extschema@.tatp_get_new_destination_sql(
  id int, facility int, starts int, ends int) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
  number text;
  active bool;
BEGIN
  SELECT is_active = 1 INTO active FROM special_facility
    WHERE s_id = id AND sf_type = facility::smallint;
  IF active IS NOT TRUE THEN RETURN NULL; END IF;
  FOR hour IN 0 .. starts BY 8 LOOP
    SELECT numberx INTO number FROM call_forwarding
      WHERE s_id = id AND sf_type = facility::smallint AND start_time = hour::smallint
        AND end_time > ends;
    IF FOUND THEN RETURN number; END IF;
  END LOOP;
  RETURN NULL;
END $$;
COMMENT ON FUNCTION @extschema@.tatp_get_new_destination_sql(int, int, int, int) IS
  'where a call is forwarded to, NULL for nowhere; plain SQL';

CREATE FUNCTION @extschema@.tatp_get_access_data_sql(id int, type int) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
  found_row record;
BEGIN
  SELECT data1, data2, data3, data4 INTO found_row FROM access_info
    WHERE s_id = id AND ai_type = type::smallint;
  IF NOT FOUND THEN RETURN NULL; END IF;
  RETURN found_row::text;
END $$;
COMMENT ON FUNCTION @extschema@.tatp_get_access_data_sql(int, int) IS
  'what a subscriber has of a type of access, NULL for nothing; plain SQL';

CREATE FUNCTION @extschema@.tatp_update_subscriber_data_sql(id int, facility int, flag int, data int)
RETURNS bool LANGUAGE plpgsql AS $$
BEGIN
  UPDATE special_facility SET data_a = data::smallint
    WHERE s_id = id AND sf_type = facility::smallint;
  IF NOT FOUND THEN RETURN false; END IF;
  UPDATE subscriber SET bit_1 = flag::smallint WHERE s_id = id;
  RETURN true;
END $$;
COMMENT ON FUNCTION @extschema@.tatp_update_subscriber_data_sql(int, int, int, int) IS
  'writes a subscriber''s profile, false where there is no such facility; plain SQL';

CREATE FUNCTION @extschema@.tatp_update_location_sql(number text, location int) RETURNS bool
LANGUAGE plpgsql AS $$
BEGIN
  UPDATE subscriber SET vlr_location = location WHERE sub_nbr = number;
  RETURN FOUND;
END $$;
COMMENT ON FUNCTION @extschema@.tatp_update_location_sql(text, int) IS
  'writes the location of the subscriber with a number; plain SQL';

CREATE FUNCTION @extschema@.tatp_insert_call_forwarding_sql(
  number text, facility int, starts int, ends int, target text) RETURNS bool
LANGUAGE plpgsql AS $$
DECLARE
  id int;
BEGIN
  SELECT s_id INTO STRICT id FROM subscriber WHERE sub_nbr = number;
  PERFORM FROM special_facility WHERE s_id = id AND sf_type = facility::smallint;
  IF NOT FOUND THEN RETURN false; END IF;
  INSERT INTO call_forwarding
    VALUES (id, facility::smallint, starts::smallint, ends::smallint, target)
    ON CONFLICT DO NOTHING;
  RETURN FOUND;
END $$;
COMMENT ON FUNCTION @extschema@.tatp_insert_call_forwarding_sql(text, int, int, int, text) IS
  'forwards calls, false where they are already or there is no such facility; plain SQL';

CREATE FUNCTION @extschema@.tatp_delete_call_forwarding_sql(number text, facility int, starts int)
RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
  id int;
BEGIN
  SELECT s_id INTO STRICT id FROM subscriber WHERE sub_nbr = number;
  DELETE FROM call_forwarding
    WHERE s_id = id AND sf_type = facility::smallint AND start_time = starts::smallint;
  RETURN FOUND;
END $$;
COMMENT ON FUNCTION @extschema@.tatp_delete_call_forwarding_sql(text, int, int) IS
  'forwards calls no more, false where they were not; plain SQL';

-- The same, one call of the engine's each: for rdmacc tables alone.
CREATE FUNCTION @extschema@.tatp_get_subscriber_data(
  id int) RETURNS text
AS 'MODULE_PATHNAME', 'rdmacc_tatp_get_subscriber_data' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.tatp_get_subscriber_data(int) IS
  'a subscriber''s row as text; rdmacc tables alone';

CREATE FUNCTION @extschema@.tatp_get_new_destination(
  id int, facility int, starts int, ends int) RETURNS text
AS 'MODULE_PATHNAME', 'rdmacc_tatp_get_new_destination' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.tatp_get_new_destination(int, int, int, int) IS
  'where a call is forwarded to, NULL for nowhere; rdmacc tables alone';

CREATE FUNCTION @extschema@.tatp_get_access_data(
  id int, type int) RETURNS text
AS 'MODULE_PATHNAME', 'rdmacc_tatp_get_access_data' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.tatp_get_access_data(int, int) IS
  'what a subscriber has of a type of access, NULL for nothing; rdmacc tables alone';

CREATE FUNCTION @extschema@.tatp_update_subscriber_data(
  id int, facility int, flag int, data int) RETURNS bool
AS 'MODULE_PATHNAME', 'rdmacc_tatp_update_subscriber_data' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.tatp_update_subscriber_data(int, int, int, int) IS
  'writes a subscriber''s profile, false where there is no such facility; rdmacc tables alone';

CREATE FUNCTION @extschema@.tatp_update_location(
  number text, location int) RETURNS bool
AS 'MODULE_PATHNAME', 'rdmacc_tatp_update_location' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.tatp_update_location(text, int) IS
  'writes the location of the subscriber with a number; rdmacc tables alone';

CREATE FUNCTION @extschema@.tatp_insert_call_forwarding(
  number text, facility int, starts int, ends int, target text) RETURNS bool
AS 'MODULE_PATHNAME', 'rdmacc_tatp_insert_call_forwarding' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.tatp_insert_call_forwarding(text, int, int, int, text) IS
  'forwards calls, false where they are already or there is no such facility; rdmacc tables alone';

CREATE FUNCTION @extschema@.tatp_delete_call_forwarding(
  number text, facility int, starts int) RETURNS bool
AS 'MODULE_PATHNAME', 'rdmacc_tatp_delete_call_forwarding' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.tatp_delete_call_forwarding(text, int, int) IS
  'forwards calls no more, false where they were not; rdmacc tables alone';
