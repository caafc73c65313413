-- Secondary indexes: plans, what scans find, and in which order.
SET rdmacc.ordered_keys = off; -- the primary key offers no other way
SET jit = off; -- a plan that is not wanted is dear, and would be compiled
CREATE TABLE t (id int PRIMARY KEY, a int, b text COLLATE "C", c numeric) USING rdmacc;
INSERT INTO t SELECT g, g % 50, 'b' || g % 7, nullif(g % 11, 3) FROM generate_series(1, 1000) g;
CREATE INDEX t_a ON t (a);
CREATE INDEX t_b_c ON t (b, c DESC NULLS LAST) INCLUDE (a);
ANALYZE t;
\d t
SELECT indexrelid::regclass, indisunique, indisvalid, indisready, indislive
  FROM pg_index WHERE indrelid = 't'::regclass ORDER BY 1;

-- Rows that an index names are fetched in batches: a bitmap of one would be no cheaper. Whole primary
-- keys are looked up.
EXPLAIN (COSTS OFF) SELECT * FROM t WHERE a = 5;
EXPLAIN (COSTS OFF) SELECT * FROM t WHERE a BETWEEN 5 AND 6;
EXPLAIN (COSTS OFF) SELECT * FROM t WHERE a IN (1, 5, 7);
EXPLAIN (COSTS OFF) SELECT * FROM t WHERE b = 'b3' AND c < 2;
EXPLAIN (COSTS OFF) SELECT * FROM t ORDER BY a LIMIT 5;
EXPLAIN (COSTS OFF) SELECT * FROM t ORDER BY a DESC LIMIT 5;
EXPLAIN (COSTS OFF) SELECT min(a), max(a) FROM t;
EXPLAIN (COSTS OFF) SELECT * FROM t WHERE id = 5;
EXPLAIN (COSTS OFF) SELECT * FROM t x JOIN t y ON y.a = x.id WHERE x.id = 3;
EXPLAIN (COSTS OFF) UPDATE t SET c = 1 WHERE a = 5;
EXPLAIN (COSTS OFF) DELETE FROM t WHERE a = 5;
EXPLAIN (COSTS OFF) SELECT * FROM t WHERE a = 5 FOR UPDATE;

SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM t;
SELECT count(*) FROM t;
SELECT count(*) FROM t WHERE a IN (1, 2);
RESET enable_seqscan;

-- The same rows, in the same order, as without the index; and the same rows by a bitmap.
CREATE FUNCTION plan_of(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE line text; found text := '';
BEGIN
  FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
    IF line ~ 'Index (Only )?Scan|Seq Scan|Sort$|Custom Scan' THEN
      found := found || CASE WHEN found = '' THEN '' ELSE ', ' END
               || regexp_replace(btrim(line, ' ->'), ' on .*', '');
    END IF;
  END LOOP;
  RETURN found;
END $$;
CREATE FUNCTION compare(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE by_index text; by_rows text; by_bitmap text; by_scan text; plan text;
BEGIN
  PERFORM set_config('enable_seqscan', 'off', true), set_config('enable_sort', 'off', true),
          set_config('enable_bitmapscan', 'off', true);
  plan := plan_of(query);
  EXECUTE 'SELECT string_agg(s::text, '','') FROM (' || query || ') s' INTO by_index;
  PERFORM set_config('enable_indexonlyscan', 'off', true);
  EXECUTE 'SELECT string_agg(s::text, '','') FROM (' || query || ') s' INTO by_rows;
  PERFORM set_config('enable_sort', 'on', true), set_config('enable_indexscan', 'off', true),
          set_config('enable_bitmapscan', 'on', true);
  EXECUTE 'SELECT string_agg(s::text, '','') FROM (' || query || ') s' INTO by_bitmap;
  PERFORM set_config('enable_seqscan', 'on', true), set_config('enable_bitmapscan', 'off', true);
  EXECUTE 'SELECT string_agg(s::text, '','') FROM (' || query || ') s' INTO by_scan;
  PERFORM set_config('enable_indexscan', 'on', true), set_config('enable_indexonlyscan', 'on', true),
          set_config('enable_bitmapscan', 'on', true);
  RETURN plan || CASE WHEN by_index IS NOT DISTINCT FROM by_scan
    AND by_rows IS NOT DISTINCT FROM by_scan AND by_bitmap IS NOT DISTINCT FROM by_scan
    THEN ': same' ELSE ': DIFFERENT' END;
END $$;
SELECT compare('SELECT * FROM t WHERE a = 5 ORDER BY a, id');
SELECT compare('SELECT a FROM t WHERE a < 5 ORDER BY a');
SELECT compare('SELECT a FROM t WHERE a >= 47 ORDER BY a DESC');
SELECT compare('SELECT a FROM t WHERE a > 10 AND a <= 12 AND a <> 11 ORDER BY a');
SELECT compare('SELECT a FROM t WHERE a > 12 AND a < 10 ORDER BY a');
SELECT compare('SELECT a FROM t WHERE a IN (30, 2, 30, NULL, 7, 99) ORDER BY a DESC');
SELECT compare('SELECT b, c FROM t WHERE b = ''b2'' ORDER BY b, c DESC NULLS LAST');
SELECT compare('SELECT b, c FROM t WHERE b = ''b2'' ORDER BY b DESC, c NULLS FIRST');
SELECT compare('SELECT b, c FROM t WHERE b = ''b2'' AND c IS NULL ORDER BY b');
SELECT compare('SELECT b, c FROM t WHERE b = ''b2'' AND c IS NOT NULL ORDER BY b, c DESC NULLS LAST');
SELECT compare('SELECT b, c FROM t WHERE b = ''b2'' AND c >= 5 AND c < 8 ORDER BY b, c DESC NULLS LAST');
SELECT compare('SELECT b, c FROM t WHERE b > ''b4'' AND c = 2 ORDER BY b');
SELECT compare('SELECT b, c FROM t WHERE (b, c) = (''b4'', 2) ORDER BY b');
SELECT compare('SELECT b FROM t WHERE b LIKE ''b3%'' ORDER BY b');
SELECT compare('SELECT a FROM t WHERE a > 45.5::numeric ORDER BY a');
SELECT compare('SELECT a FROM t WHERE a = 45::bigint OR a = 3::smallint ORDER BY a');
SELECT compare('SELECT a FROM t WHERE a < ANY (ARRAY[3, 5]) ORDER BY a');
SELECT compare('SELECT x.id, y.a FROM t x JOIN t y ON y.a = x.id WHERE x.id IN (3, 4) ORDER BY 1, 2');
SELECT compare('SELECT min(a), max(a), min(c), max(b) FROM t');
CREATE INDEX t_c_a ON t (c, a);
SELECT compare('SELECT c, a FROM t WHERE (c, a) > (8, 40) ORDER BY c, a');
SELECT compare('SELECT c, a FROM t WHERE (c, a) <= (1, 7) ORDER BY c, a');
SELECT compare('SELECT c, a FROM t WHERE c IN (1, 2) AND a IN (3, 4) ORDER BY c, a');
SELECT compare('SELECT c, a FROM t WHERE c IS NULL AND a > 45 ORDER BY c, a');
SELECT compare('SELECT c, a FROM t WHERE c = NULL ORDER BY c, a');
SELECT compare('SELECT c, a FROM t ORDER BY c DESC, a DESC');

-- Every type with an order, in four directions, with NULLs.
CREATE TYPE mood AS ENUM ('sad', 'happy');
ALTER TYPE mood ADD VALUE 'glad' BEFORE 'happy';
CREATE TABLE types (id int PRIMARY KEY, b bool, i2 int2, i8 int8, o oid, f4 float4, f8 float8,
  n numeric, d date, t time, ts timestamp, tz timestamptz, ttz timetz, iv interval, u uuid,
  by bytea, tx text COLLATE "C", vc varchar(20) COLLATE "C", nm name, bp char(8) COLLATE "C",
  ch "char", x8 xid8, ls pg_lsn, m mood, ar int[], ic text COLLATE "en-x-icu") USING rdmacc;
INSERT INTO types
  SELECT g, g % 2 = 0, g - 40, (g - 40) * 4294967297::int8, g * 50000000::int8,
    (g - 40) / 3.0, CASE g % 20 WHEN 0 THEN 'NaN' WHEN 1 THEN '-Infinity' WHEN 2 THEN 'Infinity'
    ELSE (g - 40) * 1e100 END, CASE g % 20 WHEN 0 THEN 'NaN' WHEN 1 THEN '-Infinity' WHEN 2 THEN
    'Infinity' ELSE (g - 40) * 10.0 ^ (g % 9 - 4) END, date '2000-01-01' + (g - 40) * 1000,
    time '00:00' + g * interval '17 minutes', timestamp '2000-01-01' + (g - 40) * interval '1 year',
    timestamptz '2000-01-01' + (g - 40) * interval '1 hour',
    (time '00:00' + g * interval '7 minutes')::text::timetz, (g - 40) * interval '1 day 3 hours',
    md5(g::text)::uuid, decode(md5(g::text), 'hex') || '\x00'::bytea, repeat(chr(65 + g % 26), g % 5),
    chr(97 + g % 26) || g, 'n' || g, chr(97 + g % 26), chr(33 + g % 90)::"char",
    (g * 3)::text::xid8, ('0/' || to_hex(g * 1000))::pg_lsn,
    (ARRAY['sad', 'glad', 'happy'])[g % 3 + 1]::mood, ARRAY[g % 5, g], chr(65 + g % 40)
  FROM generate_series(1, 80) g;
INSERT INTO types (id) VALUES (100), (101);
DO $$
DECLARE column_name text; direction text; plan text;
BEGIN
  FOR column_name IN SELECT attname FROM pg_attribute WHERE attrelid = 'types'::regclass
      AND attnum > 1 AND NOT attisdropped ORDER BY attnum LOOP
    FOREACH direction IN ARRAY ARRAY['', 'NULLS FIRST', 'DESC', 'DESC NULLS LAST'] LOOP
      EXECUTE format('CREATE INDEX probe ON types (%I %s)', column_name, direction);
      plan := compare(format('SELECT %1$I FROM types ORDER BY %1$I %2$s', column_name, direction));
      IF direction = '' OR plan ~ 'DIFFERENT' THEN RAISE NOTICE '% %', column_name, plan; END IF;
      plan := compare(format('SELECT id FROM types WHERE %1$I = (SELECT %1$I FROM types WHERE id = 33)'
                             ' ORDER BY id', column_name));
      IF plan !~ 'Index (Only )?Scan using probe.*same' THEN RAISE NOTICE '% = %', column_name, plan; END IF;
      plan := compare(format('SELECT id FROM types WHERE %1$I < (SELECT %1$I FROM types WHERE id = 33)'
                             ' ORDER BY id', column_name));
      IF plan !~ 'same' THEN RAISE NOTICE '% < %', column_name, plan; END IF;
      plan := compare(format('SELECT id FROM types WHERE %1$I >= (SELECT %1$I FROM types WHERE id = 33)'
                             ' ORDER BY id', column_name));
      IF plan !~ 'same' THEN RAISE NOTICE '% >= %', column_name, plan; END IF;
      DROP INDEX probe;
    END LOOP;
  END LOOP;
END $$;

-- Texts of another collation than C: equality, and LIKE where the operator class is for it.
CREATE INDEX types_ic ON types (ic);
CREATE INDEX types_ic_pattern ON types (ic text_pattern_ops);
SELECT compare('SELECT ic, id FROM types WHERE ic = ''B'' ORDER BY ic, id');
SELECT compare('SELECT ic FROM types WHERE ic > ''B'' AND ic < ''c'' ORDER BY ic, id');
SELECT compare('SELECT ic FROM types WHERE ic LIKE ''B%'' ORDER BY id');
DROP TABLE types;
DROP TYPE mood;

-- Entries follow the rows, and go back with them.
BEGIN;
UPDATE t SET a = a + 1000 WHERE a = 5;
SELECT count(*) FROM t WHERE a = 5;
SELECT count(*) FROM t WHERE a = 1005;
SAVEPOINT one;
DELETE FROM t WHERE a = 1005;
INSERT INTO t VALUES (2000, 1005, 'new', 0);
SELECT count(*) FROM t WHERE a = 1005;
ROLLBACK TO one;
SELECT count(*) FROM t WHERE a = 1005;
UPDATE t SET id = id + 5000 WHERE a = 1005;
SELECT count(*), min(id) FROM t WHERE a = 1005;
ROLLBACK;
SELECT count(*) FROM t WHERE a = 5;
SELECT count(*) FROM t WHERE a = 1005;
-- A scan does not see what its own statement writes.
UPDATE t SET a = a + 1 WHERE a >= 45;
SELECT a, count(*) FROM t WHERE a >= 44 GROUP BY a ORDER BY a;
DELETE FROM t WHERE a >= 45;
SELECT compare('SELECT a, id FROM t WHERE a > 40 ORDER BY a, id');
COPY t FROM stdin;
3001	3001	copied	\N
3002	3001	copied	2
\.
SELECT * FROM t WHERE a = 3001 ORDER BY id;

-- Cursors go both ways.
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT a FROM t WHERE a IN (1, 3, 40) ORDER BY a;
FETCH 2 FROM c;
FETCH BACKWARD 2 FROM c;
FETCH LAST FROM c;
FETCH FORWARD FROM c;
FETCH PRIOR FROM c;
FETCH PRIOR FROM c;
FETCH FIRST FROM c;
FETCH PRIOR FROM c;
FETCH NEXT FROM c;
FETCH ABSOLUTE 21 FROM c;
FETCH RELATIVE -1 FROM c;
COMMIT;
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM t WHERE a = 1 ORDER BY a FOR UPDATE;
MOVE 3 FROM c;
UPDATE t SET a = -1 WHERE CURRENT OF c;
FETCH 1 FROM c;
SELECT count(*) FROM t WHERE a = -1;
COMMIT;

-- Scans are counted.
SELECT pg_stat_force_next_flush();
SELECT indexrelname, idx_scan > 0 AS scanned, idx_tup_read > 0 AS read, idx_tup_fetch > 0 AS fetched
  FROM pg_stat_user_indexes WHERE relname = 't' ORDER BY 1;

-- Long values: up to a limit.
CREATE TABLE long (id int PRIMARY KEY, v text COLLATE "C") USING rdmacc;
CREATE INDEX long_v ON long (v);
INSERT INTO long SELECT g, repeat('x', g * 90) || g FROM generate_series(1, 20) g;
SELECT compare('SELECT v FROM long ORDER BY v');
SELECT id FROM long WHERE v = repeat('x', 1800) || 20;
INSERT INTO long VALUES (21, repeat('x', 3000));
DROP TABLE long;

-- Without a primary key, and when it comes and goes.
CREATE TABLE bare (id int, a int) USING rdmacc;
INSERT INTO bare SELECT g, g % 10 FROM generate_series(1, 200) g;
CREATE INDEX ON bare (a);
SELECT compare('SELECT count(*) FROM bare WHERE a = 3');
ALTER TABLE bare ADD PRIMARY KEY (id);
SELECT compare('SELECT count(*) FROM bare WHERE a = 3');
BEGIN;
ALTER TABLE bare DROP CONSTRAINT bare_pkey;
UPDATE bare SET a = 3 WHERE a = 4;
SELECT compare('SELECT count(*) FROM bare WHERE a = 3');
ROLLBACK;
ALTER TABLE bare DROP CONSTRAINT bare_pkey;
INSERT INTO bare VALUES (1, 3);
SELECT compare('SELECT count(*) FROM bare WHERE a = 3');
DROP TABLE bare;

-- A partitioned table.
CREATE TABLE parted (id int, a int, PRIMARY KEY (id)) PARTITION BY RANGE (id);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (100) USING rdmacc;
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (100) TO (200) USING heap;
CREATE INDEX parted_a ON parted (a);
INSERT INTO parted SELECT g, g % 10 FROM generate_series(1, 90) g;
INSERT INTO parted SELECT g, g % 10 FROM generate_series(100, 190) g;
SELECT compare('SELECT a, id FROM parted WHERE a = 3 ORDER BY a, id');
CREATE TABLE parted_3 (id int NOT NULL, a int) USING rdmacc;
INSERT INTO parted_3 VALUES (205, 3);
ALTER TABLE parted ATTACH PARTITION parted_3 FOR VALUES FROM (200) TO (300);
SELECT compare('SELECT a, id FROM parted_3 WHERE a = 3 ORDER BY a, id');
DROP TABLE parted;
DROP TABLE t;
DROP FUNCTION compare, plan_of;
