/* TPC-E's market-feed as one call that reads and writes the engine itself; what it does is what
 * rdmacc.tpce_market_feed_sql() in script/8_tpce.sql does. */
#include "pg_rdmacc/workload/native_rows.h"
#include "pg_rdmacc/workload/tpce_tables.h"

extern "C" {
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "common/int.h"
#include "fmgr.h"
#include "utils/array.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

PGDLLEXPORT Datum rdmacc_tpce_market_feed(PG_FUNCTION_ARGS);
PG_FUNCTION_INFO_V1(rdmacc_tpce_market_feed);
}

namespace {

constexpr int kEntriesMax = 4096; /* of one call, which is one round */

[[noreturn]] void refuse(void) {
  ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                  errmsg("a market-feed has a price and a quantity of each security, and each of "
                         "these once"),
                  errhint("It has at most %d.", kEntriesMax)));
}

Datum* elements_of(ArrayType* array, int* count) {
  Datum* elements = nullptr;
  const bool from_one = ARR_NDIM(array) == 0 || (ARR_NDIM(array) == 1 && ARR_LBOUND(array)[0] == 1);
  if (!from_one || array_contains_nulls(array)) refuse();
  int16 length = 0;
  bool by_value = false;
  char align = 0;
  get_typlenbyvalalign(ARR_ELEMTYPE(array), &length, &by_value, &align);
  deconstruct_array(array, ARR_ELEMTYPE(array), length, by_value, align, &elements, nullptr, count);
  if (*count > kEntriesMax) refuse();
  return elements;
}

bool same_key(const RdmaccNativeRow* a, const RdmaccNativeRow* b) {
  return a->key.size == b->key.size && memcmp(a->key.data, b->key.data, a->key.size) == 0;
}

/* Where each has been found: before anything is written. */
void check_rows(const RdmaccNativeAccess* access, const RdmaccNativeRow* rows, int count) {
  for (int i = 0; i < count; i++) {
    if (!rows[i].found) rdmacc_native_lacks_row(access);
    for (int j = 0; j < i; j++) {
      if (same_key(&rows[i], &rows[j])) refuse();
    }
  }
}

}  // namespace

Datum rdmacc_tpce_market_feed(PG_FUNCTION_ARGS) {
  int count = 0, prices_count = 0, quantities_count = 0;
  const Datum* symbols = elements_of(PG_GETARG_ARRAYTYPE_P(0), &count);
  const Datum* prices = elements_of(PG_GETARG_ARRAYTYPE_P(1), &prices_count);
  const Datum* quantities = elements_of(PG_GETARG_ARRAYTYPE_P(2), &quantities_count);
  if (prices_count != count || quantities_count != count) refuse();
  auto* rows =
      static_cast<RdmaccNativeRow*>(palloc(sizeof(RdmaccNativeRow) * static_cast<size_t>(count)));
  const RdmaccNativeCall call = rdmacc_native_call(ACL_SELECT | ACL_UPDATE);
  RdmaccNativeAccess access;
  rdmacc_native_open(&tpce_last_trade, &call, &access);
  rdmacc_native_read_rows(&access, symbols, static_cast<size_t>(count), rows);
  check_rows(&access, rows, count);
  for (int i = 0; i < count; i++) {
    Datum* values = rows[i].values;
    int64 volume = 0;
    if (pg_add_s64_overflow(DatumGetInt64(values[kLastTradeVolume]), DatumGetInt32(quantities[i]),
                            &volume)) {
      ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE), errmsg("bigint out of range")));
    }
    values[kLastTradePrice] = rdmacc_native_assigned(&access, kLastTradePrice, prices[i]);
    values[kLastTradeVolume] = Int64GetDatum(volume);
    values[kLastTradeDate] = TimestampTzGetDatum(GetCurrentTransactionStartTimestamp());
    rdmacc_native_update(&access, rows[i].key, values);
  }
  rdmacc_native_close(&access);
  PG_RETURN_INT32(count);
}
