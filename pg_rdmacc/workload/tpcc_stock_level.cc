/* TPC-C's stock-level as one call that reads the engine itself; what it does is what
 * rdmacc.tpcc_stock_level_sql() in script/6_tpcc.sql does. */
#include "pg_rdmacc/workload/tpcc_orders.h"
#include "pg_rdmacc/workload/tpcc_tables.h"

extern "C" {
#include "fmgr.h"
#include "lib/qunique.h"

PGDLLEXPORT Datum rdmacc_tpcc_stock_level(PG_FUNCTION_ARGS);
PG_FUNCTION_INFO_V1(rdmacc_tpcc_stock_level);
}

namespace {

constexpr int kLastOrders = 20;

int compare_items(const void* a, const void* b) {
  const int32 one = *static_cast<const int32*>(a), other = *static_cast<const int32*>(b);
  return one < other ? -1 : static_cast<int>(one > other);
}

int32 read_next_order(const RdmaccNativeCall* call, const Datum* key) {
  RdmaccNativeAccess access;
  RdmaccNativeRow row;
  rdmacc_native_open(&tpcc_district, call, &access);
  rdmacc_native_read_row(&access, key, &row);
  rdmacc_native_close(&access);
  return DatumGetInt32(row.values[kDistrictNextOrder]);
}

/* The items of the district's last orders, each once, palloc'ed. */
int32* read_items(const RdmaccNativeCall* call, int32 home, int32 district, int32 next,
                  size_t* count) {
  TpccOrder orders[kLastOrders];
  int order_count = 0;
  for (int32 number = Max(next - kLastOrders, 1); number < next; number++) {
    orders[order_count++] = {
        .warehouse = home, .district = district, .number = number, .customer = 0, .lines = 0};
  }
  RdmaccNativeAccess access;
  rdmacc_native_open(&tpcc_oorder, call, &access);
  tpcc_read_orders(&access, orders, order_count);
  rdmacc_native_close(&access);
  rdmacc_native_open(&tpcc_order_line, call, &access);
  size_t lines = 0;
  const RdmaccNativeRow* rows = tpcc_read_lines(&access, orders, order_count, &lines);
  rdmacc_native_close(&access);
  auto* items = static_cast<int32*>(palloc(sizeof(int32) * Max(lines, 1)));
  for (size_t i = 0; i < lines; i++) items[i] = DatumGetInt32(rows[i].values[kLineItem]);
  qsort(items, lines, sizeof(int32), compare_items);
  *count = qunique(items, lines, sizeof(int32), compare_items);
  return items;
}

}  // namespace

Datum rdmacc_tpcc_stock_level(PG_FUNCTION_ARGS) {
  const Datum district_key[] = {PG_GETARG_DATUM(0), PG_GETARG_DATUM(1)};
  const RdmaccNativeCall call = rdmacc_native_call(ACL_SELECT);
  const int32 next = read_next_order(&call, district_key);
  size_t count = 0;
  const int32* items = read_items(&call, PG_GETARG_INT32(0), PG_GETARG_INT32(1), next, &count);
  auto* keys = static_cast<Datum*>(palloc(sizeof(Datum) * 2 * Max(count, 1)));
  auto* rows = static_cast<RdmaccNativeRow*>(palloc(sizeof(RdmaccNativeRow) * Max(count, 1)));
  for (size_t i = 0; i < count; i++) {
    keys[2 * i] = PG_GETARG_DATUM(0);
    keys[2 * i + 1] = Int32GetDatum(items[i]);
  }
  RdmaccNativeAccess access;
  rdmacc_native_open(&tpcc_stock, &call, &access);
  rdmacc_native_read_rows(&access, keys, count, rows);
  rdmacc_native_close(&access);
  int32 low = 0;
  for (size_t i = 0; i < count; i++) {
    if (!rows[i].found) continue;
    if (DatumGetInt32(rows[i].values[kStockQuantity]) < PG_GETARG_INT32(2)) low++;
  }
  PG_RETURN_INT32(low);
}
