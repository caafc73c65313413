\set w random(1, :warehouses)
\set d random(1, 10)
\set c (random(0, 1023) | random(1, :customers)) % :customers + 1
-- Six of ten customers are found by their last name.
\set by_name random(1, 100) <= 60
\set name (random(0, 255) | random(0, least(:customers, 1000) - 1)) % least(:customers, 1000)
SELECT rdmacc.tpcc_order_status(:w, :d, CASE WHEN :by_name THEN NULL ELSE :c::int END,
  rdmacc.tpcc_last_name(:name));
