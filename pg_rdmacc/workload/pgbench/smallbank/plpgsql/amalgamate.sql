-- The first thousandth of the customers get a tenth of the accesses.
\set hot random(1, 10)
\set a case when :hot = 1 then random(1, greatest(:customers / 1000, 1)) else random(1, :customers) end
\set b random(1, :customers - 1)
\set b case when :b >= :a then :b + 1 else :b end
SELECT rdmacc.smallbank_amalgamate_sql(:a, :b);
