\set record random(0, :records - 1)
\set count random(1, 100)
SELECT rdmacc.ycsb_scan(:record, :count);
