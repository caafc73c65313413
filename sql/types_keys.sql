-- Keys of many types: equal values are one key, different ones are not, and lookups find them.
CREATE FUNCTION try_key(type text, VARIADIC literals text[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  literal text;
  found int;
  refused int := 0;
BEGIN
  EXECUTE format('CREATE TABLE keyed (k %s PRIMARY KEY) USING rdmacc', type);
  FOREACH literal IN ARRAY literals LOOP
    BEGIN
      EXECUTE format('INSERT INTO keyed VALUES (%L)', literal);
    EXCEPTION WHEN unique_violation THEN
      refused := refused + 1;
    END;
    EXECUTE format('SELECT count(*) FROM keyed WHERE k = %L::%s', literal, type) INTO found;
    IF found <> 1 THEN RAISE '% found % times', literal, found; END IF;
  END LOOP;
  EXECUTE 'SELECT count(*) FROM keyed' INTO found;
  DROP TABLE keyed;
  RETURN format('%s kept, %s refused', found, refused);
END $$;

SELECT try_key('bool', 'true', 'false', 't');
SELECT try_key('smallint', '1', '-1', '0', '32767', '-32768', '01');
SELECT try_key('integer', '1', '-1', '0', '2147483647', '-2147483648', '1');
SELECT try_key('bigint', '1', '-1', '9223372036854775807', '-9223372036854775808');
SELECT try_key('oid', '1', '4294967295', '1');
SELECT try_key('regclass', 'pg_class', 'pg_type', 'pg_catalog.pg_class');
SELECT try_key('real', '1', '1.0', '0', '-0', 'NaN', 'NaN', 'Infinity', '-Infinity', '1e-30');
SELECT try_key('double precision', '1', '1.0', '0', '-0', 'NaN', 'Infinity', '0.1', '1e-1');
SELECT try_key('numeric', '1', '1.0', '1.00', '0', '0.0', '-1', '-1.0', '10', '0.1', '0.10', '0.01',
               '100', '1e10', '10000000000', 'NaN', 'NaN', 'Infinity', '-Infinity', '123.456',
               '-123.456', '1e-20');
SELECT try_key('numeric(10,2)', '1', '1.00', '1.001', '1.01');
SELECT try_key('date', '2026-01-01', '2026-01-02', 'January 1, 2026', 'infinity', '-infinity');
SELECT try_key('time', '12:00', '12:00:00.000', '12:00:00.001');
SELECT try_key('timetz', '12:00+00', '13:00+01', '12:00:00+00:00');
SELECT try_key('timestamp', '2026-01-01 12:00', '2026-01-01 12:00:00.0', '2026-01-01 12:00:00.000001');
SELECT try_key('timestamptz', '2026-01-01 12:00+00', '2026-01-01 13:00+01', 'infinity');
SELECT try_key('interval', '1 month', '30 days', '720 hours', '1 day', '24:00', '-1 day', '0', '1 us');
SELECT try_key('uuid', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11',
               'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12');
SELECT try_key('bytea', '\x00', '\x0000', '\x', '\x0001', '\x00ff', '\x01', '\x00');
SELECT try_key('text', 'a', 'A', 'a ', '', ' ', 'ä', 'a');
SELECT try_key('varchar(5)', 'a', 'a ', 'abcde', 'a');
SELECT try_key('char(5)', 'a', 'a ', 'a    ', 'b', '');
SELECT try_key('name', 'a', 'A', 'a');
SELECT try_key('"char"', 'a', 'b', 'a');
SELECT try_key('inet', '10.0.0.1', '10.0.0.1/32', '10.0.0.1/24', '::1');
SELECT try_key('macaddr', '08:00:2b:01:02:03', '08-00-2b-01-02-03', '08:00:2b:01:02:04');
SELECT try_key('jsonb', '1', '1.0', '"a"', '{"a": 1, "b": 2}', '{"b": 2, "a": 1}', '[]');
-- what PostgreSQL's hash takes for the same
SELECT try_key('jsonb', '[]', '{}', '[1]', '[[1]]', '{"a": {"b": 1}, "c": 2}', '{"a": {"b": 1, "c": 2}}', '["a"]', 'null', '[null]', 'true',
               '{"a": 1, "b": 2}', '{"b": 2.0, "a": 1.00}', '[ 1 ]');
-- PostgreSQL's hash of 2^32 is that of 1
SELECT try_key('xid8', '1', '4294967296', '18446744073709551615', '01');
SELECT try_key('pg_lsn', '0/1', '1/0', 'FFFFFFFF/FFFFFFFF', '0/01');
SELECT try_key('bigint[]', '{1}', '{4294967296}', '{1,NULL}', '{4294967296,NULL}', '{{1}}',
               '[2:2]={1}', '{01}');
SELECT try_key('timestamp[]', '{2000-01-01 00:00:00.000001}', '{2000-01-01 01:11:34.967296}');
SELECT try_key('int8range', '[1,4294967297)', '[4294967296,4294967297)', '[1,4294967296]', '[1,)',
               '(,1)', 'empty', 'empty');
SELECT try_key('int8multirange', '{[1,2)}', '{[4294967296,8589934592)}', '{[1,2),[4,5)}', '{[1,1],[4,4]}', '{}', '{(,)}');
SELECT try_key('tsmultirange', '{[2000-01-01 00:00:00.000001,)}', '{[2000-01-01 01:11:34.967296,)}');
CREATE TYPE bigints AS RANGE (subtype = bigint, multirange_type_name = many_bigints);
SELECT try_key('bigints', '[1,4294967300)', '[4294967296,21474836480)', '[1,2)', '[1,2]', 'empty');
SELECT try_key('many_bigints', '{[1,4294967300)}', '{[4294967296,21474836480)}');
SELECT try_key('numeric[]', '{1.0}', '{1.00}', '{1.01}');
SELECT try_key('int[]', '{}', '{1}', '{1,2}', '{2,1}', '{NULL}', '{1,2}');
SELECT try_key('int4range', '[1,3)', '[1,2]', 'empty', '[,]', '(,)');
SELECT try_key('bit varying', '1', '10', '1');
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
SELECT try_key('mood', 'sad', 'happy', 'ok', 'sad');
CREATE DOMAIN positive AS int CHECK (value > 0);
SELECT try_key('positive', '1', '2', '01');
CREATE DOMAIN label AS varchar(10);
SELECT try_key('label', 'x', 'X', 'x');
CREATE TYPE point2 AS (x int, y int);
SELECT try_key('point2', '(1,2)', '(2,1)', '(1,2)');

CREATE TYPE pair8 AS (x bigint, y text);
SELECT try_key('pair8', '(1,a)', '(4294967296,a)', '(1,)', '(1,"")', '(01,a)');
-- Ranges that compare in a way of their own are hashed as PostgreSQL does: what has one hash is found out, and refused.
CREATE FUNCTION rising(bigint, bigint) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT btint8cmp($1, $2)';
CREATE OPERATOR CLASS rising FOR TYPE bigint USING btree AS
  OPERATOR 1 < , OPERATOR 2 <= , OPERATOR 3 = , OPERATOR 4 >= , OPERATOR 5 > , FUNCTION 1 rising(bigint, bigint);
CREATE TYPE rising_range AS RANGE (subtype = bigint, subtype_opclass = rising);
CREATE TABLE hashed (id int PRIMARY KEY, k rising_range UNIQUE) USING rdmacc;
INSERT INTO hashed VALUES (1, '[1,)');
INSERT INTO hashed VALUES (2, '[4294967296,)');
INSERT INTO hashed VALUES (2, '[1,)');
CREATE TABLE hashed_keys (k rising_range PRIMARY KEY) USING rdmacc;
INSERT INTO hashed_keys VALUES ('[1,)');
INSERT INTO hashed_keys VALUES ('[4294967296,)') ON CONFLICT DO NOTHING;
INSERT INTO hashed_keys VALUES ('[1,)') ON CONFLICT DO NOTHING;
SELECT * FROM hashed_keys;
DROP TABLE hashed, hashed_keys;

-- columns of a key do not run into each other
CREATE TABLE pairs (a text, b text, PRIMARY KEY (a, b)) USING rdmacc;
INSERT INTO pairs VALUES ('a', 'bc'), ('ab', 'c'), ('', 'abc'), ('abc', '');
SELECT * FROM pairs WHERE a = 'ab' AND b = 'c';
SELECT count(*) FROM pairs;
CREATE TABLE bytes (a bytea, b bytea, PRIMARY KEY (a, b)) USING rdmacc;
INSERT INTO bytes VALUES ('\x00', '\x'), ('\x', '\x00'), ('\x00ff', '\x'), ('\x00', '\xff');
SELECT * FROM bytes WHERE a = '\x00' AND b = '\xff';
INSERT INTO bytes VALUES ('\x', '\x00');

-- comparisons across types
CREATE TABLE sizes (i2 smallint, i4 int, f4 real, PRIMARY KEY (i2, i4, f4)) USING rdmacc;
INSERT INTO sizes VALUES (1, 2, 0.5), (1, 2, 0.1);
EXPLAIN (COSTS OFF) SELECT * FROM sizes WHERE i2 = 1::bigint AND i4 = 2::smallint AND f4 = 0.5::float8;
SELECT * FROM sizes WHERE i2 = 1::bigint AND i4 = 2::smallint AND f4 = 0.5::float8;
SELECT * FROM sizes WHERE i2 = 1::bigint AND i4 = 2::smallint AND f4 = 0.1::float8;
CREATE TABLE names (n name PRIMARY KEY, t text) USING rdmacc;
INSERT INTO names VALUES ('x', 'y');
EXPLAIN (COSTS OFF) SELECT * FROM names WHERE n = 'x'::text;
SELECT * FROM names WHERE n = 'x'::text;
CREATE TABLE days (d date PRIMARY KEY) USING rdmacc;
INSERT INTO days VALUES ('2026-01-01');
SELECT * FROM days WHERE d = '2026-01-01 00:00'::timestamp;
CREATE TABLE padded (c char(5) PRIMARY KEY) USING rdmacc;
INSERT INTO padded VALUES ('ab');
SELECT c || '|' FROM padded WHERE c = 'ab   '::char(8);
SELECT c || '|' FROM padded WHERE c = 'ab'::text;
SELECT count(*) FROM padded WHERE c = 'ab  '::text;
DROP TABLE pairs, bytes, sizes, names, days, padded;
DROP FUNCTION try_key;
DROP TYPE mood, point2;
DROP DOMAIN positive, label;

-- rows as keys, compared with rows that have other columns
CREATE TYPE pair AS (a int, b int);
CREATE TABLE pairs (k pair PRIMARY KEY, u pair UNIQUE) USING rdmacc;
INSERT INTO pairs SELECT row(i, i)::pair, row(i, i + 1)::pair FROM generate_series(1, 50) i;
SELECT * FROM pairs WHERE k = row(3, 3);
SELECT * FROM pairs WHERE u = row(3, 4);
SELECT * FROM pairs WHERE k IN (row(3, 3), row(4, 4)::pair) ORDER BY k;
SELECT * FROM pairs WHERE k = row(3, 'three');
SELECT * FROM pairs WHERE k = row(3);
SELECT * FROM pairs WHERE u = row(3, 'four');
DROP TABLE pairs;
DROP TYPE pair;

-- A key of a type that its operator class does not name changes that type.
CREATE TYPE letter AS ENUM ('x', 'y');
CREATE TYPE pair AS (a int, b int);
CREATE TABLE retyped (a letter, b int[], c int4range, d pair, e int, PRIMARY KEY (a, b, c, d, e)) USING rdmacc;
INSERT INTO retyped VALUES ('x', '{1,2}', '[1,3)', (1,2), 1), ('y', '{}', 'empty', (3,4), 2);
ALTER TABLE retyped ALTER a TYPE text;
ALTER TABLE retyped ALTER b TYPE bigint[];
ALTER TABLE retyped ALTER c TYPE text;
SELECT * FROM retyped WHERE a = 'x' AND b = '{1,2}' AND c = '[1,3)' AND d = row(1,2) AND e = 1;
BEGIN;
ALTER TABLE retyped ALTER d TYPE text, ALTER a TYPE letter USING a::letter;
INSERT INTO retyped VALUES ('x', '{1,2}', '[1,3)', '(1,2)', 1);
ROLLBACK;
ALTER TABLE retyped ALTER d TYPE text, ALTER a TYPE letter USING a::letter;
INSERT INTO retyped VALUES ('x', '{1,2}', '[1,3)', '(1,2)', 3);
SELECT * FROM retyped ORDER BY e;
SELECT * FROM rdmacc.verify('retyped');
DROP TABLE retyped;
CREATE TABLE retyped (a letter PRIMARY KEY, b int) USING rdmacc;
INSERT INTO retyped VALUES ('x', 1);
ALTER TABLE retyped ALTER a TYPE text, DROP CONSTRAINT retyped_pkey;
INSERT INTO retyped VALUES ('x', 2);
SELECT * FROM retyped ORDER BY b;
DROP TABLE retyped;
DROP TYPE letter, pair;

-- A type that is part of a key stays as it is: what keys have of its values is computed from all attributes.
CREATE TYPE address AS (street text, number int);
CREATE DOMAIN home AS address;
CREATE TABLE inner_rows (i int, t text);
CREATE TYPE outermost AS (a int, rows inner_rows[]);
CREATE TABLE located (k home PRIMARY KEY, v outermost, w address) USING rdmacc;
CREATE INDEX ON located (v);
INSERT INTO located VALUES (('a', 1), (1, ARRAY[(1, 'x')::inner_rows]), ('b', 2));
ALTER TYPE address ADD ATTRIBUTE zip text;
ALTER TYPE address DROP ATTRIBUTE number;
ALTER TYPE outermost ADD ATTRIBUTE b bit(3);
ALTER TABLE inner_rows ADD COLUMN more int;
ALTER TABLE inner_rows DROP COLUMN t;
ALTER TYPE address RENAME ATTRIBUTE number TO no;
DROP INDEX located_v_idx;
CREATE FUNCTION made(i int) RETURNS outermost IMMUTABLE LANGUAGE sql AS 'SELECT ROW(i, NULL)::outermost';
CREATE INDEX located_made ON located (made((w).no));
ALTER TYPE outermost DROP ATTRIBUTE a;
DROP INDEX located_made;
CREATE INDEX located_made ON located ((1)) INCLUDE (v);
ALTER TABLE inner_rows ADD COLUMN more int;
ALTER TYPE outermost DROP ATTRIBUTE a;
ALTER TABLE located DROP CONSTRAINT located_pkey;
ALTER TYPE address ADD ATTRIBUTE zip text;
ALTER TABLE located ADD PRIMARY KEY (k);
SELECT * FROM located WHERE k = ('a', 1, NULL)::address;
INSERT INTO located VALUES (('a', 1, NULL));
ALTER TABLE located ADD COLUMN x int, DROP COLUMN w;
DROP TABLE located;
ALTER TYPE address DROP ATTRIBUTE zip;
