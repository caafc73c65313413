/* TPC-C's delivery as one call that reads and writes the engine itself, but for the look-ups of the
 * oldest new orders, which are statements; what it does is what rdmacc.tpcc_delivery_sql() in
 * script/6_tpcc.sql does. */
#include "pg_rdmacc/workload/native_query.h"
#include "pg_rdmacc/workload/numeric_values.h"
#include "pg_rdmacc/workload/tpcc_orders.h"
#include "pg_rdmacc/workload/tpcc_tables.h"

extern "C" {
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "utils/timestamp.h"

PGDLLEXPORT Datum rdmacc_tpcc_delivery(PG_FUNCTION_ARGS);
PG_FUNCTION_INFO_V1(rdmacc_tpcc_delivery);
}

namespace {

constexpr int kKeyColumns = 3;
constexpr AclMode kUpdates = ACL_SELECT | ACL_UPDATE;

RdmaccNativeQuery oldest = {.text =
                                "SELECT no_o_id FROM new_order WHERE no_w_id = $1 AND no_d_id = $2"
                                " ORDER BY no_o_id LIMIT 1",
                            .argument_count = 2,
                            .types = {INT4OID, INT4OID},
                            .plan = nullptr,
                            .column_count = 1,
                            .column_types = {INT4OID}};

/* Of new_order and customer: a number within the order's district. */
void put_key(Datum* key, const TpccOrder* order, int32 number) {
  key[0] = Int32GetDatum(order->warehouse);
  key[1] = Int32GetDatum(order->district);
  key[2] = Int32GetDatum(number);
}

/* The oldest new order of each district that has one. */
int find_orders(int32 home, TpccOrder* orders) {
  int count = 0;
  for (int32 district = 1; district <= kDistricts; district++) {
    const Datum arguments[] = {Int32GetDatum(home), Int32GetDatum(district)};
    TpccOrder* order = &orders[count];
    *order = {.warehouse = home, .district = district, .number = 0, .customer = 0, .lines = 0};
    if (rdmacc_native_find(&oldest, arguments, &order->number)) count++;
  }
  return count;
}

/* Leaves those that are new orders no more out. */
int remove_new_orders(const RdmaccNativeCall* call, TpccOrder* orders, int count) {
  const RdmaccNativeCall removes = rdmacc_native_call_for(call, ACL_SELECT | ACL_DELETE);
  Datum keys[kDistricts][kKeyColumns];
  RdmaccNativeRow rows[kDistricts];
  for (int i = 0; i < count; i++) {
    put_key(keys[i], &orders[i], orders[i].number);
  }
  RdmaccNativeAccess access;
  rdmacc_native_open(&tpcc_new_order, &removes, &access);
  rdmacc_native_read_rows(&access, keys[0], static_cast<size_t>(count), rows);
  int left = 0;
  for (int i = 0; i < count; i++) {
    if (!rows[i].found) continue;
    rdmacc_native_delete(&access, rows[i].key);
    orders[left++] = orders[i];
  }
  rdmacc_native_close(&access);
  return left;
}

void write_carrier(const RdmaccNativeCall* call, TpccOrder* orders, int count, Datum carrier) {
  const RdmaccNativeCall writes = rdmacc_native_call_for(call, kUpdates);
  RdmaccNativeAccess access;
  rdmacc_native_open(&tpcc_oorder, &writes, &access);
  RdmaccNativeRow* rows = tpcc_read_orders(&access, orders, count);
  for (int i = 0; i < count; i++) {
    rows[i].values[kOrderCarrier] = carrier;
    rdmacc_native_update(&access, rows[i].key, rows[i].values);
  }
  rdmacc_native_close(&access);
}

/* What each order is about. */
void write_lines(const RdmaccNativeCall* call, const TpccOrder* orders, int count, Datum* amounts) {
  const RdmaccNativeCall writes = rdmacc_native_call_for(call, kUpdates);
  const Datum now = TimestampTzGetDatum(GetCurrentTransactionStartTimestamp());
  RdmaccNativeAccess access;
  rdmacc_native_open(&tpcc_order_line, &writes, &access);
  size_t lines = 0;
  RdmaccNativeRow* row = tpcc_read_lines(&access, orders, count, &lines);
  for (int i = 0; i < count; i++) {
    amounts[i] = rdmacc_numeric_of(0);
    for (int32 line = 0; line < orders[i].lines; line++, row++) {
      amounts[i] = rdmacc_numeric_add(amounts[i], row->values[kLineAmount]);
      row->values[kLineDelivered] = now;
      rdmacc_native_update(&access, row->key, row->values);
    }
  }
  rdmacc_native_close(&access);
}

void write_customers(const RdmaccNativeCall* call, const TpccOrder* orders, int count,
                     const Datum* amounts) {
  const RdmaccNativeCall writes = rdmacc_native_call_for(call, kUpdates);
  Datum keys[kDistricts][kKeyColumns];
  RdmaccNativeRow rows[kDistricts];
  for (int i = 0; i < count; i++) {
    put_key(keys[i], &orders[i], orders[i].customer);
  }
  RdmaccNativeAccess access;
  rdmacc_native_open(&tpcc_customer, &writes, &access);
  rdmacc_native_read_rows(&access, keys[0], static_cast<size_t>(count), rows);
  for (int i = 0; i < count; i++) {
    if (!rows[i].found) continue;
    Datum* values = rows[i].values;
    values[kCustomerBalance] = rdmacc_native_assigned(
        &access, kCustomerBalance, rdmacc_numeric_add(values[kCustomerBalance], amounts[i]));
    values[kCustomerDeliveries] =
        DirectFunctionCall2(int4pl, values[kCustomerDeliveries], Int32GetDatum(1));
    rdmacc_native_update(&access, rows[i].key, values);
  }
  rdmacc_native_close(&access);
}

}  // namespace

Datum rdmacc_tpcc_delivery(PG_FUNCTION_ARGS) {
  TpccOrder orders[kDistricts];
  Datum amounts[kDistricts];
  int count = find_orders(PG_GETARG_INT32(0), orders);
  const RdmaccNativeCall call = rdmacc_native_call(kUpdates | ACL_DELETE);
  count = remove_new_orders(&call, orders, count);
  if (count == 0) PG_RETURN_INT32(0);
  write_carrier(&call, orders, count, PG_GETARG_DATUM(1));
  write_lines(&call, orders, count, amounts);
  write_customers(&call, orders, count, amounts);
  PG_RETURN_INT32(count);
}
