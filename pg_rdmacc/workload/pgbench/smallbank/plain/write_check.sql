-- The first thousandth of the customers get a tenth of the accesses.
\set hot random(1, 10)
\set a case when :hot = 1 then random(1, greatest(:customers / 1000, 1)) else random(1, :customers) end
\set amount random(1, 100)
BEGIN;
SELECT bal AS savings FROM savings WHERE custid = :a \gset
SELECT bal AS checking FROM checking WHERE custid = :a \gset
\set charge case when :savings + :checking < :amount then :amount + 1 else :amount end
UPDATE checking SET bal = bal - :charge, inflow = inflow - :charge WHERE custid = :a;
COMMIT;
