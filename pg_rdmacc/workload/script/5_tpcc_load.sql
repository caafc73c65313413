
-- ---- TPC-C: nine tables, loaded as clause 4.3.3 says but for random text, which is shorter to make.
CREATE FUNCTION @extschema@.tpcc_last_name(number int) RETURNS varchar(16)
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT ((ARRAY['BAR', 'OUGHT', 'ABLE', 'PRI', 'PRES', 'ESE', 'ANTI', 'CALLY', 'ATION', 'EING'])
            [number / 100 % 10 + 1]
       || (ARRAY['BAR', 'OUGHT', 'ABLE', 'PRI', 'PRES', 'ESE', 'ANTI', 'CALLY', 'ATION', 'EING'])
            [number / 10 % 10 + 1]
       || (ARRAY['BAR', 'OUGHT', 'ABLE', 'PRI', 'PRES', 'ESE', 'ANTI', 'CALLY', 'ATION', 'EING'])
            [number % 10 + 1])::varchar(16)
$$;
COMMENT ON FUNCTION @extschema@.tpcc_last_name(int) IS 'the last name with a number of 0 to 999';

-- Not uniform, clause 2.1.6; the constants C are 0.
CREATE FUNCTION @extschema@.tpcc_nurand(a int, x int, y int) RETURNS int
LANGUAGE sql VOLATILE PARALLEL SAFE AS $$
  SELECT ((floor(random() * (a + 1))::int | (x + floor(random() * (y - x + 1)))::int)
          % (y - x + 1)) + x
$$;
COMMENT ON FUNCTION @extschema@.tpcc_nurand(int, int, int) IS 'a number of x to y, not uniformly';

CREATE PROCEDURE @extschema@.tpcc_create(
  warehouses int DEFAULT 1, access_method name DEFAULT 'rdmacc', items int DEFAULT 100000,
  customers int DEFAULT 3000)
LANGUAGE plpgsql AS $$
DECLARE
  per_district text := format('generate_series(1, %s) w, generate_series(1, 10) d', warehouses);
  dists text;
BEGIN
  PERFORM @extschema@.check_at_least('warehouses', warehouses, 1);
  PERFORM @extschema@.check_at_least('items', items, 100);
  PERFORM @extschema@.check_at_least('customers', customers, 10);
  SELECT string_agg(format('@extschema@.draw_text(24)::char(24) AS s_dist_%s', lpad(d::text, 2, '0')),
                    ', ' ORDER BY d) INTO dists FROM generate_series(1, 10) d;
  CALL @extschema@.load_table('item', access_method, format(
    'SELECT i AS i_id, @extschema@.draw_text(20)::varchar(24) AS i_name,
       (1 + random() * 99)::numeric(5, 2) AS i_price,
       CASE WHEN random() < 0.1 THEN ''ORIGINAL'' ELSE @extschema@.draw_text(38) END::varchar(50) AS i_data,
       (1 + floor(random() * 10000))::int AS i_im_id
     FROM generate_series(1, %s) i', items), 'i_id');
  CALL @extschema@.load_table('warehouse', access_method, format(
    'SELECT w AS w_id, %s::numeric(12, 2) AS w_ytd, (random() * 0.2)::numeric(4, 4) AS w_tax,
       @extschema@.draw_text(8)::varchar(10) AS w_name, @extschema@.draw_text(15)::varchar(20) AS w_street_1,
       @extschema@.draw_text(15)::varchar(20) AS w_street_2, @extschema@.draw_text(15)::varchar(20) AS w_city,
       ''CA''::char(2) AS w_state, ''123411111''::char(9) AS w_zip
     FROM generate_series(1, %s) w', 100 * customers, warehouses), 'w_id');
  CALL @extschema@.load_table('district', access_method, format(
    'SELECT w AS d_w_id, d AS d_id, %s::numeric(12, 2) AS d_ytd, (random() * 0.2)::numeric(4, 4) AS d_tax,
       %s AS d_next_o_id, @extschema@.draw_text(8)::varchar(10) AS d_name,
       @extschema@.draw_text(15)::varchar(20) AS d_street_1, @extschema@.draw_text(15)::varchar(20) AS d_street_2,
       @extschema@.draw_text(15)::varchar(20) AS d_city, ''CA''::char(2) AS d_state, ''123411111''::char(9) AS d_zip
     FROM %s', 10 * customers, customers + 1, per_district), 'd_w_id, d_id');
  CALL @extschema@.load_table('customer', access_method, format(
    'SELECT w AS c_w_id, d AS c_d_id, c AS c_id, (random() * 0.5)::numeric(4, 4) AS c_discount,
       CASE WHEN random() < 0.1 THEN ''BC'' ELSE ''GC'' END::char(2) AS c_credit,
       @extschema@.tpcc_last_name(CASE WHEN c <= 1000 THEN c - 1 ELSE @extschema@.tpcc_nurand(255, 0, 999) END) AS c_last,
       @extschema@.draw_text(12)::varchar(16) AS c_first, 50000::numeric(12, 2) AS c_credit_lim,
       -10::numeric(12, 2) AS c_balance, 10::numeric(12, 2) AS c_ytd_payment, 1 AS c_payment_cnt,
       0 AS c_delivery_cnt, @extschema@.draw_text(15)::varchar(20) AS c_street_1,
       @extschema@.draw_text(15)::varchar(20) AS c_street_2, @extschema@.draw_text(15)::varchar(20) AS c_city,
       ''CA''::char(2) AS c_state, ''123411111''::char(9) AS c_zip, ''0123456789012345''::char(16) AS c_phone,
       now() AS c_since, ''OE''::char(2) AS c_middle, @extschema@.draw_text(400)::varchar(500) AS c_data
     FROM %s, generate_series(1, %s) c', per_district, customers), 'c_w_id, c_d_id, c_id');
  CREATE INDEX customer_name ON customer (c_w_id, c_d_id, c_last, c_first);
  CALL @extschema@.load_table('history', access_method, format(
    'SELECT c AS h_c_id, d AS h_c_d_id, w AS h_c_w_id, d AS h_d_id, w AS h_w_id, now() AS h_date,
       10::numeric(6, 2) AS h_amount, @extschema@.draw_text(20)::varchar(24) AS h_data
     FROM %s, generate_series(1, %s) c', per_district, customers), NULL);
  CALL @extschema@.load_table('stock', access_method, format(
    'SELECT w AS s_w_id, i AS s_i_id, (10 + floor(random() * 91))::int AS s_quantity,
       0::numeric(8, 2) AS s_ytd, 0 AS s_order_cnt, 0 AS s_remote_cnt,
       CASE WHEN random() < 0.1 THEN ''ORIGINAL'' ELSE @extschema@.draw_text(38) END::varchar(50) AS s_data, %s
     FROM generate_series(1, %s) w, generate_series(1, %s) i',
    dists, warehouses, items), 's_w_id, s_i_id');
  CALL @extschema@.load_table('oorder', access_method, format(
    'SELECT w AS o_w_id, d AS o_d_id, o AS o_id,
       (row_number() OVER (PARTITION BY w, d ORDER BY random()))::int AS o_c_id,
       CASE WHEN o <= %1$s THEN (1 + floor(random() * 10))::int END AS o_carrier_id,
       (5 + floor(random() * 11))::int AS o_ol_cnt, 1 AS o_all_local, now() AS o_entry_d
     FROM %2$s, generate_series(1, %3$s) o', customers * 7 / 10, per_district, customers),
    'o_w_id, o_d_id, o_id');
  CREATE INDEX oorder_customer ON oorder (o_w_id, o_d_id, o_c_id, o_id);
  CALL @extschema@.load_table('new_order', access_method, format(
    'SELECT w AS no_w_id, d AS no_d_id, o AS no_o_id FROM %s, generate_series(%s, %s) o',
    per_district, customers * 7 / 10 + 1, customers), 'no_w_id, no_d_id, no_o_id',
    'rdmacc.ordered_key = on');
  CALL @extschema@.load_table('order_line', access_method, format(
    'SELECT o_w_id AS ol_w_id, o_d_id AS ol_d_id, o_id AS ol_o_id, l AS ol_number,
       (1 + floor(random() * %1$s))::int AS ol_i_id,
       CASE WHEN o_carrier_id IS NOT NULL THEN o_entry_d END AS ol_delivery_d,
       CASE WHEN o_carrier_id IS NULL THEN 0.01 + random() * 9999.98 ELSE 0 END::numeric(6, 2) AS ol_amount,
       o_w_id AS ol_supply_w_id, 5::numeric(6, 2) AS ol_quantity, @extschema@.draw_text(24)::char(24) AS ol_dist_info
     FROM oorder, LATERAL generate_series(1, o_ol_cnt) l', items),
    'ol_w_id, ol_d_id, ol_o_id, ol_number');
  CREATE VIEW orders AS SELECT * FROM oorder;
END $$;
COMMENT ON PROCEDURE @extschema@.tpcc_create(int, name, int, int) IS
  'makes TPC-C''s tables, with fewer items, or customers of a district, on demand';

-- Clause 3.3.2, as conditions that hold at all times: the number of orders that are delivered (11)
-- is not the 30 % less of the load for long.
CREATE FUNCTION @extschema@.tpcc_check(OUT condition int, OUT detail text)
RETURNS SETOF record LANGUAGE plpgsql AS $$
BEGIN
  RETURN QUERY SELECT 1, format('warehouse %s: w_ytd %s, sum of d_ytd %s', w_id, w_ytd, sum(d_ytd))
    FROM warehouse JOIN district ON d_w_id = w_id GROUP BY w_id, w_ytd HAVING w_ytd <> sum(d_ytd);
  RETURN QUERY
    SELECT 2, format('district %s, %s: d_next_o_id %s, last order %s, last new order %s', d_w_id, d_id,
                     d_next_o_id, o.last, n.last)
    FROM district
      LEFT JOIN (SELECT o_w_id, o_d_id, max(o_id) AS last FROM oorder GROUP BY 1, 2) o
        ON (o_w_id, o_d_id) = (d_w_id, d_id)
      LEFT JOIN (SELECT no_w_id, no_d_id, max(no_o_id) AS last FROM new_order GROUP BY 1, 2) n
        ON (no_w_id, no_d_id) = (d_w_id, d_id)
    WHERE o.last IS DISTINCT FROM d_next_o_id - 1 OR n.last <> d_next_o_id - 1;
  RETURN QUERY
    SELECT 3, format('district %s, %s: new orders %s to %s, but %s of them', no_w_id, no_d_id,
                     min(no_o_id), max(no_o_id), count(*))
    FROM new_order GROUP BY no_w_id, no_d_id HAVING max(no_o_id) - min(no_o_id) + 1 <> count(*);
  RETURN QUERY
    SELECT 4, format('district %s, %s: sum of o_ol_cnt %s, order lines %s', o_w_id, o_d_id, o.lines,
                     l.lines)
    FROM (SELECT o_w_id, o_d_id, sum(o_ol_cnt) AS lines FROM oorder GROUP BY 1, 2) o
      FULL JOIN (SELECT ol_w_id, ol_d_id, count(*) AS lines FROM order_line GROUP BY 1, 2) l
        ON ol_w_id = o_w_id AND ol_d_id = o_d_id
    WHERE o.lines IS DISTINCT FROM l.lines;
  RETURN QUERY
    SELECT 5, format('order %s, %s, %s: o_carrier_id %s, new order %s', o_w_id, o_d_id, o_id,
                     o_carrier_id, no_o_id)
    FROM oorder FULL JOIN new_order ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id
    WHERE o_id IS NULL OR (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL);
  RETURN QUERY
    SELECT 6, format('order %s, %s, %s: o_ol_cnt %s, order lines %s', o_w_id, o_d_id, o_id, o_ol_cnt,
                     l.lines)
    FROM oorder
      FULL JOIN (SELECT ol_w_id, ol_d_id, ol_o_id, count(*) AS lines FROM order_line GROUP BY 1, 2, 3) l
        ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
    WHERE o_ol_cnt IS DISTINCT FROM l.lines;
  RETURN QUERY
    SELECT 7, format('order line %s, %s, %s, %s: ol_delivery_d %s, o_carrier_id %s', ol_w_id, ol_d_id,
                     ol_o_id, ol_number, ol_delivery_d, o_carrier_id)
    FROM order_line JOIN oorder ON o_w_id = ol_w_id AND o_d_id = ol_d_id AND o_id = ol_o_id
    WHERE (ol_delivery_d IS NULL) <> (o_carrier_id IS NULL);
  RETURN QUERY SELECT 8, format('warehouse %s: w_ytd %s, history %s', w_id, w_ytd, sum(h_amount))
    FROM warehouse LEFT JOIN history ON h_w_id = w_id GROUP BY w_id, w_ytd
    HAVING w_ytd IS DISTINCT FROM sum(h_amount);
  RETURN QUERY
    SELECT 9, format('district %s, %s: d_ytd %s, history %s', d_w_id, d_id, d_ytd, sum(h_amount))
    FROM district LEFT JOIN history ON h_w_id = d_w_id AND h_d_id = d_id
    GROUP BY d_w_id, d_id, d_ytd HAVING d_ytd IS DISTINCT FROM sum(h_amount);
  RETURN QUERY
    WITH delivered AS (
      SELECT o_w_id, o_d_id, o_c_id, sum(ol_amount) AS amount
      FROM oorder JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
      WHERE ol_delivery_d IS NOT NULL GROUP BY 1, 2, 3
    ), paid AS (
      SELECT h_c_w_id, h_c_d_id, h_c_id, sum(h_amount) AS amount FROM history GROUP BY 1, 2, 3
    ), sums AS (
      SELECT c_w_id, c_d_id, c_id, c_balance, c_ytd_payment, coalesce(delivered.amount, 0) AS delivered,
        coalesce(paid.amount, 0) AS paid
      FROM customer
        LEFT JOIN delivered ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id
        LEFT JOIN paid ON h_c_w_id = c_w_id AND h_c_d_id = c_d_id AND h_c_id = c_id
    )
    SELECT 10, format('customer %s, %s, %s: c_balance %s, delivered %s, paid %s', c_w_id, c_d_id, c_id,
                      c_balance, delivered, paid)
    FROM sums WHERE c_balance <> delivered - paid
    UNION ALL
    SELECT 12, format('customer %s, %s, %s: c_balance %s, c_ytd_payment %s, delivered %s', c_w_id,
                      c_d_id, c_id, c_balance, c_ytd_payment, delivered)
    FROM sums WHERE c_balance + c_ytd_payment <> delivered;
  RETURN QUERY
    SELECT 11, format('district %s, %s: %s orders, %s new ones, %s delivered', o_w_id, o_d_id, o.all_of_them,
                      n.new_ones, o.delivered)
    FROM (SELECT o_w_id, o_d_id, count(*) AS all_of_them, count(o_carrier_id) AS delivered
          FROM oorder GROUP BY 1, 2) o
      LEFT JOIN (SELECT no_w_id, no_d_id, count(*) AS new_ones FROM new_order GROUP BY 1, 2) n
        ON no_w_id = o_w_id AND no_d_id = o_d_id
    WHERE o.all_of_them - coalesce(n.new_ones, 0) <> o.delivered;
END $$;
COMMENT ON FUNCTION @extschema@.tpcc_check() IS
  'which of TPC-C''s twelve consistency conditions do not hold, and where; no row: all do';
