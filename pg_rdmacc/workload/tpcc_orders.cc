#include "pg_rdmacc/workload/tpcc_orders.h"

#include "pg_rdmacc/workload/tpcc_tables.h"

namespace {

constexpr size_t kOrderKey = 3, kLineKey = 4;

RdmaccNativeRow* read_all(const RdmaccNativeAccess* access, const Datum* keys, size_t count) {
  auto* rows = static_cast<RdmaccNativeRow*>(palloc(sizeof(RdmaccNativeRow) * Max(count, 1)));
  rdmacc_native_read_rows(access, keys, count, rows);
  for (size_t i = 0; i < count; i++) {
    if (!rows[i].found) rdmacc_native_lacks_row(access);
  }
  return rows;
}

Datum* make_keys(size_t columns, size_t count) {
  return static_cast<Datum*>(palloc(sizeof(Datum) * columns * Max(count, 1)));
}

void put_order(Datum* key, const TpccOrder* order) {
  key[0] = Int32GetDatum(order->warehouse);
  key[1] = Int32GetDatum(order->district);
  key[2] = Int32GetDatum(order->number);
}

}  // namespace

RdmaccNativeRow* tpcc_read_orders(const RdmaccNativeAccess* access, TpccOrder* orders, int count) {
  Datum* keys = make_keys(kOrderKey, static_cast<size_t>(count));
  for (int i = 0; i < count; i++) put_order(keys + static_cast<size_t>(i) * kOrderKey, &orders[i]);
  RdmaccNativeRow* rows = read_all(access, keys, static_cast<size_t>(count));
  for (int i = 0; i < count; i++) {
    orders[i].customer = DatumGetInt32(rows[i].values[kOrderCustomer]);
    orders[i].lines = Max(DatumGetInt32(rows[i].values[kOrderLines]), 0);
  }
  return rows;
}

RdmaccNativeRow* tpcc_read_lines(const RdmaccNativeAccess* access, const TpccOrder* orders,
                                 int count, size_t* lines) {
  *lines = 0;
  for (int i = 0; i < count; i++) *lines += static_cast<size_t>(orders[i].lines);
  Datum* const keys = make_keys(kLineKey, *lines);
  Datum* key = keys;
  for (int i = 0; i < count; i++) {
    for (int32 line = 1; line <= orders[i].lines; line++, key += kLineKey) {
      put_order(key, &orders[i]);
      key[kLineKey - 1] = Int32GetDatum(line);
    }
  }
  return read_all(access, keys, *lines);
}
