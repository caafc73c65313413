/* TPC-C's new-order as one call that reads and writes the engine itself; what it does is what
 * rdmacc.tpcc_new_order_sql() in script/6_tpcc.sql does. */
#include "pg_rdmacc/workload/native_rows.h"
#include "pg_rdmacc/workload/numeric_values.h"
#include "pg_rdmacc/workload/tpcc_tables.h"

extern "C" {
#include "access/xact.h"
#include "utils/array.h"
#include "utils/timestamp.h"

PGDLLEXPORT Datum rdmacc_tpcc_new_order(PG_FUNCTION_ARGS);
PG_FUNCTION_INFO_V1(rdmacc_tpcc_new_order);
}

namespace {

constexpr int kLinesMax = 100; /* 15 by the specification */
constexpr int kRefill = 91, kLeftMin = 10;

struct Order {
  int32 home, district, customer;
  int lines;
  const int32 *items, *supplies, *quantities;
};

/* What is charged for all lines. */
struct Rates {
  Datum discount, warehouse_tax, district_tax;
};

const int32* numbers_of(ArrayType* array, int* count) {
  *count = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));
  if (ARR_NDIM(array) > 1 || (*count > 0 && ARR_LBOUND(array)[0] != 1) ||
      array_contains_nulls(array) || *count > kLinesMax) {
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("lines must be lists of at most %d numbers, from 1, without nulls",
                           kLinesMax)));
  }
  return reinterpret_cast<const int32*>(ARR_DATA_PTR(array));
}

Order order_of(FunctionCallInfo fcinfo) {
  int supplies = 0, quantities = 0;
  Order order = {};
  order.home = PG_GETARG_INT32(0);
  order.district = PG_GETARG_INT32(1);
  order.customer = PG_GETARG_INT32(2);
  order.items = numbers_of(PG_GETARG_ARRAYTYPE_P(3), &order.lines);
  order.supplies = numbers_of(PG_GETARG_ARRAYTYPE_P(4), &supplies);
  order.quantities = numbers_of(PG_GETARG_ARRAYTYPE_P(5), &quantities);
  if (supplies != order.lines || quantities != order.lines) {
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("each item needs a supplying warehouse and a quantity")));
  }
  return order;
}

Datum plus(Datum number, int32 more) {
  return DirectFunctionCall2(int4pl, number, Int32GetDatum(more));
}

RdmaccNativeRow* make_rows(int count) {
  return static_cast<RdmaccNativeRow*>(
      palloc(sizeof(RdmaccNativeRow) * static_cast<Size>(Max(count, 1))));
}

/* The items' prices, false when one of the items does not exist. */
bool read_prices(const RdmaccNativeCall* call, const Order* order, Datum* prices) {
  const RdmaccNativeCall reads = rdmacc_native_call_for(call, ACL_SELECT);
  RdmaccNativeAccess access;
  rdmacc_native_open(&tpcc_item, &reads, &access);
  RdmaccNativeRow* rows = make_rows(order->lines);
  Datum keys[kLinesMax];
  for (int i = 0; i < order->lines; i++) keys[i] = Int32GetDatum(order->items[i]);
  rdmacc_native_read_rows(&access, keys, static_cast<size_t>(order->lines), rows);
  bool found = true;
  for (int i = 0; i < order->lines && found; i++) {
    found = rows[i].found;
    if (found) prices[i] = rows[i].values[kItemPrice];
  }
  rdmacc_native_close(&access);
  return found;
}

void read_rates(const RdmaccNativeCall* call, const Order* order, Rates* rates) {
  const RdmaccNativeCall reads = rdmacc_native_call_for(call, ACL_SELECT);
  const Datum key[] = {Int32GetDatum(order->home), Int32GetDatum(order->district),
                       Int32GetDatum(order->customer)};
  RdmaccNativeAccess access;
  RdmaccNativeRow row;
  rdmacc_native_open(&tpcc_warehouse, &reads, &access);
  rdmacc_native_read_row(&access, key, &row);
  rdmacc_native_close(&access);
  rates->warehouse_tax = row.values[kWarehouseTax];
  rdmacc_native_open(&tpcc_customer, &reads, &access);
  rdmacc_native_read_row(&access, key, &row);
  rdmacc_native_close(&access);
  rates->discount = row.values[kCustomerDiscount];
}

/* The order's number, by which the district has had one more. */
Datum take_number(const RdmaccNativeCall* call, const Order* order, Rates* rates) {
  const RdmaccNativeCall writes = rdmacc_native_call_for(call, ACL_SELECT | ACL_UPDATE);
  const Datum key[] = {Int32GetDatum(order->home), Int32GetDatum(order->district)};
  RdmaccNativeAccess access;
  RdmaccNativeRow row;
  rdmacc_native_open(&tpcc_district, &writes, &access);
  rdmacc_native_read_row(&access, key, &row);
  const Datum number = row.values[kDistrictNextOrder];
  rates->district_tax = row.values[kDistrictTax];
  row.values[kDistrictNextOrder] = plus(number, 1);
  rdmacc_native_update(&access, row.key, row.values);
  rdmacc_native_close(&access);
  return number;
}

void insert_order(const RdmaccNativeCall* call, const Order* order, Datum number) {
  const RdmaccNativeCall inserts = rdmacc_native_call_for(call, ACL_INSERT);
  bool local = true;
  for (int i = 0; i < order->lines; i++) local &= order->supplies[i] == order->home;
  Datum values[kOrderColumns] = {};
  bool nulls[kOrderColumns] = {};
  values[kOrderWarehouse] = Int32GetDatum(order->home);
  values[kOrderDistrict] = Int32GetDatum(order->district);
  values[kOrderNumber] = number;
  values[kOrderCustomer] = Int32GetDatum(order->customer);
  nulls[kOrderCarrier] = true;
  values[kOrderLines] = Int32GetDatum(order->lines);
  values[kOrderAllLocal] = Int32GetDatum(local ? 1 : 0);
  values[kOrderDate] = TimestampTzGetDatum(GetCurrentTransactionStartTimestamp());
  RdmaccNativeAccess access;
  rdmacc_native_open(&tpcc_oorder, &inserts, &access);
  rdmacc_native_insert(&access, values, nulls);
  rdmacc_native_close(&access);
  rdmacc_native_open(&tpcc_new_order, &inserts, &access);
  rdmacc_native_insert(&access, values, nullptr); /* the same key, and no more */
  rdmacc_native_close(&access);
}

/* The first of the order's lines that takes from the same stock. */
int first_of_stock(const Order* order, int line) {
  int first = 0;
  while (order->items[first] != order->items[line] ||
         order->supplies[first] != order->supplies[line]) {
    first++;
  }
  CHECK(first <= line);
  return first;
}

void take_from_stock(const RdmaccNativeAccess* access, const Order* order, int line,
                     Datum* values) {
  const int32 quantity = order->quantities[line];
  const Datum left = DirectFunctionCall2(int4mi, values[kStockQuantity], Int32GetDatum(quantity));
  const Datum enough = plus(Int32GetDatum(quantity), kLeftMin);
  const bool refill = DatumGetInt32(values[kStockQuantity]) < DatumGetInt32(enough);
  values[kStockQuantity] = refill ? plus(left, kRefill) : left;
  values[kStockYtd] = rdmacc_native_assigned(
      access, kStockYtd, rdmacc_numeric_add(values[kStockYtd], rdmacc_numeric_of(quantity)));
  values[kStockOrders] = plus(values[kStockOrders], 1);
  const bool remote = order->supplies[line] != order->home;
  values[kStockRemoteOrders] = plus(values[kStockRemoteOrders], remote ? 1 : 0);
}

/* What each line's stock has for the order's district, in the lines' order. */
void write_stock(const RdmaccNativeCall* call, const Order* order, Datum* district_texts) {
  const RdmaccNativeCall writes = rdmacc_native_call_for(call, ACL_SELECT | ACL_UPDATE);
  RdmaccNativeAccess access;
  rdmacc_native_open(&tpcc_stock, &writes, &access);
  RdmaccNativeRow* rows = make_rows(order->lines);
  Datum keys[2 * kLinesMax];
  for (int i = 0; i < order->lines; i++) {
    keys[2 * i] = Int32GetDatum(order->supplies[i]);
    keys[2 * i + 1] = Int32GetDatum(order->items[i]);
  }
  rdmacc_native_read_rows(&access, keys, static_cast<size_t>(order->lines), rows);
  const bool named = order->district >= 1 && order->district < kDistricts;
  const int text = kStockDistricts - 1 + (named ? order->district : kDistricts);
  for (int i = 0; i < order->lines; i++) {
    if (!rows[i].found) rdmacc_native_lacks_row(&access);
    district_texts[i] = rows[i].values[text];
    take_from_stock(&access, order, i, rows[first_of_stock(order, i)].values);
  }
  for (int i = 0; i < order->lines; i++) {
    if (first_of_stock(order, i) < i) continue; /* written with the first one */
    rdmacc_native_update(&access, rows[i].key, rows[i].values);
  }
  rdmacc_native_close(&access);
}

/* The sum of the amounts. */
Datum insert_lines(const RdmaccNativeCall* call, const Order* order, Datum number,
                   const Datum* prices, const Datum* district_texts) {
  const RdmaccNativeCall inserts = rdmacc_native_call_for(call, ACL_INSERT);
  RdmaccNativeAccess access;
  rdmacc_native_open(&tpcc_order_line, &inserts, &access);
  Datum total = rdmacc_numeric_of(0);
  for (int i = 0; i < order->lines; i++) {
    const Datum quantity = rdmacc_numeric_of(order->quantities[i]);
    const Datum amount = rdmacc_numeric_multiply(quantity, prices[i]);
    total = rdmacc_numeric_add(total, amount);
    Datum values[kLineColumns] = {};
    bool nulls[kLineColumns] = {};
    values[kLineWarehouse] = Int32GetDatum(order->home);
    values[kLineDistrict] = Int32GetDatum(order->district);
    values[kLineOrder] = number;
    values[kLineNumber] = Int32GetDatum(i + 1);
    values[kLineItem] = Int32GetDatum(order->items[i]);
    nulls[kLineDelivered] = true;
    values[kLineAmount] = rdmacc_native_assigned(&access, kLineAmount, amount);
    values[kLineSupply] = Int32GetDatum(order->supplies[i]);
    values[kLineQuantity] = rdmacc_native_assigned(&access, kLineQuantity, quantity);
    values[kLineDistrictText] =
        rdmacc_native_assigned(&access, kLineDistrictText, district_texts[i]);
    rdmacc_native_insert(&access, values, nulls);
  }
  rdmacc_native_close(&access);
  return total;
}

Datum charged(Datum total, const Rates* rates) {
  const Datum one = rdmacc_numeric_of(1);
  const Datum taxes =
      rdmacc_numeric_add(rdmacc_numeric_add(one, rates->warehouse_tax), rates->district_tax);
  return rdmacc_numeric_multiply(
      rdmacc_numeric_multiply(total, rdmacc_numeric_subtract(one, rates->discount)), taxes);
}

}  // namespace

Datum rdmacc_tpcc_new_order(PG_FUNCTION_ARGS) {
  const Order order = order_of(fcinfo);
  const RdmaccNativeCall call = rdmacc_native_call(ACL_SELECT | ACL_UPDATE | ACL_INSERT);
  Datum prices[kLinesMax], district_texts[kLinesMax];
  if (!read_prices(&call, &order, prices)) PG_RETURN_NULL(); /* the user rolls back */
  Rates rates = {};
  read_rates(&call, &order, &rates);
  const Datum number = take_number(&call, &order, &rates);
  insert_order(&call, &order, number);
  write_stock(&call, &order, district_texts);
  return charged(insert_lines(&call, &order, number, prices, district_texts), &rates);
}
