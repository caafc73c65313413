-- Moves everything that customer a has into customer b's checking account.
\set hot random(1, 10)
\set a case when :hot = 1 then random(1, :customers / 1000) else random(1, :customers) end
\set b random(1, :customers - 1)
\set b case when :b >= :a then :b + 1 else :b end
BEGIN;
SELECT name FROM accounts WHERE custid = :a;
SELECT bal AS savings FROM savings WHERE custid = :a \gset
SELECT bal AS checking FROM checking WHERE custid = :a \gset
UPDATE savings SET bal = 0 WHERE custid = :a;
UPDATE checking SET bal = 0 WHERE custid = :a;
UPDATE checking SET bal = bal + (:savings::bigint + :checking::bigint) WHERE custid = :b;
COMMIT;
