\set record random(0, :records - 1)
\set field random(1, 10)
SELECT rdmacc.ycsb_update_sql(:record, :field);
