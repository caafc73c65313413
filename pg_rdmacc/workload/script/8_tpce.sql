
-- ---- TPC-E: customer-position, which reads, and the market-feeds that change prices meanwhile. Tables
-- have the specification's columns. A customer's tier, accounts and tax id follow from the number.
CREATE FUNCTION @extschema@.tpce_tier(customer bigint) RETURNS int
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT CASE WHEN customer % 10 < 2 THEN 1 WHEN customer % 10 < 8 THEN 2 ELSE 3 END $$;
COMMENT ON FUNCTION @extschema@.tpce_tier(bigint) IS 'the tier of a customer of TPC-E, 1 to 3';

CREATE FUNCTION @extschema@.tpce_accounts(customer bigint) RETURNS int
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT (CASE @extschema@.tpce_tier(customer) WHEN 1 THEN 1 + customer / 10 % 4
          WHEN 2 THEN 2 + customer / 10 % 7 ELSE 5 + customer / 10 % 6 END)::int
$$;
COMMENT ON FUNCTION @extschema@.tpce_accounts(bigint) IS
  'how many accounts a customer of TPC-E has, 1 to 10';

CREATE FUNCTION @extschema@.tpce_tax_id(customer bigint) RETURNS varchar(20)
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT lpad((customer * 2654435761 % 4294967296)::text, 10, '0')::varchar(20) $$;
COMMENT ON FUNCTION @extschema@.tpce_tax_id(bigint) IS 'the tax id of a customer of TPC-E';

CREATE FUNCTION @extschema@.tpce_symbol(security bigint) RETURNS varchar(15)
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 
$$ SELECT ('S' || lpad(security::text, greatest(7, length(security::text)), '0'))::varchar(15) $$;
COMMENT ON FUNCTION @extschema@.tpce_symbol(bigint) IS 'the symbol of a security of TPC-E';

CREATE FUNCTION @extschema@.tpce_securities(customers bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT greatest(38, customers * 685 / 1000) $$;
COMMENT ON FUNCTION @extschema@.tpce_securities(bigint) IS
  'how many securities so many customers of TPC-E have';

CREATE PROCEDURE @extschema@.tpce_create(
  customers int DEFAULT 5000, access_method name DEFAULT 'rdmacc', trades int DEFAULT 10)
LANGUAGE plpgsql AS $$
DECLARE
  securities bigint := @extschema@.tpce_securities(customers);
  phones text;
BEGIN
  PERFORM @extschema@.check_at_least('customers', customers, 1);
  PERFORM @extschema@.check_at_least('trades', trades, 0);
  SELECT string_agg(format('''1''::varchar(3) AS c_ctry_%1$s, ''212''::varchar(3) AS c_area_%1$s,
    @extschema@.draw_text(7)::varchar(10) AS c_local_%1$s, %1$s::varchar(5) AS c_ext_%1$s', i), ', ' ORDER BY i)
    INTO phones FROM generate_series(1, 3) i;
  CALL @extschema@.load_table('customer', access_method, format(
    'SELECT c AS c_id, @extschema@.tpce_tax_id(c) AS c_tax_id, ''ACTV''::varchar(4) AS c_st_id,
       @extschema@.draw_text(12)::varchar(25) AS c_l_name, @extschema@.draw_text(8)::varchar(20) AS c_f_name,
       ''M''::char(1) AS c_m_name, (CASE WHEN random() < 0.5 THEN ''F'' ELSE ''M'' END)::char(1) AS c_gndr,
       @extschema@.tpce_tier(c)::smallint AS c_tier, (DATE ''1950-01-01'' + floor(random() * 18000)::int) AS c_dob,
       c AS c_ad_id, %s, (c || ''@one.example'')::varchar(50) AS c_email_1,
       (c || ''@two.example'')::varchar(50) AS c_email_2
     FROM generate_series(1, %s::bigint) c', phones, customers), 'c_id');
  CREATE UNIQUE INDEX customer_c_tax_id ON customer (c_tax_id);
  -- As TPC-E numbers them: up to ten of a customer in a row.
  CALL @extschema@.load_table('customer_account', access_method, format(
    'SELECT (c - 1) * 10 + a AS ca_id, c %% 100 + 1 AS ca_b_id, c AS ca_c_id,
       @extschema@.draw_text(20)::varchar(50) AS ca_name, (a %% 3)::smallint AS ca_tax_st,
       (random() * 10000)::numeric(12, 2) AS ca_bal
     FROM generate_series(1, %s::bigint) c, LATERAL generate_series(1, @extschema@.tpce_accounts(c)) a',
    customers), 'ca_id');
  CREATE INDEX customer_account_ca_c_id ON customer_account (ca_c_id);
  CALL @extschema@.load_table('last_trade', access_method, format(
    'SELECT @extschema@.tpce_symbol(s) AS lt_s_symb, now() AS lt_dts, p AS lt_price, p AS lt_open_price,
       0::bigint AS lt_vol
     FROM (SELECT s, (20 + 10 * random())::numeric(8, 2) AS p FROM generate_series(1, %s::bigint) s) AS priced',
    securities), 'lt_s_symb');
  -- 1 to 18 in a row.
  CALL @extschema@.load_table('holding_summary', access_method, format(
    'SELECT ca_id AS hs_ca_id, @extschema@.tpce_symbol((ca_id * 7919 + h) %% %s + 1) AS hs_s_symb,
       (1 + floor(random() * 800))::int AS hs_qty
     FROM customer_account, LATERAL generate_series(1, (1 + ca_id * 31 %% 18)::int) h', securities),
    'hs_ca_id, hs_s_symb', 'rdmacc.ordered_key = on');
  -- Three of ten are limit orders, which were pending before they were submitted.
  CALL @extschema@.load_table('trade', access_method, format(
    'SELECT (ca_id - 1) * %1$s + t AS t_id, now() - (%1$s - t + random()) * interval ''1 hour'' AS t_dts,
       ''CMPT''::varchar(4) AS t_st_id, (CASE WHEN (ca_id + t) %% 10 < 3 THEN ''TLB'' ELSE ''TMB'' END)::varchar(3) AS t_tt_id,
       true AS t_is_cash, @extschema@.tpce_symbol((ca_id * 17 + t * 29) %% %2$s + 1) AS t_s_symb,
       (1 + floor(random() * 800))::int AS t_qty, 25::numeric(8, 2) AS t_bid_price, ca_id AS t_ca_id,
       @extschema@.draw_text(20)::varchar(49) AS t_exec_name, (20 + 10 * random())::numeric(8, 2) AS t_trade_price,
       5::numeric(10, 2) AS t_chrg, 10::numeric(10, 2) AS t_comm, 0::numeric(10, 2) AS t_tax, false AS t_lifo
     FROM customer_account, LATERAL generate_series(1, %1$s) t', trades, securities), 't_id');
  CREATE INDEX trade_t_ca_id_t_dts ON trade (t_ca_id, t_dts);
  CALL @extschema@.load_table('trade_history', access_method,
    'SELECT t_id AS th_t_id, st_id::varchar(4) AS th_st_id, t_dts + n * interval ''1 minute'' AS th_dts
     FROM trade, (VALUES (''PNDG'', 0), (''SBMT'', 1), (''CMPT'', 2)) AS event (st_id, n)
     WHERE n > 0 OR t_tt_id = ''TLB''', 'th_t_id, th_st_id', 'rdmacc.ordered_key = on');
  CALL @extschema@.load_table('status_type', access_method,
    'SELECT st_id::varchar(4), st_name::varchar(10) FROM (VALUES (''PNDG'', ''Pending''), (''SBMT'', ''Submitted''),
       (''CMPT'', ''Completed''), (''CNCL'', ''Canceled''), (''ACTV'', ''Active'')) AS status (st_id, st_name)',
    'st_id');
END $$;
COMMENT ON PROCEDURE @extschema@.tpce_create(int, name, int) IS
  'makes the tables that TPC-E''s customer-position reads, with so many trades of each account';

CREATE FUNCTION @extschema@.tpce_check(OUT condition text, OUT detail text)
RETURNS SETOF record LANGUAGE plpgsql AS $$
BEGIN
  RETURN QUERY
    SELECT 'customer', format('customer %s has tier %s and tax id %s', c_id, c_tier, c_tax_id) FROM customer
      WHERE (c_tier, c_tax_id) IS DISTINCT FROM (@extschema@.tpce_tier(c_id), @extschema@.tpce_tax_id(c_id))
    UNION ALL
    SELECT 'customer_account', format('customer %s has %s of %s accounts', c_id, count(ca_id),
                                      @extschema@.tpce_accounts(c_id))
      FROM customer LEFT JOIN customer_account ON ca_c_id = c_id GROUP BY c_id
      HAVING count(ca_id) <> @extschema@.tpce_accounts(c_id)
    UNION ALL
    SELECT 'customer_account', format('account %s is of customer %s', ca_id, ca_c_id) FROM customer_account
      WHERE ca_c_id IS DISTINCT FROM (ca_id - 1) / 10 + 1
    UNION ALL
    SELECT 'holding_summary', format('account %s holds %s', hs_ca_id, hs_s_symb) FROM holding_summary
      WHERE NOT EXISTS (SELECT FROM customer_account WHERE ca_id = hs_ca_id)
        OR NOT EXISTS (SELECT FROM last_trade WHERE lt_s_symb = hs_s_symb)
    UNION ALL
    SELECT 'last_trade', format('%s has price %s and volume %s', lt_s_symb, lt_price, lt_vol) FROM last_trade
      WHERE (lt_price BETWEEN 20 AND 30 AND lt_vol >= 0) IS NOT TRUE
    UNION ALL
    SELECT 'trade', format('trade %s is of account %s and %s', t_id, t_ca_id, t_s_symb) FROM trade
      WHERE NOT EXISTS (SELECT FROM customer_account WHERE ca_id = t_ca_id)
        OR NOT EXISTS (SELECT FROM last_trade WHERE lt_s_symb = t_s_symb)
    UNION ALL
    SELECT 'trade', format('trade %s has status %s and no such event', t_id, t_st_id) FROM trade
      WHERE NOT EXISTS (SELECT FROM trade_history WHERE (th_t_id, th_st_id) = (t_id, t_st_id))
    UNION ALL
    SELECT 'trade_history', format('event %s of trade %s', th_st_id, th_t_id) FROM trade_history
      WHERE NOT EXISTS (SELECT FROM trade WHERE t_id = th_t_id)
        OR NOT EXISTS (SELECT FROM status_type WHERE st_id = th_st_id);
END $$;
COMMENT ON FUNCTION @extschema@.tpce_check() IS
  'rows of TPC-E''s tables that refer to none, or are not what others say; no row: nothing is wrong';

-- Frame 1, and 2 where the history of the account with a number is wanted (1: the customer's first one;
-- numbers begin again behind the last). Accounts in the order of their assets, the latest event first.
CREATE FUNCTION @extschema@.tpce_customer_position_sql(
  customer_number bigint, tax_id text, account int, OUT profile text, OUT acct_id bigint[],
  OUT cash_bal numeric[], OUT asset_total numeric[], OUT trade_id bigint[], OUT symbol text[],
  OUT qty int[], OUT trade_status text[], OUT hist_dts timestamptz[])
LANGUAGE plpgsql AS $$
DECLARE
  number bigint := customer_number;
  chosen bigint;
BEGIN
  IF number IS NULL THEN
    SELECT c_id INTO STRICT number FROM customer WHERE c_tax_id = tax_id;
  END IF;
  SELECT c::text INTO STRICT profile FROM customer c WHERE c_id = number;
  SELECT array_agg(ca_id ORDER BY total, ca_id), array_agg(ca_bal ORDER BY total, ca_id),
         array_agg(total ORDER BY total, ca_id)
    INTO acct_id, cash_bal, asset_total
    FROM (SELECT ca_id, ca_bal, coalesce(sum(hs_qty * lt_price), 0) AS total FROM customer_account
            LEFT JOIN (holding_summary JOIN last_trade ON lt_s_symb = hs_s_symb) ON hs_ca_id = ca_id
            WHERE ca_c_id = number GROUP BY ca_id, ca_bal) AS position;
  IF account IS NULL OR account < 1 OR acct_id IS NULL THEN RETURN; END IF;
  SELECT id INTO chosen FROM unnest(acct_id) id
    ORDER BY id LIMIT 1 OFFSET (account - 1) % cardinality(acct_id);
  SELECT array_agg(t_id ORDER BY th_dts DESC, t_id), array_agg(t_s_symb::text ORDER BY th_dts DESC, t_id),
         array_agg(t_qty ORDER BY th_dts DESC, t_id), array_agg(st_name::text ORDER BY th_dts DESC, t_id),
         array_agg(th_dts ORDER BY th_dts DESC, t_id)
    INTO trade_id, symbol, qty, trade_status, hist_dts
    FROM (SELECT t_id AS id FROM trade WHERE t_ca_id = chosen ORDER BY t_dts DESC LIMIT 10) AS told
      JOIN trade ON t_id = id JOIN trade_history ON th_t_id = id JOIN status_type ON st_id = th_st_id;
END $$;
COMMENT ON FUNCTION @extschema@.tpce_customer_position_sql(bigint, text, int) IS
  'what a customer''s accounts are worth, and what became of the last trades of one; plain SQL';

CREATE FUNCTION @extschema@.tpce_market_feed_sql(symbols text[], prices numeric[], quantities int[])
RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  told int := 0;
BEGIN
  IF symbols IS NULL OR prices IS NULL OR quantities IS NULL THEN RETURN NULL; END IF;
  IF cardinality(prices) <> cardinality(symbols) OR cardinality(quantities) <> cardinality(symbols)
     OR array_position(prices, NULL) IS NOT NULL OR array_position(quantities, NULL) IS NOT NULL
     OR (SELECT count(DISTINCT s) FROM unnest(symbols) s) <> cardinality(symbols)
     OR (array_lower(symbols, 1), array_lower(prices, 1), array_lower(quantities, 1)) <> (1, 1, 1) THEN
    RAISE EXCEPTION 'a market-feed has a price and a quantity of each security, and each of these once'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  FOR i IN 1 .. cardinality(symbols) LOOP
    UPDATE last_trade SET lt_price = prices[i], lt_vol = lt_vol + quantities[i], lt_dts = now()
      WHERE lt_s_symb = symbols[i];
    IF NOT FOUND THEN
      RAISE EXCEPTION 'table "last_trade" lacks a row that the transaction is of'
        USING ERRCODE = 'no_data_found';
    END IF;
    told := told + 1;
  END LOOP;
  RETURN told;
END $$;
COMMENT ON FUNCTION @extschema@.tpce_market_feed_sql(text[], numeric[], int[]) IS
  'securities'' new prices, and what was traded of them; how many; plain SQL';

-- Up to 20 of the securities, each once.
CREATE FUNCTION @extschema@.tpce_draw_feed(
  securities bigint, OUT symbols text[], OUT prices numeric[], OUT quantities int[])
LANGUAGE sql VOLATILE AS $$
  SELECT array_agg(@extschema@.tpce_symbol(s)::text), array_agg((20 + 10 * random())::numeric(8, 2)),
         array_agg((1 + floor(random() * 800))::int)
    FROM (SELECT DISTINCT 1 + floor(random() * securities)::bigint AS s FROM generate_series(1, 20)) AS drawn
$$;
COMMENT ON FUNCTION @extschema@.tpce_draw_feed(bigint) IS 'the inputs of a market-feed of TPC-E';

-- The same, one call of the engine's each: for rdmacc tables alone.
CREATE FUNCTION @extschema@.tpce_customer_position(
  customer_number bigint, tax_id text, account int, OUT profile text, OUT acct_id bigint[],
  OUT cash_bal numeric[], OUT asset_total numeric[], OUT trade_id bigint[], OUT symbol text[],
  OUT qty int[], OUT trade_status text[], OUT hist_dts timestamptz[])
AS 'MODULE_PATHNAME', 'rdmacc_tpce_customer_position' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.tpce_customer_position(bigint, text, int) IS
  'what a customer''s accounts are worth, and what became of the last trades of one; rdmacc tables alone';

CREATE FUNCTION @extschema@.tpce_market_feed(symbols text[], prices numeric[], quantities int[])
RETURNS int AS 'MODULE_PATHNAME', 'rdmacc_tpce_market_feed' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.tpce_market_feed(text[], numeric[], int[]) IS
  'securities'' new prices, and what was traded of them; how many; rdmacc tables alone';
