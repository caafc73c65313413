-- The first thousandth of the customers get a tenth of the accesses.
\set hot random(1, 10)
\set a case when :hot = 1 then random(1, greatest(:customers / 1000, 1)) else random(1, :customers) end
\set amount random(-100, 100)
BEGIN;
SELECT bal + :amount >= 0 AS covered FROM savings WHERE custid = :a \gset
\if :covered
UPDATE savings SET bal = bal + :amount, inflow = inflow + :amount WHERE custid = :a;
\endif
COMMIT;
