-- The newest records; the sequence counts those that are being inserted, too.
\set back random_exponential(0, 99, 5)
SELECT rdmacc.ycsb_read((last_value - :back)::int) FROM usertable_key;
