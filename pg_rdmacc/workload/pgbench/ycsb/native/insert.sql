SELECT rdmacc.ycsb_insert(nextval('usertable_key')::int);
