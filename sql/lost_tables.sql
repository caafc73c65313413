-- Tables whose rows the nodes do not have. Copies of a database would have none: they are refused.
CREATE TABLE t (id int PRIMARY KEY) USING rdmacc;
CREATE TABLE hidden (id int) USING rdmacc;
CREATE SCHEMA s CREATE TABLE u (k text PRIMARY KEY);
ALTER TABLE s.u SET ACCESS METHOD rdmacc;
CREATE TABLE v (id int PRIMARY KEY) USING rdmacc;
SELECT current_database() AS original \gset
\c postgres
CREATE DATABASE rdmacc_copy TEMPLATE :original;
CREATE DATABASE rdmacc_copy STRATEGY file_copy TEMPLATE 'template0';
DROP DATABASE rdmacc_copy;
\c :original
-- As such a copy would be: other files than those that the nodes know.
UPDATE pg_class SET relfilenode = relfilenode::bigint + 1000000 WHERE relname IN ('t', 'hidden', 'u', 'v');
\c
SELECT * FROM t;
DROP TABLE t, hidden;
DROP SCHEMA s CASCADE;
ALTER TABLE v DROP CONSTRAINT v_pkey;
TRUNCATE v;
INSERT INTO v VALUES (1), (1);
SELECT * FROM v;
DROP TABLE v;
