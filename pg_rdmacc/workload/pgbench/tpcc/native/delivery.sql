\set w random(1, :warehouses)
\set carrier random(1, 10)
SELECT rdmacc.tpcc_delivery(:w, :carrier);
