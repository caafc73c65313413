-- COPY in and out.
CREATE TABLE item (id int PRIMARY KEY, name text, price numeric) USING rdmacc;
COPY item FROM stdin;
1	bolt	0.10
2	nut	0.05
3	\N	\N
\.
COPY (SELECT * FROM item ORDER BY id) TO stdout;
COPY item (id, name) FROM stdin WITH (FORMAT csv, HEADER);
id,name
4,"a, b"
5,c
\.
COPY (SELECT * FROM item ORDER BY id) TO stdout WITH (FORMAT csv);
-- a duplicate ends the statement and takes all of it back
COPY item FROM stdin;
6	six	6
1	one	1
\.
SELECT count(*) FROM item;
COPY item FROM stdin;
6	six	not a number
\.
SELECT count(*) FROM item;
-- many rows
CREATE TABLE many (id int PRIMARY KEY, v text) USING rdmacc;
INSERT INTO many SELECT i, 'value ' || i FROM generate_series(1, 3000) i;
SELECT count(*), sum(id), min(v), max(v) FROM many;
COPY (SELECT v FROM many WHERE id = 2500) TO stdout;
-- within a transaction that made the table
BEGIN;
CREATE TABLE loaded (id int, v text) USING rdmacc;
COPY loaded FROM stdin;
1	x
2	y
\.
TRUNCATE loaded;
COPY loaded FROM stdin;
3	z
\.
SELECT * FROM loaded;
COMMIT;
COPY loaded TO stdout;
-- into partitions, some of whose buffers are empty when all are flushed
CREATE TABLE parted (id int PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (1000) USING rdmacc;
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (1000) TO (9000) USING rdmacc;
COPY parted FROM PROGRAM 'seq 1 2500';
SELECT tableoid::regclass, count(*), min(id), max(id) FROM parted GROUP BY 1 ORDER BY 1;
DROP TABLE item, many, loaded, parted;
