
-- The five transactions. What a terminal would show is not computed, but for what they return.
CREATE FUNCTION @extschema@.tpcc_draw_lines(
  home int, warehouses int, all_items int, remote_percent int DEFAULT 1,
  rollback_percent int DEFAULT 1, OUT items int[], OUT supplies int[], OUT quantities int[])
AS 'MODULE_PATHNAME', 'rdmacc_tpcc_draw_lines' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION @extschema@.tpcc_draw_lines(int, int, int, int, int) IS
  'the lines of a new order: distinct items, of which the last may be one that there is not';

CREATE FUNCTION @extschema@.tpcc_new_order_sql(
  home int, district_number int, customer_number int, items int[], supplies int[],
  quantities int[]) RETURNS numeric
LANGUAGE plpgsql AS $$
DECLARE
  prices numeric[];
  lines int := cardinality(items);
  discount numeric;
  warehouse_tax numeric;
  district_tax numeric;
  order_number int;
  stocked int;
  dist text;
  amount numeric;
  total numeric := 0;
  price numeric;
BEGIN
  -- An item that there is not makes the user roll back: found out before anything is written, so
  -- that the call ends as any other.
  FOR i IN 1 .. lines LOOP
    SELECT i_price INTO price FROM item WHERE i_id = items[i];
    IF NOT FOUND THEN RETURN NULL; END IF;
    prices := prices || price;
  END LOOP;
  SELECT w_tax INTO STRICT warehouse_tax FROM warehouse WHERE w_id = home;
  SELECT c_discount INTO STRICT discount FROM customer
    WHERE c_w_id = home AND c_d_id = district_number AND c_id = customer_number;
  UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = home AND d_id = district_number
    RETURNING d_next_o_id - 1, d_tax INTO STRICT order_number, district_tax;
  INSERT INTO oorder VALUES (home, district_number, order_number, customer_number, NULL, lines,
    (home = ALL (supplies))::int, now());
  INSERT INTO new_order VALUES (home, district_number, order_number);
  FOR i IN 1 .. lines LOOP
    UPDATE stock SET
      s_quantity = CASE WHEN s_quantity >= quantities[i] + 10 THEN s_quantity - quantities[i]
                        ELSE s_quantity - quantities[i] + 91 END,
      s_ytd = s_ytd + quantities[i], s_order_cnt = s_order_cnt + 1,
      s_remote_cnt = s_remote_cnt + (supplies[i] <> home)::int
      WHERE s_w_id = supplies[i] AND s_i_id = items[i]
      RETURNING CASE district_number WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02
        WHEN 3 THEN s_dist_03 WHEN 4 THEN s_dist_04 WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06
        WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08 WHEN 9 THEN s_dist_09 ELSE s_dist_10 END
      INTO STRICT dist;
    amount := quantities[i] * prices[i];
    total := total + amount;
    INSERT INTO order_line VALUES (home, district_number, order_number, i, items[i], NULL, amount,
      supplies[i], quantities[i], dist);
  END LOOP;
  RETURN total * (1 - discount) * (1 + warehouse_tax + district_tax);
END $$;
COMMENT ON FUNCTION @extschema@.tpcc_new_order_sql(int, int, int, int[], int[], int[]) IS
  'enters an order; its total, NULL if the user has rolled back; plain SQL';

-- The customer in the middle of those with the name, by first names (clause 2.5.2.2).
CREATE FUNCTION @extschema@.tpcc_customer_by_name(home int, district_number int, last_name text)
RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  numbers int[];
BEGIN
  SELECT array_agg(c_id ORDER BY c_first) INTO numbers FROM customer
    WHERE c_w_id = home AND c_d_id = district_number AND c_last = last_name;
  RETURN numbers[(cardinality(numbers) + 1) / 2];
END $$;
COMMENT ON FUNCTION @extschema@.tpcc_customer_by_name(int, int, text) IS
  'the number of the customer in the middle of those with a last name, NULL if there is none';

CREATE FUNCTION @extschema@.tpcc_payment_sql(
  home int, district_number int, customer_warehouse int, customer_district int,
  customer_number int, last_name text, amount numeric) RETURNS numeric
LANGUAGE plpgsql AS $$
DECLARE
  number int := coalesce(customer_number, @extschema@.tpcc_customer_by_name(
    customer_warehouse, customer_district, last_name));
  warehouse_name text;
  district_name text;
  balance numeric;
BEGIN
  IF number IS NULL THEN RETURN NULL; END IF;
  UPDATE customer SET c_balance = c_balance - amount, c_ytd_payment = c_ytd_payment + amount,
    c_payment_cnt = c_payment_cnt + 1,
    c_data = CASE c_credit WHEN 'BC' THEN left(concat_ws(' ', number, customer_district,
      customer_warehouse, district_number, home, amount, c_data), 500) ELSE c_data END
    WHERE c_w_id = customer_warehouse AND c_d_id = customer_district AND c_id = number
    RETURNING c_balance INTO STRICT balance;
  UPDATE warehouse SET w_ytd = w_ytd + amount WHERE w_id = home
    RETURNING w_name INTO STRICT warehouse_name;
  UPDATE district SET d_ytd = d_ytd + amount WHERE d_w_id = home AND d_id = district_number
    RETURNING d_name INTO STRICT district_name;
  INSERT INTO history VALUES (number, customer_district, customer_warehouse, district_number,
    home, now(), amount, warehouse_name || '    ' || district_name);
  RETURN balance;
END $$;
COMMENT ON FUNCTION @extschema@.tpcc_payment_sql(int, int, int, int, int, text, numeric) IS
  'a customer pays; the balance; by last name where the number is NULL; plain SQL';

CREATE FUNCTION @extschema@.tpcc_order_status_sql(
  home int, district_number int, customer_number int, last_name text) RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
  number int := coalesce(customer_number,
                         @extschema@.tpcc_customer_by_name(home, district_number, last_name));
  order_number int;
  lines int;
  balance numeric;
BEGIN
  IF number IS NULL THEN RETURN NULL; END IF;
  SELECT c_balance INTO STRICT balance FROM customer
    WHERE c_w_id = home AND c_d_id = district_number AND c_id = number;
  SELECT o_id, o_ol_cnt INTO order_number, lines FROM oorder
    WHERE o_w_id = home AND o_d_id = district_number AND o_c_id = number
    ORDER BY o_id DESC LIMIT 1;
  FOR i IN 1 .. coalesce(lines, 0) LOOP
    PERFORM ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line
      WHERE ol_w_id = home AND ol_d_id = district_number AND ol_o_id = order_number
        AND ol_number = i;
  END LOOP;
  RETURN order_number;
END $$;
COMMENT ON FUNCTION @extschema@.tpcc_order_status_sql(int, int, int, text) IS
  'a customer''s last order, NULL for none; plain SQL';

-- All of a warehouse's districts in one transaction.
CREATE FUNCTION @extschema@.tpcc_delivery_sql(home int, carrier int) RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
  order_number int;
  customer_number int;
  lines int;
  amount numeric;
  total numeric;
  delivered int := 0;
BEGIN
  FOR district_number IN 1 .. 10 LOOP
    SELECT no_o_id INTO order_number FROM new_order
      WHERE no_w_id = home AND no_d_id = district_number ORDER BY no_o_id LIMIT 1;
    CONTINUE WHEN NOT FOUND;
    DELETE FROM new_order
      WHERE no_w_id = home AND no_d_id = district_number AND no_o_id = order_number;
    CONTINUE WHEN NOT FOUND; -- at READ COMMITTED another one has just delivered it
    UPDATE oorder SET o_carrier_id = carrier
      WHERE o_w_id = home AND o_d_id = district_number AND o_id = order_number
      RETURNING o_c_id, o_ol_cnt INTO STRICT customer_number, lines;
    total := 0;
    FOR i IN 1 .. lines LOOP
      UPDATE order_line SET ol_delivery_d = now()
        WHERE ol_w_id = home AND ol_d_id = district_number AND ol_o_id = order_number
          AND ol_number = i
        RETURNING ol_amount INTO STRICT amount;
      total := total + amount;
    END LOOP;
    UPDATE customer SET c_balance = c_balance + total, c_delivery_cnt = c_delivery_cnt + 1
      WHERE c_w_id = home AND c_d_id = district_number AND c_id = customer_number;
    delivered := delivered + 1;
  END LOOP;
  RETURN delivered;
END $$;
COMMENT ON FUNCTION @extschema@.tpcc_delivery_sql(int, int) IS
  'delivers the oldest new order of each district of a warehouse; how many; plain SQL';

CREATE FUNCTION @extschema@.tpcc_stock_level_sql(home int, district_number int, threshold int)
RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  next_order int;
  lines int;
  item_number int;
  items int[] := '{}';
  low int := 0;
BEGIN
  SELECT d_next_o_id INTO STRICT next_order FROM district
    WHERE d_w_id = home AND d_id = district_number;
  FOR o IN greatest(next_order - 20, 1) .. next_order - 1 LOOP
    SELECT o_ol_cnt INTO STRICT lines FROM oorder
      WHERE o_w_id = home AND o_d_id = district_number AND o_id = o;
    FOR i IN 1 .. lines LOOP
      SELECT ol_i_id INTO STRICT item_number FROM order_line
        WHERE ol_w_id = home AND ol_d_id = district_number AND ol_o_id = o AND ol_number = i;
      items := items || item_number;
    END LOOP;
  END LOOP;
  FOR item_number IN SELECT DISTINCT unnest(items) LOOP
    PERFORM FROM stock WHERE s_w_id = home AND s_i_id = item_number AND s_quantity < threshold;
    IF FOUND THEN low := low + 1; END IF;
  END LOOP;
  RETURN low;
END $$;
COMMENT ON FUNCTION @extschema@.tpcc_stock_level_sql(int, int, int) IS
  'how many items of a district''s last 20 orders are low in stock; plain SQL';

-- The same, one call of the engine's each: for rdmacc tables alone.
CREATE FUNCTION @extschema@.tpcc_new_order(
  home int, district_number int, customer_number int, items int[], supplies int[],
  quantities int[]) RETURNS numeric
AS 'MODULE_PATHNAME', 'rdmacc_tpcc_new_order' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.tpcc_new_order(int, int, int, int[], int[], int[]) IS
  'enters an order; its total, NULL if the user has rolled back; rdmacc tables alone';

CREATE FUNCTION @extschema@.tpcc_payment(
  home int, district_number int, customer_warehouse int, customer_district int,
  customer_number int, last_name text, amount numeric) RETURNS numeric
AS 'MODULE_PATHNAME', 'rdmacc_tpcc_payment' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.tpcc_payment(int, int, int, int, int, text, numeric) IS
  'a customer pays; the balance; by last name where the number is NULL; rdmacc tables alone';

CREATE FUNCTION @extschema@.tpcc_order_status(
  home int, district_number int, customer_number int, last_name text) RETURNS int
AS 'MODULE_PATHNAME', 'rdmacc_tpcc_order_status' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.tpcc_order_status(int, int, int, text) IS
  'a customer''s last order, NULL for none; by last name where the number is NULL; rdmacc tables alone';

CREATE FUNCTION @extschema@.tpcc_delivery(home int, carrier int) RETURNS int
AS 'MODULE_PATHNAME', 'rdmacc_tpcc_delivery' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.tpcc_delivery(int, int) IS
  'delivers the oldest new order of each district of a warehouse; how many; rdmacc tables alone';

CREATE FUNCTION @extschema@.tpcc_stock_level(home int, district_number int, threshold int)
RETURNS int
AS 'MODULE_PATHNAME', 'rdmacc_tpcc_stock_level' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.tpcc_stock_level(int, int, int) IS
  'how many items of a district''s last 20 orders are low in stock; rdmacc tables alone';
