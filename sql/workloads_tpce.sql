-- extension rdmacc_workloads: TPC-E's customer-position and market-feed, by their plain functions and
-- by the native ones, which answer the same
SET client_min_messages = warning;
SET rdmacc.auto_retry = 20;
CREATE EXTENSION rdmacc_workloads;
CREATE SCHEMA tpce;
CREATE SCHEMA tpce_heap;
SET search_path = tpce, public;
CALL rdmacc.tpce_create(40, trades => 12);
SELECT relname, amname FROM pg_class c JOIN pg_am a ON a.oid = relam
  WHERE relnamespace = 'tpce'::regnamespace AND relkind = 'r' ORDER BY 1;
SELECT * FROM rdmacc.tpce_check();
SELECT (SELECT count(*) FROM customer) AS customers, (SELECT count(*) FROM customer_account) AS accounts,
  (SELECT count(*) FROM holding_summary) AS holdings, (SELECT count(*) FROM last_trade) AS securities,
  (SELECT count(*) FROM trade) AS trades, (SELECT count(*) FROM trade_history) AS events;
SELECT min(n), max(n), sum(n) FROM (SELECT rdmacc.tpce_accounts(c) AS n FROM generate_series(1, 1000) c) AS all_of_them;
SELECT count(DISTINCT rdmacc.tpce_tax_id(c)) FROM generate_series(1, 1000) c;

-- ---- Customer-position: by number or tax id, with each account's history or none
SELECT count(*), count(*) FILTER (WHERE native IS NOT DISTINCT FROM plain) AS same,
    count(native.trade_id) AS histories, min(cardinality(native.acct_id)), max(cardinality(native.acct_id)),
    min(cardinality(native.trade_id)), max(cardinality(native.trade_id))
  FROM generate_series(1, 40) c, generate_series(0, 10) account,
    LATERAL rdmacc.tpce_customer_position(c, NULL, account) AS native,
    LATERAL rdmacc.tpce_customer_position_sql(NULL, rdmacc.tpce_tax_id(c), account) AS plain;
-- what it is made of
UPDATE last_trade SET lt_price = 20 + right(lt_s_symb, 1)::int;
UPDATE holding_summary SET hs_qty = 100;
UPDATE customer_account SET ca_bal = 1000 + ca_id;
SELECT acct_id, cash_bal, asset_total FROM rdmacc.tpce_customer_position(12, NULL, 0);
SELECT hs_ca_id, sum(100 * (20 + right(hs_s_symb, 1)::int)) FROM holding_summary
  WHERE hs_ca_id BETWEEN 111 AND 120 GROUP BY 1 ORDER BY 2;
SELECT acct_id, cash_bal, asset_total FROM rdmacc.tpce_customer_position(NULL, rdmacc.tpce_tax_id(12), NULL);
SELECT e.trade_id, e.trade_status FROM rdmacc.tpce_customer_position(12, NULL, 2) p,
    LATERAL unnest(p.trade_id, p.trade_status) AS e (trade_id, trade_status);
-- an account without holdings, a customer without accounts, a trade of another status
DELETE FROM holding_summary WHERE hs_ca_id = 111;
INSERT INTO trade_history VALUES ((111 - 1) * 12 + 12, 'CNCL', now() + interval '1 hour');
SELECT p.acct_id, p.asset_total, p.trade_status[1], p IS NOT DISTINCT FROM plain AS same
  FROM rdmacc.tpce_customer_position(12, NULL, 1) p, rdmacc.tpce_customer_position_sql(12, NULL, 1) plain;
BEGIN;
DELETE FROM customer_account WHERE ca_c_id = 12;
SELECT acct_id, trade_id FROM rdmacc.tpce_customer_position(12, NULL, 1);
SELECT acct_id, trade_id FROM rdmacc.tpce_customer_position_sql(12, NULL, 1);
ROLLBACK;

-- ---- Market-feed
SELECT rdmacc.tpce_market_feed('{S0000001,S0000002}', '{21.126,22}', '{5,7}'),
  rdmacc.tpce_market_feed_sql('{S0000002,S0000003}', '{23,24.126}', '{10,20}');
SELECT lt_s_symb, lt_price, lt_vol FROM last_trade WHERE lt_vol > 0 ORDER BY 1;
SELECT every(cardinality(symbols) BETWEEN 10 AND 20 AND cardinality(prices) = cardinality(symbols)
             AND cardinality(quantities) = cardinality(symbols))
  FROM generate_series(1, 100), LATERAL rdmacc.tpce_draw_feed(38);
BEGIN;
SELECT rdmacc.tpce_market_feed('{S0000004}', '{21}', '{1}');
SAVEPOINT s;
SELECT rdmacc.tpce_market_feed('{S0000004,S0000005}', '{22,22}', '{1,1}');
SELECT lt_price, lt_vol FROM last_trade WHERE lt_s_symb = 'S0000004';
ROLLBACK TO s;
SELECT lt_price, lt_vol FROM last_trade WHERE lt_s_symb = 'S0000004';
COMMIT;
SELECT sum(lt_vol) FROM last_trade;
SELECT rdmacc.tpce_market_feed('{}', '{}', '{}'), rdmacc.tpce_market_feed_sql('{}', '{}', '{}');
SELECT * FROM rdmacc.tpce_check();

-- ---- What is refused, and what the check finds
SELECT rdmacc.tpce_market_feed('{S0000001,S0000001}', '{21,22}', '{1,2}');
SELECT rdmacc.tpce_market_feed_sql('{S0000001,S0000001}', '{21,22}', '{1,2}');
SELECT rdmacc.tpce_market_feed('{S0000001}', '{21,22}', '{1}');
SELECT rdmacc.tpce_market_feed('{S0000001}', '{NULL}', '{1}');
SELECT rdmacc.tpce_market_feed_sql('{S0000001}', '{NULL}', '{1}');
SELECT rdmacc.tpce_market_feed('{{S0000001}}', '{21}', '{1}');
SELECT rdmacc.tpce_market_feed('{S0000001}', '[0:0]={21}', '{1}');
SELECT rdmacc.tpce_market_feed_sql('{S0000001}', '[0:0]={21}', '{1}');
SELECT rdmacc.tpce_market_feed('{S0000001}', NULL, '{1}'), rdmacc.tpce_market_feed_sql('{S0000001}', NULL, '{1}');
SELECT rdmacc.tpce_market_feed('{S0000001,none}', '{21,22}', '{1,2}');
SELECT rdmacc.tpce_market_feed('{S0000001}', '{1234567}', '{1}');
SELECT rdmacc.tpce_customer_position(41, NULL, 1);
SELECT rdmacc.tpce_customer_position_sql(41, NULL, 1);
SELECT rdmacc.tpce_customer_position(NULL, 'none', 1);
SELECT rdmacc.tpce_customer_position(NULL, NULL, 1);
SELECT rdmacc.tpce_customer_position(9223372036854775807, NULL, 1);
-- whatever a table of the name has
BEGIN;
UPDATE holding_summary SET hs_qty = NULL WHERE hs_ca_id = 112;
SELECT rdmacc.tpce_customer_position(12, NULL, 0);
ROLLBACK;
BEGIN;
CREATE TEMP TABLE customer (c_id bigint, c_tax_id text) USING heap;
INSERT INTO pg_temp.customer VALUES (NULL, 'x');
SELECT rdmacc.tpce_customer_position(NULL, 'x', 0);
ROLLBACK;
BEGIN;
CREATE TEMP TABLE holding_summary (hs_ca_id bigint, hs_s_symb bigint, hs_qty int) USING heap;
INSERT INTO pg_temp.holding_summary VALUES (111, 5, 1);
SELECT rdmacc.tpce_customer_position(12, NULL, 0);
ROLLBACK;
BEGIN;
UPDATE customer_account SET ca_c_id = 13 WHERE ca_id = 111;
SELECT acct_id FROM rdmacc.tpce_customer_position(12, NULL, 0);
SELECT acct_id FROM rdmacc.tpce_customer_position_sql(12, NULL, 0);
INSERT INTO customer SELECT (c).* FROM (SELECT jsonb_populate_record(c, '{"c_id": -9223372036854775808, "c_tax_id": "least"}') AS c
  FROM customer c WHERE c_id = 1) AS least;
SELECT rdmacc.tpce_customer_position(NULL, 'least', 0);
ROLLBACK;
BEGIN READ ONLY;
SELECT cardinality(acct_id) FROM rdmacc.tpce_customer_position(12, NULL, 1);
SELECT rdmacc.tpce_market_feed('{S0000001}', '{21}', '{1}');
ROLLBACK;
CALL rdmacc.tpce_create(0);
CALL rdmacc.tpce_create(1, trades => -1);
SET search_path = tpce_heap, public;
SELECT rdmacc.tpce_customer_position(1, NULL, 1);
CALL rdmacc.tpce_create(10, access_method => 'heap');
SELECT rdmacc.tpce_customer_position(1, NULL, 1);
SELECT cardinality(acct_id), cardinality(trade_id) > 0 AS has_history
  FROM rdmacc.tpce_customer_position_sql(1, NULL, 1);
SELECT rdmacc.tpce_market_feed_sql('{S0000001}', '{21}', '{1}');
SELECT * FROM rdmacc.tpce_check();
SET search_path = tpce, public;
UPDATE customer SET c_tier = 9 WHERE c_id = 1;
DELETE FROM customer_account WHERE ca_id = 11;
DELETE FROM trade_history WHERE th_t_id = 361 AND th_st_id = 'CMPT';
DELETE FROM status_type WHERE st_id = 'CNCL';
UPDATE last_trade SET lt_price = NULL WHERE lt_s_symb = 'S0000008';
UPDATE last_trade SET lt_price = 19 WHERE lt_s_symb = 'S0000009';
SELECT condition, count(*), min(detail) FROM rdmacc.tpce_check() GROUP BY 1 ORDER BY 1;
DROP SCHEMA tpce, tpce_heap CASCADE;
DROP EXTENSION rdmacc_workloads;
