-- Tables whose rows the nodes do not have: copies of a database have none.
CREATE TABLE t (id int PRIMARY KEY) USING rdmacc;
CREATE TABLE hidden (id int) USING rdmacc;
CREATE SCHEMA s CREATE TABLE u (k text PRIMARY KEY);
ALTER TABLE s.u SET ACCESS METHOD rdmacc;
CREATE TABLE v (id int PRIMARY KEY) USING rdmacc;
SELECT current_database() AS original \gset
\c postgres
CREATE DATABASE rdmacc_copy TEMPLATE :original;
\c rdmacc_copy
SELECT * FROM t;
DROP TABLE t, hidden;
DROP SCHEMA s CASCADE;
ALTER TABLE v DROP CONSTRAINT v_pkey;
TRUNCATE v;
INSERT INTO v VALUES (1), (1);
SELECT * FROM v;
DROP EXTENSION rdmacc CASCADE;
\c :original
SELECT * FROM t;
DROP DATABASE rdmacc_copy;
DROP TABLE t, hidden, v;
DROP SCHEMA s CASCADE;
