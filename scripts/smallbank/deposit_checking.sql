-- Puts money into a checking account.
\set hot random(1, 10)
\set a case when :hot = 1 then random(1, :customers / 1000) else random(1, :customers) end
\set amount random(1, 100)
BEGIN;
SELECT name FROM accounts WHERE custid = :a;
UPDATE checking SET bal = bal + :amount WHERE custid = :a;
INSERT INTO ledger VALUES (:amount);
COMMIT;
