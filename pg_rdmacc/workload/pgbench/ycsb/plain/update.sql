\set record random(0, :records - 1)
UPDATE usertable SET updates = updates + 1,
  field5 = rdmacc.ycsb_value(:record, 5, updates + 1, length(field5)) WHERE ycsb_key = :record;
