-- extension rdmacc_workloads: each transaction once, on rdmacc tables, by its plain function and by
-- its native one
SET client_min_messages = warning;
SET rdmacc.auto_retry = 20;
CREATE EXTENSION rdmacc_workloads;
CREATE SCHEMA bench;
CREATE SCHEMA bench_heap;
SET search_path = bench, public;

-- ---- SmallBank
SET client_min_messages = notice;
\set VERBOSITY terse
CALL rdmacc.smallbank_create(customers => 100);
\set VERBOSITY default
SET client_min_messages = warning;
SELECT relname, amname FROM pg_class c JOIN pg_am a ON a.oid = relam
  WHERE relnamespace = 'bench'::regnamespace AND relkind = 'r' ORDER BY 1;
SELECT * FROM rdmacc.smallbank_check();
SELECT rdmacc.smallbank_send_payment(1, 2, 5.00), rdmacc.smallbank_send_payment_sql(2, 1, 5.00);
SELECT rdmacc.smallbank_send_payment(1, 2, 5000), rdmacc.smallbank_send_payment_sql(1, 2, 5000);
SELECT rdmacc.smallbank_deposit_checking(3, 7), rdmacc.smallbank_deposit_checking_sql(4, 7);
SELECT rdmacc.smallbank_transact_savings(3, -1000), rdmacc.smallbank_transact_savings_sql(4, -1000);
SELECT rdmacc.smallbank_transact_savings(3, -1), rdmacc.smallbank_transact_savings_sql(4, -1);
SELECT rdmacc.smallbank_write_check(3, 1007.5), rdmacc.smallbank_write_check_sql(4, 1007.5);
SELECT rdmacc.smallbank_amalgamate(5, 7), rdmacc.smallbank_amalgamate_sql(6, 8);
SELECT custid, s.bal AS savings, s.inflow, c.bal AS checking, c.inflow
  FROM savings s JOIN checking c USING (custid) WHERE custid <= 8 ORDER BY 1;
SELECT rdmacc.smallbank_balance(7), rdmacc.smallbank_balance_sql(8);
SELECT * FROM rdmacc.smallbank_check();

-- a call sees what the same statement, transaction or savepoint has written, and goes with it
SELECT sum(1) FROM generate_series(1, 3) i, LATERAL rdmacc.smallbank_deposit_checking(20, i);
SELECT bal FROM checking WHERE custid = 20;
BEGIN;
SELECT rdmacc.smallbank_deposit_checking(20, 100);
UPDATE checking SET bal = bal + 1, inflow = inflow + 1 WHERE custid = 20;
SELECT rdmacc.smallbank_balance(20);
SAVEPOINT s;
SELECT rdmacc.smallbank_amalgamate(20, 21);
SELECT rdmacc.smallbank_balance(20), rdmacc.smallbank_balance(21);
ROLLBACK TO s;
SELECT rdmacc.smallbank_balance(20), rdmacc.smallbank_balance(21);
ROLLBACK;
SELECT rdmacc.smallbank_balance(20);
-- a cursor that is older does not
BEGIN;
DECLARE older CURSOR FOR SELECT bal FROM checking WHERE custid = 20;
SELECT rdmacc.smallbank_deposit_checking(20, 100);
FETCH older;
ROLLBACK;

-- beside other writes of the same statement or transaction
UPDATE checking SET bal = bal + 1 WHERE custid = 22 AND rdmacc.smallbank_deposit_checking(22, 1) IS NOT NULL;
WITH updated AS (UPDATE checking SET bal = bal + 1, inflow = inflow + 1 WHERE custid = 23 RETURNING custid)
  SELECT rdmacc.smallbank_deposit_checking(custid, 1) FROM updated;
CREATE TABLE journal (entry text) USING heap;
BEGIN;
INSERT INTO journal VALUES ('kept');
SELECT rdmacc.smallbank_deposit_checking(24, 1);
COMMIT;
DO $$
BEGIN
  PERFORM rdmacc.smallbank_deposit_checking(25, 1);
  BEGIN
    PERFORM rdmacc.smallbank_deposit_checking(25, 10);
    RAISE EXCEPTION 'taken back';
  EXCEPTION WHEN raise_exception THEN NULL;
  END;
END $$;
SELECT custid, bal FROM checking WHERE custid BETWEEN 22 AND 25 ORDER BY 1;
DROP TABLE journal;
-- a table that the transaction has rewritten, emptied, or keyed anew
BEGIN;
SELECT rdmacc.smallbank_deposit_checking(26, 1);
ALTER TABLE checking ALTER inflow TYPE numeric USING inflow + 0;
SELECT rdmacc.set_option('checking', 'history', '1');
SELECT rdmacc.smallbank_deposit_checking(26, 1);
SELECT bal FROM checking WHERE custid = 26;
TRUNCATE checking;
SELECT rdmacc.smallbank_balance(26);
ROLLBACK;
BEGIN;
ALTER TABLE checking DROP CONSTRAINT checking_pkey;
SELECT rdmacc.smallbank_balance(26);
ROLLBACK;
SELECT rdmacc.smallbank_balance(26);
-- a table of that name that comes before it in search_path
CREATE TEMP TABLE checking (custid bigint PRIMARY KEY, bal numeric, inflow numeric);
SELECT rdmacc.smallbank_balance(26);
DROP TABLE pg_temp.checking;
SELECT rdmacc.smallbank_balance(26);

-- indexes have what a call writes
CREATE INDEX checking_bal ON checking (bal);
SELECT rdmacc.smallbank_deposit_checking(30, 123456);
SET enable_seqscan = off;
SELECT custid FROM checking WHERE bal = 124456;
SELECT custid FROM checking WHERE bal = 1000 AND custid = 30;
RESET enable_seqscan;
SELECT * FROM rdmacc.verify('checking');
DROP INDEX checking_bal;

-- the check finds what is wrong
UPDATE savings SET bal = bal - 2000 WHERE custid = 50;
DELETE FROM accounts WHERE custid = 51;
SELECT * FROM rdmacc.smallbank_check() ORDER BY 1;
UPDATE savings SET bal = bal + 2000 WHERE custid = 50;
INSERT INTO accounts VALUES (51, 'customer 51');

-- ---- what a call refuses
SELECT rdmacc.smallbank_balance(1000);
SELECT rdmacc.smallbank_balance_sql(1000);
SELECT rdmacc.smallbank_send_payment(1, 1, 5);
SELECT rdmacc.smallbank_send_payment_sql(1, 1, 5);
SELECT rdmacc.smallbank_amalgamate(1, 1000);
SELECT rdmacc.smallbank_amalgamate_sql(1, 1000);
SELECT rdmacc.smallbank_balance(NULL);
BEGIN READ ONLY;
SELECT rdmacc.smallbank_balance(1);
SELECT rdmacc.smallbank_deposit_checking(1, 1);
ROLLBACK;
CREATE ROLE regress_teller;
GRANT USAGE ON SCHEMA bench TO regress_teller;
GRANT SELECT ON savings, checking TO regress_teller;
SET ROLE regress_teller;
SELECT rdmacc.smallbank_balance(1);
SELECT rdmacc.smallbank_deposit_checking(1, 1);
RESET ROLE;
REVOKE SELECT ON checking FROM regress_teller;
SET ROLE regress_teller;
SELECT rdmacc.smallbank_balance(1);
RESET ROLE;

-- a table that is not plain; it is looked at again whenever it changes
ALTER TABLE checking ADD COLUMN note text;
SELECT rdmacc.smallbank_balance(1);
ALTER TABLE checking DROP COLUMN note;
SELECT rdmacc.smallbank_balance(1);
CALL rdmacc.smallbank_create(customers => 1);
DROP TABLE accounts, savings, checking;
SELECT rdmacc.smallbank_balance(1);
CALL rdmacc.smallbank_create(customers => 10);
-- values are as the columns allow
ALTER TABLE checking ALTER bal TYPE numeric(6, 2);
SELECT rdmacc.smallbank_deposit_checking(1, 1e9);
SELECT rdmacc.smallbank_deposit_checking(1, 0.12345), rdmacc.smallbank_deposit_checking_sql(2, 0.12345);
SELECT custid, bal, inflow FROM checking WHERE custid IN (1, 2) ORDER BY 1;
SELECT rdmacc.smallbank_balance(1);
CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
CREATE TRIGGER none BEFORE UPDATE ON checking FOR EACH ROW EXECUTE FUNCTION nothing();
SELECT rdmacc.smallbank_deposit_checking(1, 1);
DROP TABLE checking;
CREATE TABLE checking (custid bigint PRIMARY KEY, bal numeric CHECK (bal > 0), inflow numeric) USING rdmacc;
SELECT rdmacc.smallbank_deposit_checking(1, 1);
DROP TABLE checking;
CREATE TABLE checking (custid bigint, bal numeric, inflow numeric) USING rdmacc;
SELECT rdmacc.smallbank_deposit_checking(1, 1);
DROP TABLE checking;
CREATE TABLE checking (custid bigint PRIMARY KEY, bal numeric, inflow numeric UNIQUE) USING rdmacc;
SELECT rdmacc.smallbank_deposit_checking(1, 1);
DROP TABLE checking;
CREATE TABLE checking (custid bigint PRIMARY KEY, bal numeric, inflow numeric) USING rdmacc;
ALTER TABLE checking ENABLE ROW LEVEL SECURITY;
SELECT rdmacc.smallbank_deposit_checking(1, 1);
ALTER TABLE checking DISABLE ROW LEVEL SECURITY;
INSERT INTO checking VALUES (1, NULL, 0);
SELECT rdmacc.smallbank_deposit_checking(1, 1);
DROP TABLE accounts, savings, checking;

-- the same on heaps, found by search_path
SET search_path = bench_heap, public;
CALL rdmacc.smallbank_create(customers => 10, access_method => 'heap');
SELECT rdmacc.smallbank_send_payment_sql(2, 1, 5.00);
SELECT rdmacc.smallbank_amalgamate_sql(1, 2);
SELECT rdmacc.smallbank_balance_sql(2);
SELECT rdmacc.smallbank_balance(2);
SELECT * FROM rdmacc.smallbank_check();
DROP TABLE accounts, savings, checking;
SET search_path = bench, public;

-- ---- YCSB
CALL rdmacc.ycsb_create(records => 50, field_bytes => 30);
SELECT rdmacc.ycsb_read(7) = rdmacc.ycsb_read_sql(7) AS same, (rdmacc.ycsb_read(7))[2:3];
SELECT rdmacc.ycsb_read(70), rdmacc.ycsb_read_sql(70);
SELECT rdmacc.ycsb_update(7, 1), rdmacc.ycsb_update_sql(7, 2), rdmacc.ycsb_update(70, 1), rdmacc.ycsb_update_sql(70, 1);
SELECT (rdmacc.ycsb_read_modify_write(7, 2))[1:2];
SELECT (rdmacc.ycsb_read_modify_write_sql(7, 10))[1:2];
SELECT * FROM usertable WHERE ycsb_key = 7 \gx
SELECT rdmacc.ycsb_insert(nextval('usertable_key')::int, 30), rdmacc.ycsb_insert_sql(nextval('usertable_key')::int, 30);
SELECT (rdmacc.ycsb_read_sql(50))[1], (rdmacc.ycsb_read(51))[1];
SELECT rdmacc.ycsb_scan(45, 20), rdmacc.ycsb_scan_sql(45, 20), rdmacc.ycsb_scan(100, 0);
SELECT rdmacc.ycsb_transaction('{1,2,3,400}', 2), rdmacc.ycsb_transaction_sql('{3,2,1,400}', 2), rdmacc.ycsb_transaction('{}', 0);
SELECT ycsb_key, updates FROM usertable WHERE updates > 0 ORDER BY 1;
SELECT * FROM rdmacc.ycsb_check();
SELECT rdmacc.ycsb_insert(7);
SELECT rdmacc.ycsb_update(7, 11);
UPDATE usertable SET updates = 2147483647 WHERE ycsb_key = 9;
SELECT rdmacc.ycsb_update(9, 1);
SELECT rdmacc.ycsb_update_sql(9, 1);
UPDATE usertable SET updates = 0 WHERE ycsb_key = 9;
SELECT rdmacc.ycsb_insert(7, 10);
SELECT rdmacc.ycsb_scan(1, 100000);
SELECT rdmacc.ycsb_transaction('{1,1}', 2);
SELECT rdmacc.ycsb_transaction('{1,NULL}', 1);
SELECT rdmacc.ycsb_transaction('{1,2}', 3);
UPDATE usertable SET field4 = field5 WHERE ycsb_key = 1;
UPDATE usertable SET updates = updates + 1 WHERE ycsb_key = 2;
SELECT * FROM rdmacc.ycsb_check();
DROP TABLE usertable;

-- ---- what is loaded: rows of a table that the transaction has made
CREATE TABLE old (id int PRIMARY KEY, v text) USING rdmacc;
CALL rdmacc.load_rows('old', 'SELECT 1, ''one''::text');
CALL rdmacc.load_rows('old', NULL);
CALL rdmacc.load_rows(NULL, 'SELECT 1');
DROP TABLE old;
BEGIN;
CREATE TABLE made (id int PRIMARY KEY, v text) USING rdmacc;
CALL rdmacc.load_rows('made', 'SELECT i, ''row'' || i FROM generate_series(1, 2500) i');
SELECT count(*), min(v), max(id) FROM made;
SAVEPOINT s;
CALL rdmacc.load_rows('made', 'SELECT 7, ''one more''::text');
ROLLBACK TO s;
ROLLBACK;
\set VERBOSITY terse
BEGIN;
CREATE TABLE made (id int PRIMARY KEY, v text) USING rdmacc;
CALL rdmacc.load_rows('made', 'SELECT i % 5, ''row'' || i FROM generate_series(1, 10) i');
ROLLBACK;
BEGIN;
CREATE TABLE made (id int PRIMARY KEY, v text) USING rdmacc;
CALL rdmacc.load_rows('made', 'SELECT NULL::int, ''row''::text');
ROLLBACK;
BEGIN;
CREATE TABLE made (id int PRIMARY KEY, v text) USING rdmacc;
SET TRANSACTION READ ONLY;
CALL rdmacc.load_rows('made', 'SELECT 1, ''row''::text');
ROLLBACK;
BEGIN;
CREATE TABLE made (id int PRIMARY KEY, v text) USING rdmacc;
CALL rdmacc.load_rows('made', 'SELECT 1');
ROLLBACK;
BEGIN;
CREATE TABLE made (id int PRIMARY KEY, v text) USING rdmacc;
CALL rdmacc.load_rows('made', 'DROP TABLE made');
ROLLBACK;
BEGIN;
CREATE TABLE made (id int PRIMARY KEY, v text) USING heap;
CALL rdmacc.load_rows('made', 'SELECT 1, ''one''::text');
ROLLBACK;
\set VERBOSITY default

-- ---- TATP
CALL rdmacc.tatp_create(subscribers => 40);
SELECT * FROM rdmacc.tatp_check();
SELECT left(rdmacc.tatp_get_subscriber_data_sql(17), 20);
SELECT rdmacc.tatp_get_access_data_sql(16, 1) IS NOT NULL AS first, rdmacc.tatp_get_access_data_sql(16, 2);
SELECT rdmacc.tatp_update_subscriber_data_sql(17, 1, 1, 77), rdmacc.tatp_update_subscriber_data_sql(17, 4, 1, 77);
SELECT bit_1, data_a FROM subscriber JOIN special_facility USING (s_id) WHERE s_id = 17 AND sf_type = 1;
UPDATE special_facility SET is_active = 1 WHERE s_id = 17;
DELETE FROM call_forwarding WHERE s_id = 17;
SELECT rdmacc.tatp_insert_call_forwarding_sql(lpad('17', 15, '0'), 1, 8, 20, lpad('9', 15, '0'));
SELECT rdmacc.tatp_insert_call_forwarding_sql(lpad('17', 15, '0'), 1, 8, 20, lpad('9', 15, '0'));
SELECT rdmacc.tatp_get_new_destination_sql(17, 1, 16, 12), rdmacc.tatp_get_new_destination_sql(17, 1, 0, 12);
SELECT rdmacc.tatp_delete_call_forwarding_sql(lpad('17', 15, '0'), 1, 8);
SELECT rdmacc.tatp_delete_call_forwarding_sql(lpad('17', 15, '0'), 1, 8);
SELECT rdmacc.tatp_update_location_sql(lpad('17', 15, '0'), 4711), rdmacc.tatp_update_location_sql('17', 4711);
SELECT vlr_location FROM subscriber WHERE s_id = 17;
SELECT * FROM rdmacc.tatp_check();
-- native calls do what plain ones do: results, and all rows that the tables have afterwards
CREATE FUNCTION compare(rows_of text, called text, VARIADIC arguments text[],
  OUT same_results bool, OUT same_rows bool, OUT written bool)
LANGUAGE plpgsql AS $$
DECLARE
  results text[];
  rows text[];
  before text;
  result text;
  function_name text;
BEGIN
  EXECUTE format('SELECT %I()', rows_of) INTO before;
  FOREACH function_name IN ARRAY ARRAY[called || '_sql', called] LOOP
    BEGIN
      FOR i IN 1 .. cardinality(arguments) LOOP
        EXECUTE format('SELECT rdmacc.%I(%s)', function_name, arguments[i]) INTO result;
        results := results || coalesce(result, 'nothing');
      END LOOP;
      EXECUTE format('SELECT %I()', rows_of) INTO result;
      rows := rows || result;
      RAISE EXCEPTION 'taken back';
    EXCEPTION WHEN raise_exception THEN NULL;
    END;
  END LOOP;
  same_results := results[: cardinality(arguments)] = results[cardinality(arguments) + 1 :];
  same_rows := rows[1] = rows[2];
  written := rows[2] <> before;
END $$;
CREATE FUNCTION tatp_rows() RETURNS text LANGUAGE sql AS $$
  SELECT md5(string_agg(row, ',' ORDER BY row COLLATE "C")) FROM (
    SELECT t::text AS row FROM subscriber t UNION ALL SELECT t::text FROM access_info t
    UNION ALL SELECT t::text FROM special_facility t UNION ALL SELECT t::text FROM call_forwarding t) rows $$;
INSERT INTO call_forwarding VALUES (17, 1, 0, 5, lpad('3', 15, '0')), (17, 1, 16, 24, lpad('4', 15, '0'));
UPDATE access_info SET data3 = '",(', data4 = '' WHERE s_id = 16;
SELECT * FROM compare('tatp_rows', 'tatp_get_subscriber_data', '1', '17', '40');
SELECT * FROM compare('tatp_rows', 'tatp_get_access_data', '16, 1', '16, 2', '19, 4', '41, 1');
SELECT * FROM compare('tatp_rows', 'tatp_get_new_destination', '17, 1, 16, 4', '17, 1, 16, 5', '17, 1, 8, 20', '17, 1, 0, 3', '17, 1, -1, 3', '17, 4, 16, 3', '17, 1, 32767, 30');
SELECT rdmacc.tatp_get_new_destination(17, 1, 16, 4), rdmacc.tatp_get_new_destination(17, 1, 16, 5), rdmacc.tatp_get_new_destination(17, 1, 8, 20);
SELECT * FROM compare('tatp_rows', 'tatp_update_subscriber_data', '17, 1, 0, 99', '17, 4, 1, 98', '19, 1, 1, 97', '17, 4, 1, 70000');
SELECT * FROM compare('tatp_rows', 'tatp_update_location', $$lpad('17', 15, '0'), 815$$, $$'17', 816$$);
SELECT * FROM compare('tatp_rows', 'tatp_insert_call_forwarding', $$lpad('17', 15, '0'), 1, 8, 20, lpad('9', 15, '0')$$,
  $$lpad('17', 15, '0'), 1, 8, 21, lpad('8', 15, '0')$$, $$lpad('17', 15, '0'), 4, 8, 20, lpad('9', 15, '0')$$);
SELECT * FROM compare('tatp_rows', 'tatp_delete_call_forwarding', $$lpad('17', 15, '0'), 1, 0$$, $$lpad('17', 15, '0'), 1, 0$$);
SELECT rdmacc.tatp_insert_call_forwarding(lpad('17', 15, '0'), 1, 8, 20, lpad('9', 15, '0')), rdmacc.tatp_delete_call_forwarding(lpad('17', 15, '0'), 1, 0),
  rdmacc.tatp_update_location(lpad('17', 15, '0'), 815), rdmacc.tatp_update_subscriber_data(17, 1, 0, 99);
-- beside a savepoint, and what the transaction has written itself
BEGIN;
SELECT rdmacc.tatp_delete_call_forwarding(lpad('17', 15, '0'), 1, 8);
SAVEPOINT s;
SELECT rdmacc.tatp_insert_call_forwarding(lpad('17', 15, '0'), 1, 8, 23, lpad('9', 15, '0'));
SELECT rdmacc.tatp_insert_call_forwarding(lpad('17', 15, '0'), 1, 8, 23, lpad('9', 15, '0'));
ROLLBACK TO s;
SELECT count(*) FROM call_forwarding WHERE s_id = 17 AND start_time = 8;
ROLLBACK;
SELECT * FROM call_forwarding WHERE s_id = 17 ORDER BY start_time;
SELECT vlr_location, bit_1, data_a FROM subscriber JOIN special_facility USING (s_id) WHERE s_id = 17 AND sf_type = 1;
SELECT * FROM rdmacc.tatp_check();
SELECT * FROM rdmacc.verify('subscriber');
-- what they refuse
\set VERBOSITY terse
SELECT rdmacc.tatp_get_subscriber_data(41);
SELECT rdmacc.tatp_get_subscriber_data_sql(41);
SELECT rdmacc.tatp_get_access_data(16, 40000);
SELECT rdmacc.tatp_get_access_data_sql(16, 40000);
SELECT rdmacc.tatp_get_new_destination(17, 1, 40000, 30);
SELECT rdmacc.tatp_update_subscriber_data(17, 1, 1, 40000);
SELECT rdmacc.tatp_update_subscriber_data_sql(17, 1, 1, 40000);
SELECT rdmacc.tatp_insert_call_forwarding('17', 1, 8, 20, lpad('9', 15, '0'));
SELECT rdmacc.tatp_insert_call_forwarding_sql('17', 1, 8, 20, lpad('9', 15, '0'));
SELECT rdmacc.tatp_insert_call_forwarding(lpad('17', 15, '0'), 1, 8, 20, lpad('9', 16, '0'));
SELECT rdmacc.tatp_insert_call_forwarding_sql(lpad('17', 15, '0'), 1, 8, 20, lpad('9', 16, '0'));
SELECT rdmacc.tatp_delete_call_forwarding('17', 1, 8);
SELECT rdmacc.tatp_get_subscriber_data(NULL);
GRANT SELECT ON subscriber, special_facility, call_forwarding TO regress_teller;
SET ROLE regress_teller;
SELECT rdmacc.tatp_get_new_destination(17, 1, 8, 19);
SELECT rdmacc.tatp_delete_call_forwarding(lpad('17', 15, '0'), 1, 8);
SELECT rdmacc.tatp_insert_call_forwarding(lpad('17', 15, '0'), 1, 0, 20, lpad('9', 15, '0'));
SELECT rdmacc.tatp_update_location(lpad('17', 15, '0'), 1);
RESET ROLE;
\set VERBOSITY default
CREATE UNIQUE INDEX subscriber_location ON subscriber (s_id, vlr_location);
SELECT rdmacc.tatp_update_location(lpad('17', 15, '0'), 1);
DROP INDEX subscriber_location;
CREATE UNIQUE INDEX subscriber_somewhere ON subscriber (sub_nbr) WHERE vlr_location > 0;
SELECT rdmacc.tatp_update_location(lpad('17', 15, '0'), 1);
DROP INDEX subscriber_somewhere;
-- the rows are random: one call, at least, is forwarded to the subscriber that goes
INSERT INTO call_forwarding VALUES (17, 1, 0, 5, lpad('39', 15, '0'));
DELETE FROM subscriber WHERE s_id = 39;
SELECT DISTINCT condition FROM rdmacc.tatp_check() ORDER BY 1;
DROP TABLE subscriber, access_info, special_facility, call_forwarding;

-- ---- TPC-C
CALL rdmacc.tpcc_create(warehouses => 2, items => 200, customers => 20);
SELECT * FROM rdmacc.tpcc_check();
SELECT (SELECT count(*) FROM stock), (SELECT count(*) FROM customer), (SELECT count(*) FROM new_order), (SELECT count(*) FROM history);
SELECT round(rdmacc.tpcc_new_order_sql(1, 2, 3, '{5,7,9}', '{1,1,2}', '{1,2,3}')
  / (SELECT sum(i_price * CASE i_id WHEN 5 THEN 1 WHEN 7 THEN 2 ELSE 3 END) FROM item WHERE i_id IN (5, 7, 9))
  / (SELECT (1 - c_discount) * (1 + w_tax + d_tax) FROM customer, warehouse, district
     WHERE (c_w_id, c_d_id, c_id, w_id, d_w_id, d_id) = (1, 2, 3, 1, 1, 2)), 6) AS as_expected;
SELECT o_id, o_c_id, o_carrier_id, o_ol_cnt, o_all_local FROM orders WHERE o_w_id = 1 AND o_d_id = 2 AND o_id > 20;
SELECT s_w_id, s_i_id, s_ytd, s_order_cnt, s_remote_cnt FROM stock WHERE s_order_cnt > 0 ORDER BY 1, 2;
SELECT rdmacc.tpcc_new_order_sql(1, 2, 3, '{5,-1}', '{1,1}', '{1,2}') AS rolled_back;
SELECT rdmacc.tpcc_payment_sql(1, 2, 2, 3, 4, NULL, 12.34), rdmacc.tpcc_payment_sql(1, 2, 2, 3, NULL, rdmacc.tpcc_last_name(4), 1);
SELECT h_c_id, h_c_w_id, h_c_d_id, h_w_id, h_d_id, h_amount FROM history WHERE h_c_id = 5 AND h_amount <> 10;
SELECT rdmacc.tpcc_order_status_sql(1, 2, 3, NULL), rdmacc.tpcc_order_status_sql(1, 2, NULL, 'NONE');
SELECT rdmacc.tpcc_delivery_sql(1, 7) FROM generate_series(1, 7);
SELECT count(*) FROM new_order WHERE no_w_id = 1;
SELECT rdmacc.tpcc_stock_level_sql(1, 2, 200) > 0 AS some, rdmacc.tpcc_stock_level_sql(1, 2, 0);
SELECT * FROM rdmacc.tpcc_check();
SELECT cardinality(items) BETWEEN 5 AND 15 AS lines, cardinality(supplies) = cardinality(items) AS supplies, 1 = ALL (supplies) AS all_local, items @> '{-1}' AS unknown_item
  FROM rdmacc.tpcc_draw_lines(1, 2, 200, 0, 100);
-- native calls do what plain ones do
CREATE FUNCTION tpcc_rows() RETURNS text LANGUAGE sql AS $$
  SELECT md5(string_agg(row, ',' ORDER BY row COLLATE "C")) FROM (
    SELECT t::text AS row FROM warehouse t UNION ALL SELECT t::text FROM district t
    UNION ALL SELECT t::text FROM customer t UNION ALL SELECT t::text FROM history t
    UNION ALL SELECT t::text FROM stock t UNION ALL SELECT t::text FROM oorder t
    UNION ALL SELECT t::text FROM new_order t UNION ALL SELECT t::text FROM order_line t) rows $$;
UPDATE customer SET c_credit = CASE c_id WHEN 4 THEN 'BC' ELSE 'GC' END;
SELECT * FROM compare('tpcc_rows', 'tpcc_new_order', $$1, 2, 3, '{5,7,9}', '{1,1,2}', '{1,2,30}'$$,
  $$1, 10, 4, '{9,8,9,9}', '{2,1,2,1}', '{60,70,60,99}'$$, $$2, 1, 20, '{}', '{}', '{}'$$);
SELECT * FROM compare('tpcc_rows', 'tpcc_new_order', $$1, 2, 3, '{5,7,-1}', '{1,1,2}', '{1,2,3}'$$);
SELECT * FROM compare('tpcc_rows', 'tpcc_payment', $$1, 2, 1, 2, 4, NULL, 12.345$$,
  $$1, 2, 2, 3, 4, 'NONE', 1000$$, $$2, 9, 2, 9, NULL, rdmacc.tpcc_last_name(4), 0.5$$);
SELECT * FROM compare('tpcc_rows', 'tpcc_payment', $$1, 2, 1, 2, NULL, 'NONE', 1$$, $$1, 2, 1, 2, NULL, NULL, 1$$);
-- of several with a name, the one in the middle
UPDATE customer SET c_last = 'SAME' WHERE c_d_id = 5 AND c_id > 16;
SELECT * FROM compare('tpcc_rows', 'tpcc_payment', $$1, 5, 1, 5, NULL, 'SAME', 7$$);
SELECT rdmacc.tpcc_new_order(1, 2, 3, '{5,7}', '{1,2}', '{1,2}') > 0 AS ordered, rdmacc.tpcc_payment(1, 2, 1, 5, NULL, 'SAME', 1) IS NOT NULL AS paid;
SELECT * FROM compare('tpcc_rows', 'tpcc_order_status', '1, 2, 3, NULL', $$1, 5, NULL, 'SAME'$$, $$1, 2, NULL, 'NONE'$$, '1, 2, NULL, NULL', '2, 9, 20, NULL');
SELECT rdmacc.tpcc_order_status(1, 2, 3, NULL), rdmacc.tpcc_order_status(1, 2, NULL, 'NONE');
-- a customer without orders, and orders without lines
BEGIN;
INSERT INTO customer SELECT c.c_w_id, c.c_d_id, 21, c.c_discount, c.c_credit, 'NEW', c.c_first, c.c_credit_lim, c.c_balance, c.c_ytd_payment, c.c_payment_cnt,
  c.c_delivery_cnt, c.c_street_1, c.c_street_2, c.c_city, c.c_state, c.c_zip, c.c_phone, c.c_since, c.c_middle, c.c_data FROM customer c WHERE (c_w_id, c_d_id, c_id) = (1, 2, 3);
SELECT rdmacc.tpcc_order_status(1, 2, 21, NULL), rdmacc.tpcc_order_status_sql(1, 2, NULL, 'NEW');
SELECT rdmacc.tpcc_new_order(1, 2, 21, '{}', '{}', '{}'), rdmacc.tpcc_order_status(1, 2, 21, NULL);
ROLLBACK;
SELECT * FROM compare('tpcc_rows', 'tpcc_stock_level', '1, 2, 200', '1, 2, 50', '2, 9, 30', '1, 2, 0');
SELECT rdmacc.tpcc_stock_level(1, 2, 200) > 0 AS some, rdmacc.tpcc_stock_level(1, 2, 0);
-- the first has one order to deliver, the second six in each district: the seventh finds none
SELECT * FROM compare('tpcc_rows', 'tpcc_delivery', '1, 7');
SELECT * FROM compare('tpcc_rows', 'tpcc_delivery', '2, 3', '2, 4', '2, 5', '2, 6', '2, 7', '2, 8', '2, 9');
SELECT * FROM compare('tpcc_rows', 'tpcc_delivery', '3, 3');
SELECT rdmacc.tpcc_delivery(2, 7), rdmacc.tpcc_delivery_sql(2, 7);
-- beside a savepoint, and what the transaction has written itself
BEGIN;
SELECT rdmacc.tpcc_new_order(1, 3, 3, '{5,7}', '{1,2}', '{1,2}') > 0 AS ordered;
SAVEPOINT s;
SELECT rdmacc.tpcc_delivery(1, 7) FROM generate_series(1, 2);
SELECT count(*) FROM new_order WHERE no_w_id = 1;
ROLLBACK TO s;
SELECT count(*) FROM new_order WHERE no_w_id = 1;
SELECT rdmacc.tpcc_order_status(1, 3, 3, NULL) = max(o_id) AS last FROM oorder WHERE (o_w_id, o_d_id) = (1, 3);
COMMIT;
SELECT rdmacc.tpcc_delivery(1, 7) FROM generate_series(1, 2);
SELECT * FROM rdmacc.tpcc_check();
SELECT * FROM rdmacc.verify('new_order');
SELECT * FROM rdmacc.verify('oorder');
SELECT * FROM rdmacc.verify('order_line');
SELECT * FROM rdmacc.verify('customer');
-- what they refuse
\set VERBOSITY terse
SELECT rdmacc.tpcc_new_order(3, 2, 3, '{5}', '{1}', '{1}');
SELECT rdmacc.tpcc_new_order_sql(3, 2, 3, '{5}', '{1}', '{1}');
SELECT rdmacc.tpcc_new_order(1, 2, 3, '{5}', '{3}', '{1}');
SELECT rdmacc.tpcc_new_order_sql(1, 2, 3, '{5}', '{3}', '{1}');
SELECT rdmacc.tpcc_new_order(1, 2, 3, '{5,7}', '{1}', '{1,1}');
SELECT rdmacc.tpcc_new_order(1, 2, 3, '{5,7}', '{1,NULL}', '{1,1}');
SELECT rdmacc.tpcc_new_order(1, 2, 3, '[2:2]={5}', '{1}', '{1}');
SELECT rdmacc.tpcc_new_order(1, 2, 3, array_agg(i), array_agg(1), array_agg(1)) FROM generate_series(1, 101) i;
SELECT rdmacc.tpcc_new_order(1, 2, 3, '{5}', '{1}', '{10000}');
SELECT rdmacc.tpcc_new_order_sql(1, 2, 3, '{5}', '{1}', '{10000}');
SELECT rdmacc.tpcc_new_order(1, 2, NULL, '{5}', '{1}', '{1}');
SELECT rdmacc.tpcc_payment(1, 2, 1, 2, 30, NULL, 1);
SELECT rdmacc.tpcc_payment_sql(1, 2, 1, 2, 30, NULL, 1);
SELECT rdmacc.tpcc_payment(1, 2, 1, 2, 3, NULL, 10000);
SELECT rdmacc.tpcc_payment_sql(1, 2, 1, 2, 3, NULL, 10000);
SELECT rdmacc.tpcc_payment(1, 2, 1, 2, 3, NULL, NULL);
SELECT rdmacc.tpcc_order_status(1, NULL, 3, NULL);
SELECT rdmacc.tpcc_order_status(1, 2, 30, NULL);
SELECT rdmacc.tpcc_order_status_sql(1, 2, 30, NULL);
SELECT rdmacc.tpcc_stock_level(3, 2, 10);
SELECT rdmacc.tpcc_stock_level_sql(3, 2, 10);
SELECT rdmacc.tpcc_stock_level(1, 2, NULL), rdmacc.tpcc_delivery(NULL, 1);
BEGIN;
DELETE FROM order_line WHERE (ol_w_id, ol_d_id, ol_o_id, ol_number) = (2, 1, 17, 1);
SELECT rdmacc.tpcc_delivery(2, 1);
ROLLBACK;
BEGIN;
DELETE FROM order_line WHERE (ol_w_id, ol_d_id, ol_o_id, ol_number) = (2, 1, 17, 1);
SELECT rdmacc.tpcc_stock_level(2, 1, 10);
ROLLBACK;
BEGIN;
ALTER TABLE new_order ADD CHECK (no_o_id > 0);
SELECT rdmacc.tpcc_delivery(2, 1);
ROLLBACK;
BEGIN READ ONLY;
SELECT rdmacc.tpcc_order_status(1, 2, 3, NULL) > 0 AS reads, rdmacc.tpcc_stock_level(1, 2, 0);
SELECT rdmacc.tpcc_delivery(1, 2);
ROLLBACK;
BEGIN;
UPDATE oorder SET o_carrier_id = 1;
ALTER TABLE oorder ALTER o_carrier_id SET NOT NULL;
SELECT rdmacc.tpcc_new_order(1, 2, 3, '{5}', '{1}', '{1}');
ROLLBACK;
BEGIN;
ALTER TABLE history ADD COLUMN h_id int;
SELECT rdmacc.tpcc_payment(1, 2, 1, 2, 3, NULL, 1);
ROLLBACK;
BEGIN;
ALTER TABLE warehouse ADD CHECK (w_ytd > 0);
SELECT rdmacc.tpcc_payment(1, 2, 1, 2, 3, NULL, 1);
ROLLBACK;
BEGIN;
DELETE FROM history;
ALTER TABLE history ADD PRIMARY KEY (h_c_id);
SELECT rdmacc.tpcc_payment(1, 2, 1, 2, 3, NULL, 1);
ROLLBACK;
BEGIN READ ONLY;
SELECT rdmacc.tpcc_payment(1, 2, 1, 2, 3, NULL, 1);
ROLLBACK;
\set VERBOSITY default
SELECT * FROM rdmacc.tpcc_check();
-- each condition is seen to be violated
BEGIN; UPDATE warehouse SET w_ytd = w_ytd + 1 WHERE w_id = 1; SELECT DISTINCT condition FROM rdmacc.tpcc_check() ORDER BY 1; ROLLBACK;
BEGIN; UPDATE district SET d_ytd = d_ytd + 1 WHERE d_w_id = 1 AND d_id = 1; SELECT DISTINCT condition FROM rdmacc.tpcc_check() ORDER BY 1; ROLLBACK;
BEGIN; UPDATE district SET d_next_o_id = 30 WHERE d_w_id = 1 AND d_id = 1; SELECT DISTINCT condition FROM rdmacc.tpcc_check() ORDER BY 1; ROLLBACK;
BEGIN; DELETE FROM new_order WHERE no_w_id = 2 AND no_d_id = 1 AND no_o_id = 18; SELECT DISTINCT condition FROM rdmacc.tpcc_check() ORDER BY 1; ROLLBACK;
BEGIN; DELETE FROM order_line WHERE ol_w_id = 2 AND ol_d_id = 1 AND ol_o_id = 20 AND ol_number = 1; SELECT DISTINCT condition FROM rdmacc.tpcc_check() ORDER BY 1; ROLLBACK;
BEGIN; UPDATE oorder SET o_carrier_id = 1 WHERE o_w_id = 2 AND o_d_id = 1 AND o_id = 20; SELECT DISTINCT condition FROM rdmacc.tpcc_check() ORDER BY 1; ROLLBACK;
BEGIN; UPDATE customer SET c_balance = c_balance + 1 WHERE c_w_id = 2 AND c_d_id = 1 AND c_id = 3; SELECT DISTINCT condition FROM rdmacc.tpcc_check() ORDER BY 1; ROLLBACK;
DROP VIEW orders;
DROP TABLE item, warehouse, district, customer, history, stock, oorder, new_order, order_line;

SET search_path = public;
SET client_min_messages = warning;
DROP SCHEMA bench, bench_heap CASCADE;
DROP ROLE regress_teller;
DROP EXTENSION rdmacc_workloads;
