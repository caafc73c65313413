-- The first thousandth of the customers get a tenth of the accesses.
\set hot random(1, 10)
\set a case when :hot = 1 then random(1, greatest(:customers / 1000, 1)) else random(1, :customers) end
SELECT rdmacc.smallbank_balance_sql(:a);
