-- Takes money from a checking account; one more if both balances do not cover it.
\set hot random(1, 10)
\set a case when :hot = 1 then random(1, :customers / 1000) else random(1, :customers) end
\set amount random(1, 100)
BEGIN;
SELECT name FROM accounts WHERE custid = :a;
SELECT bal AS savings FROM savings WHERE custid = :a \gset
SELECT bal AS checking FROM checking WHERE custid = :a \gset
\set charge case when :savings + :checking < :amount then :amount + 1 else :amount end
UPDATE checking SET bal = bal - :charge WHERE custid = :a;
INSERT INTO ledger VALUES (-:charge::bigint);
COMMIT;
