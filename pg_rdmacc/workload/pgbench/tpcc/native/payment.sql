\set w random(1, :warehouses)
\set d random(1, 10)
\set c (random(0, 1023) | random(1, :customers)) % :customers + 1
-- Six of ten customers are found by their last name.
\set by_name random(1, 100) <= 60
\set name (random(0, 255) | random(0, least(:customers, 1000) - 1)) % least(:customers, 1000)
-- Fifteen of a hundred pay elsewhere.
\set cw case when random(1, 100) <= 85 then :w else random(1, :warehouses) end
\set cd case when :cw = :w then :d else random(1, 10) end
\set amount random(100, 500000)
SELECT rdmacc.tpcc_payment(:w, :d, :cw, :cd, CASE WHEN :by_name THEN NULL ELSE :c::int END,
  rdmacc.tpcc_last_name(:name), :amount / 100.0);
