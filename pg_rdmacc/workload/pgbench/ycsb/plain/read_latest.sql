-- The newest records; the sequence counts those that are being inserted, too.
\set back random_exponential(0, 99, 5)
SELECT field1, field2, field3, field4, field5, field6, field7, field8, field9, field10 FROM usertable
  WHERE ycsb_key = (SELECT (last_value - :back)::int FROM usertable_key);
