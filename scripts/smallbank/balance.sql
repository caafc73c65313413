-- Reads both balances of a customer.
\set hot random(1, 10)
\set a case when :hot = 1 then random(1, :customers / 1000) else random(1, :customers) end
BEGIN;
SELECT name FROM accounts WHERE custid = :a;
SELECT bal FROM savings WHERE custid = :a;
SELECT bal FROM checking WHERE custid = :a;
COMMIT;
