SELECT nextval('usertable_key')::int AS record \gset
INSERT INTO usertable VALUES (:record,
  rdmacc.ycsb_value(:record, 1, 0, 100),
  rdmacc.ycsb_value(:record, 2, 0, 100),
  rdmacc.ycsb_value(:record, 3, 0, 100),
  rdmacc.ycsb_value(:record, 4, 0, 100),
  rdmacc.ycsb_value(:record, 5, 0, 100),
  rdmacc.ycsb_value(:record, 6, 0, 100),
  rdmacc.ycsb_value(:record, 7, 0, 100),
  rdmacc.ycsb_value(:record, 8, 0, 100),
  rdmacc.ycsb_value(:record, 9, 0, 100),
  rdmacc.ycsb_value(:record, 10, 0, 100),
  0);
