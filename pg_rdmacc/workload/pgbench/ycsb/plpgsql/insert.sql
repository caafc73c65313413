SELECT rdmacc.ycsb_insert_sql(nextval('usertable_key')::int);
