-- The first thousandth of the customers get a tenth of the accesses.
\set hot random(1, 10)
\set a case when :hot = 1 then random(1, greatest(:customers / 1000, 1)) else random(1, :customers) end
\set b random(1, :customers - 1)
\set b case when :b >= :a then :b + 1 else :b end
\set amount random(1, 100)
BEGIN;
SELECT bal >= :amount AS covered FROM checking WHERE custid = :a \gset
\if :covered
UPDATE checking SET bal = bal - :amount WHERE custid = :a;
UPDATE checking SET bal = bal + :amount WHERE custid = :b;
\endif
COMMIT;
