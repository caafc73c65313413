\set record random(0, :records - 1)
\set field random(1, 10)
SELECT rdmacc.ycsb_read_modify_write_sql(:record, :field);
