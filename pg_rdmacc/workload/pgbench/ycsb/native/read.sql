\set record random(0, :records - 1)
SELECT rdmacc.ycsb_read(:record);
