/* TATP's transactions that write, each as one call that reads and writes the engine itself, but for
 * the look-up of a subscriber by number, which is a statement; what they do is what the functions
 * in script/4_tatp.sql whose names end in _sql do. */
#include "pg_rdmacc/workload/native_rows.h"
#include "pg_rdmacc/workload/tatp_tables.h"

extern "C" {
#include "fmgr.h"

PGDLLEXPORT Datum rdmacc_tatp_update_subscriber_data(PG_FUNCTION_ARGS);
PG_FUNCTION_INFO_V1(rdmacc_tatp_update_subscriber_data);
PGDLLEXPORT Datum rdmacc_tatp_update_location(PG_FUNCTION_ARGS);
PG_FUNCTION_INFO_V1(rdmacc_tatp_update_location);
PGDLLEXPORT Datum rdmacc_tatp_insert_call_forwarding(PG_FUNCTION_ARGS);
PG_FUNCTION_INFO_V1(rdmacc_tatp_insert_call_forwarding);
PGDLLEXPORT Datum rdmacc_tatp_delete_call_forwarding(PG_FUNCTION_ARGS);
PG_FUNCTION_INFO_V1(rdmacc_tatp_delete_call_forwarding);
}

namespace {

constexpr AclMode kUpdates = ACL_SELECT | ACL_UPDATE;

struct Change {
  int column;
  int32 value;
  bool is_smallint;
};

/* False where there is no row of the key. */
bool update(RdmaccNativeTable* table, const RdmaccNativeCall* call, const Datum* key,
            const Change& change) {
  RdmaccNativeAccess access;
  RdmaccNativeRow row;
  rdmacc_native_open(table, call, &access);
  rdmacc_native_read_rows(&access, key, 1, &row);
  if (row.found) {
    row.values[change.column] =
        change.is_smallint ? tatp_smallint(change.value) : Int32GetDatum(change.value);
    rdmacc_native_update(&access, row.key, row.values);
  }
  rdmacc_native_close(&access);
  return row.found;
}

bool has_facility(const RdmaccNativeCall* call, const Datum* key) {
  const RdmaccNativeCall reads = rdmacc_native_call_for(call, ACL_SELECT);
  RdmaccNativeAccess access;
  RdmaccNativeRow row;
  rdmacc_native_open(&tatp_special_facility, &reads, &access);
  rdmacc_native_read_rows(&access, key, 1, &row);
  rdmacc_native_close(&access);
  return row.found;
}

int32 subscriber_of(Datum number) {
  int32 subscriber = 0;
  if (tatp_find_subscriber(number, &subscriber)) return subscriber;
  ereport(ERROR, (errcode(ERRCODE_NO_DATA_FOUND), errmsg("no subscriber has the number")));
}

}  // namespace

Datum rdmacc_tatp_update_subscriber_data(PG_FUNCTION_ARGS) {
  const Datum key[] = {PG_GETARG_DATUM(0), tatp_smallint(PG_GETARG_INT32(1))};
  const Change bit = {.column = kSubscriberBit1, .value = PG_GETARG_INT32(2), .is_smallint = true};
  const Change data = {.column = kFacilityDataA, .value = PG_GETARG_INT32(3), .is_smallint = true};
  const RdmaccNativeCall call = rdmacc_native_call(kUpdates);
  if (!update(&tatp_special_facility, &call, key, data)) PG_RETURN_BOOL(false);
  update(&tatp_subscriber, &call, key, bit);
  PG_RETURN_BOOL(true);
}

Datum rdmacc_tatp_update_location(PG_FUNCTION_ARGS) {
  int32 subscriber = 0;
  if (!tatp_find_subscriber(PG_GETARG_DATUM(0), &subscriber)) PG_RETURN_BOOL(false);
  const Datum key = Int32GetDatum(subscriber);
  const RdmaccNativeCall call = rdmacc_native_call(kUpdates);
  PG_RETURN_BOOL(update(
      &tatp_subscriber, &call, &key,
      {.column = kSubscriberVlrLocation, .value = PG_GETARG_INT32(1), .is_smallint = false}));
}

Datum rdmacc_tatp_insert_call_forwarding(PG_FUNCTION_ARGS) {
  const int32 subscriber = subscriber_of(PG_GETARG_DATUM(0));
  Datum values[kForwardingColumns] = {};
  values[kForwardingSubscriber] = Int32GetDatum(subscriber);
  values[kForwardingFacility] = tatp_smallint(PG_GETARG_INT32(1));
  const RdmaccNativeCall call = rdmacc_native_call(ACL_SELECT | ACL_INSERT);
  if (!has_facility(&call, values)) PG_RETURN_BOOL(false);
  values[kForwardingStart] = tatp_smallint(PG_GETARG_INT32(2));
  values[kForwardingEnd] = tatp_smallint(PG_GETARG_INT32(3));
  const RdmaccNativeCall inserts = rdmacc_native_call_for(&call, ACL_INSERT);
  RdmaccNativeAccess access;
  RdmaccNativeRow row;
  rdmacc_native_open(&tatp_call_forwarding, &inserts, &access);
  values[kForwardingNumber] =
      rdmacc_native_assigned(&access, kForwardingNumber, PG_GETARG_DATUM(4));
  rdmacc_native_read_rows(&access, values, 1, &row);
  if (!row.found) rdmacc_native_insert_absent(&access, values);
  rdmacc_native_close(&access);
  PG_RETURN_BOOL(!row.found);
}

Datum rdmacc_tatp_delete_call_forwarding(PG_FUNCTION_ARGS) {
  const int32 subscriber = subscriber_of(PG_GETARG_DATUM(0));
  const Datum key[] = {Int32GetDatum(subscriber), tatp_smallint(PG_GETARG_INT32(1)),
                       tatp_smallint(PG_GETARG_INT32(2))};
  const RdmaccNativeCall call = rdmacc_native_call(ACL_SELECT | ACL_DELETE);
  RdmaccNativeAccess access;
  RdmaccNativeRow row;
  rdmacc_native_open(&tatp_call_forwarding, &call, &access);
  rdmacc_native_read_rows(&access, key, 1, &row);
  if (row.found) rdmacc_native_delete(&access, row.key);
  rdmacc_native_close(&access);
  PG_RETURN_BOOL(row.found);
}
