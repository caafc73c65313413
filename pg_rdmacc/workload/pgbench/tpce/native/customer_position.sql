\set c random(1, :customers)
-- Half of the customers are known by their tax id, and half want an account's last trades, too.
\set by_tax_id random(0, 1)
\set account random(1, 10) * random(0, 1)
SELECT * FROM rdmacc.tpce_customer_position(
  CASE WHEN :by_tax_id = 1 THEN NULL ELSE :c::bigint END, rdmacc.tpce_tax_id(:c), :account);
