/* TATP's transactions that read, each as one call that reads the engine itself; what they do is
 * what the functions in script/4_tatp.sql whose names end in _sql do. */
#include "pg_rdmacc/workload/native_rows.h"
#include "pg_rdmacc/workload/tatp_tables.h"

extern "C" {
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

PGDLLEXPORT Datum rdmacc_tatp_get_subscriber_data(PG_FUNCTION_ARGS);
PG_FUNCTION_INFO_V1(rdmacc_tatp_get_subscriber_data);
PGDLLEXPORT Datum rdmacc_tatp_get_new_destination(PG_FUNCTION_ARGS);
PG_FUNCTION_INFO_V1(rdmacc_tatp_get_new_destination);
PGDLLEXPORT Datum rdmacc_tatp_get_access_data(PG_FUNCTION_ARGS);
PG_FUNCTION_INFO_V1(rdmacc_tatp_get_access_data);
}

namespace {

/* data1 to data4. */
TupleDesc access_data(void) {
  static TupleDesc made;
  if (made != nullptr) return made;
  const MemoryContext previous = MemoryContextSwitchTo(TopMemoryContext);
  TupleDesc descriptor = CreateTemplateTupleDesc(kAccessColumns - kAccessData1);
  TupleDescInitEntry(descriptor, 1, "data1", INT2OID, -1, 0);
  TupleDescInitEntry(descriptor, 2, "data2", INT2OID, -1, 0);
  TupleDescInitEntry(descriptor, 3, "data3", VARCHAROID, -1, 0);
  TupleDescInitEntry(descriptor, 4, "data4", VARCHAROID, -1, 0);
  made = BlessTupleDesc(descriptor);
  MemoryContextSwitchTo(previous);
  return made;
}

bool is_active(const RdmaccNativeCall* call, const Datum* key) {
  RdmaccNativeAccess access;
  RdmaccNativeRow row;
  rdmacc_native_open(&tatp_special_facility, call, &access);
  rdmacc_native_read_rows(&access, key, 1, &row);
  rdmacc_native_close(&access);
  return row.found && DatumGetInt16(row.values[kFacilityIsActive]) == 1;
}

}  // namespace

Datum rdmacc_tatp_get_subscriber_data(PG_FUNCTION_ARGS) {
  static FmgrInfo output;
  const Datum key = PG_GETARG_DATUM(0);
  const RdmaccNativeCall call = rdmacc_native_call(ACL_SELECT);
  RdmaccNativeAccess access;
  RdmaccNativeRow row;
  rdmacc_native_open(&tatp_subscriber, &call, &access);
  rdmacc_native_read_row(&access, &key, &row);
  const Datum as_text = rdmacc_native_text(RelationGetDescr(access.relation), row.values, &output);
  rdmacc_native_close(&access);
  return as_text;
}

Datum rdmacc_tatp_get_access_data(PG_FUNCTION_ARGS) {
  static FmgrInfo output;
  const Datum key[] = {PG_GETARG_DATUM(0), tatp_smallint(PG_GETARG_INT32(1))};
  const RdmaccNativeCall call = rdmacc_native_call(ACL_SELECT);
  RdmaccNativeAccess access;
  RdmaccNativeRow row;
  rdmacc_native_open(&tatp_access_info, &call, &access);
  rdmacc_native_read_rows(&access, key, 1, &row);
  rdmacc_native_close(&access);
  if (!row.found) PG_RETURN_NULL();
  return rdmacc_native_text(access_data(), row.values + kAccessData1, &output);
}

Datum rdmacc_tatp_get_new_destination(PG_FUNCTION_ARGS) {
  const Datum subscriber = PG_GETARG_DATUM(0);
  const Datum facility = tatp_smallint(PG_GETARG_INT32(1));
  const int32 starts = DatumGetInt16(tatp_smallint(PG_GETARG_INT32(2)));
  const Datum key[] = {subscriber, facility};
  const RdmaccNativeCall call = rdmacc_native_call(ACL_SELECT);
  if (!is_active(&call, key) || starts < 0) PG_RETURN_NULL();
  const auto count = static_cast<size_t>(starts / kForwardingHours + 1);
  auto* keys = static_cast<Datum*>(palloc(3 * count * sizeof(Datum)));
  auto* rows = static_cast<RdmaccNativeRow*>(palloc(count * sizeof(RdmaccNativeRow)));
  for (size_t i = 0; i < count; i++) {
    keys[3 * i] = subscriber;
    keys[3 * i + 1] = facility;
    keys[3 * i + 2] = Int16GetDatum(static_cast<int16>(i * kForwardingHours));
  }
  RdmaccNativeAccess access;
  rdmacc_native_open(&tatp_call_forwarding, &call, &access);
  rdmacc_native_read_rows(&access, keys, count, rows);
  rdmacc_native_close(&access);
  for (size_t i = 0; i < count; i++) {
    if (!rows[i].found) continue;
    if (DatumGetInt16(rows[i].values[kForwardingEnd]) <= PG_GETARG_INT32(3)) continue;
    return rows[i].values[kForwardingNumber];
  }
  PG_RETURN_NULL();
}
