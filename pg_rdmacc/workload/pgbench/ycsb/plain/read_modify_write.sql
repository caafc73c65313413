\set record random(0, :records - 1)
BEGIN;
SELECT field1, field2, field3, field4, field5, field6, field7, field8, field9, field10 FROM usertable WHERE ycsb_key = :record;
UPDATE usertable SET updates = updates + 1,
  field5 = rdmacc.ycsb_value(:record, 5, updates + 1, length(field5)) WHERE ycsb_key = :record;
COMMIT;
