-- Puts money into a savings account, or takes it out if it is covered.
\set hot random(1, 10)
\set a case when :hot = 1 then random(1, :customers / 1000) else random(1, :customers) end
\set amount random(-100, 100)
BEGIN;
SELECT name FROM accounts WHERE custid = :a;
SELECT bal + :amount >= 0 AS covered FROM savings WHERE custid = :a \gset
\if :covered
UPDATE savings SET bal = bal + :amount WHERE custid = :a;
INSERT INTO ledger VALUES (:amount);
\endif
COMMIT;
