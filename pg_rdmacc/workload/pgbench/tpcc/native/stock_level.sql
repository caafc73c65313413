\set w random(1, :warehouses)
\set d random(1, 10)
\set threshold random(10, 20)
SELECT rdmacc.tpcc_stock_level(:w, :d, :threshold);
