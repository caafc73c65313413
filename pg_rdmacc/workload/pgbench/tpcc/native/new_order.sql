\set w random(1, :warehouses)
\set d random(1, 10)
\set c (random(0, 1023) | random(1, :customers)) % :customers + 1
SELECT rdmacc.tpcc_new_order(:w, :d, :c, l.items, l.supplies, l.quantities)
  FROM rdmacc.tpcc_draw_lines(:w, :warehouses, :items) l;
