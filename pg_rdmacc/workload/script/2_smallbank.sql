
-- ---- SmallBank: accounts with a savings and a checking balance. What comes in from outside, or
-- goes out, is added up beside the balance that it changes, so that what the check compares needs
-- no row of its own.
CREATE PROCEDURE @extschema@.smallbank_create(
  customers int DEFAULT 100000, access_method name DEFAULT 'rdmacc')
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM @extschema@.check_at_least('customers', customers, 2);
  CALL @extschema@.load_table('accounts', access_method, format(
    'SELECT i::bigint AS custid, (''customer '' || i)::varchar(64) AS name
       FROM generate_series(1, %s) i', customers), 'custid');
  CALL @extschema@.load_table('savings', access_method, format(
    'SELECT i::bigint AS custid, 1000::numeric AS bal, 1000::numeric AS inflow
       FROM generate_series(1, %s) i', customers), 'custid');
  CALL @extschema@.load_table('checking', access_method, format(
    'SELECT i::bigint AS custid, 1000::numeric AS bal, 1000::numeric AS inflow
       FROM generate_series(1, %s) i', customers), 'custid');
END $$;
COMMENT ON PROCEDURE @extschema@.smallbank_create(int, name) IS
  'makes SmallBank''s tables: accounts, savings, checking';

CREATE FUNCTION @extschema@.smallbank_check(OUT condition text, OUT detail text)
RETURNS SETOF record LANGUAGE plpgsql AS $$
BEGIN
  RETURN QUERY
    SELECT 'total', format('balances add up to %s, what came in to %s', sum(bal), sum(inflow))
    FROM (SELECT bal, inflow FROM savings UNION ALL SELECT bal, inflow FROM checking) both_kinds
    HAVING sum(bal) IS DISTINCT FROM sum(inflow);
  RETURN QUERY
    SELECT 'accounts', format('customer %s lacks an account', coalesce(a.custid, s.custid, c.custid))
    FROM accounts a FULL JOIN savings s USING (custid) FULL JOIN checking c USING (custid)
    WHERE a.custid IS NULL OR s.custid IS NULL OR c.custid IS NULL;
  RETURN QUERY
    SELECT 'savings', format('customer %s has %s', custid, bal) FROM savings WHERE bal < 0;
END $$;
COMMENT ON FUNCTION @extschema@.smallbank_check() IS
  'what is wrong with SmallBank''s balances; no row: nothing';

CREATE FUNCTION @extschema@.smallbank_balance_sql(customer bigint)
RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE
  savings_bal numeric;
  checking_bal numeric;
BEGIN
  SELECT bal INTO STRICT savings_bal FROM savings WHERE custid = customer;
  SELECT bal INTO STRICT checking_bal FROM checking WHERE custid = customer;
  RETURN savings_bal + checking_bal;
END $$;
COMMENT ON FUNCTION @extschema@.smallbank_balance_sql(bigint) IS
  'both balances of a customer; plain SQL';

CREATE FUNCTION @extschema@.smallbank_deposit_checking_sql(customer bigint, amount numeric)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE checking SET bal = bal + amount, inflow = inflow + amount WHERE custid = customer;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'there is no account %', customer USING ERRCODE = 'no_data_found';
  END IF;
END $$;
COMMENT ON FUNCTION @extschema@.smallbank_deposit_checking_sql(bigint, numeric) IS
  'puts money into a checking account; plain SQL';

CREATE FUNCTION @extschema@.smallbank_send_payment_sql(payer bigint, payee bigint, amount numeric)
RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
  covered bool;
BEGIN
  IF payer = payee THEN
    RAISE EXCEPTION 'the two customers are one' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  SELECT bal >= amount INTO STRICT covered FROM checking WHERE custid = payer;
  IF NOT covered THEN RETURN false; END IF;
  UPDATE checking SET bal = bal - amount WHERE custid = payer;
  UPDATE checking SET bal = bal + amount WHERE custid = payee;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'there is no account %', payee USING ERRCODE = 'no_data_found';
  END IF;
  RETURN true;
END $$;
COMMENT ON FUNCTION @extschema@.smallbank_send_payment_sql(bigint, bigint, numeric) IS
  'pays from one checking account to another if it is covered; plain SQL';

CREATE FUNCTION @extschema@.smallbank_transact_savings_sql(customer bigint, amount numeric)
RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
  covered bool;
BEGIN
  SELECT bal + amount >= 0 INTO STRICT covered FROM savings WHERE custid = customer;
  IF NOT covered THEN RETURN false; END IF;
  UPDATE savings SET bal = bal + amount, inflow = inflow + amount WHERE custid = customer;
  RETURN true;
END $$;
COMMENT ON FUNCTION @extschema@.smallbank_transact_savings_sql(bigint, numeric) IS
  'puts money into a savings account, or takes it out if it is covered; plain SQL';

CREATE FUNCTION @extschema@.smallbank_write_check_sql(customer bigint, amount numeric)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  charge numeric := amount;
  savings_bal numeric;
  checking_bal numeric;
BEGIN
  SELECT bal INTO STRICT savings_bal FROM savings WHERE custid = customer;
  SELECT bal INTO STRICT checking_bal FROM checking WHERE custid = customer;
  IF savings_bal + checking_bal < amount THEN charge := amount + 1; END IF;
  UPDATE checking SET bal = bal - charge, inflow = inflow - charge WHERE custid = customer;
END $$;
COMMENT ON FUNCTION @extschema@.smallbank_write_check_sql(bigint, numeric) IS
  'takes money from a checking account, one more if both balances do not cover it; plain SQL';

CREATE FUNCTION @extschema@.smallbank_amalgamate_sql(source bigint, target bigint)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  savings_row record;
  checking_row record;
  moved numeric;
BEGIN
  IF source = target THEN
    RAISE EXCEPTION 'the two customers are one' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  SELECT bal INTO STRICT savings_row FROM savings WHERE custid = source;
  SELECT bal INTO STRICT checking_row FROM checking WHERE custid = source;
  moved := savings_row.bal + checking_row.bal;
  UPDATE savings SET bal = 0 WHERE custid = source;
  UPDATE checking SET bal = 0 WHERE custid = source;
  UPDATE checking SET bal = bal + moved WHERE custid = target;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'there is no account %', target USING ERRCODE = 'no_data_found';
  END IF;
END $$;
COMMENT ON FUNCTION @extschema@.smallbank_amalgamate_sql(bigint, bigint) IS
  'moves all of one customer''s money into another''s checking account; plain SQL';

-- The same, one call of the engine's each: for rdmacc tables alone.
CREATE FUNCTION @extschema@.smallbank_balance(customer bigint) RETURNS numeric
AS 'MODULE_PATHNAME', 'rdmacc_smallbank_balance' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.smallbank_balance(bigint) IS
  'both balances of a customer; rdmacc tables alone';

CREATE FUNCTION @extschema@.smallbank_deposit_checking(customer bigint, amount numeric) RETURNS void
AS 'MODULE_PATHNAME', 'rdmacc_smallbank_deposit_checking'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.smallbank_deposit_checking(bigint, numeric) IS
  'puts money into a checking account; rdmacc tables alone';

CREATE FUNCTION @extschema@.smallbank_send_payment(payer bigint, payee bigint, amount numeric)
RETURNS bool
AS 'MODULE_PATHNAME', 'rdmacc_smallbank_send_payment' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.smallbank_send_payment(bigint, bigint, numeric) IS
  'pays from one checking account to another if it is covered; rdmacc tables alone';

CREATE FUNCTION @extschema@.smallbank_transact_savings(customer bigint, amount numeric) RETURNS bool
AS 'MODULE_PATHNAME', 'rdmacc_smallbank_transact_savings'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.smallbank_transact_savings(bigint, numeric) IS
  'puts money into a savings account, or takes it out if it is covered; rdmacc tables alone';

CREATE FUNCTION @extschema@.smallbank_write_check(customer bigint, amount numeric) RETURNS void
AS 'MODULE_PATHNAME', 'rdmacc_smallbank_write_check' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.smallbank_write_check(bigint, numeric) IS
  'takes money from a checking account, one more if both balances do not cover it; rdmacc tables alone';

CREATE FUNCTION @extschema@.smallbank_amalgamate(source bigint, target bigint) RETURNS void
AS 'MODULE_PATHNAME', 'rdmacc_smallbank_amalgamate' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.smallbank_amalgamate(bigint, bigint) IS
  'moves all of one customer''s money into another''s checking account; rdmacc tables alone';
