/* YCSB's operations, each as one call that reads and writes the engine itself; what they do is what
 * the functions in script/3_ycsb.sql whose names end in _sql do. */
#include "pg_rdmacc/workload/native_rows.h"

extern "C" {
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"

PGDLLEXPORT Datum rdmacc_ycsb_read(PG_FUNCTION_ARGS);
PG_FUNCTION_INFO_V1(rdmacc_ycsb_read);
PGDLLEXPORT Datum rdmacc_ycsb_update(PG_FUNCTION_ARGS);
PG_FUNCTION_INFO_V1(rdmacc_ycsb_update);
PGDLLEXPORT Datum rdmacc_ycsb_read_modify_write(PG_FUNCTION_ARGS);
PG_FUNCTION_INFO_V1(rdmacc_ycsb_read_modify_write);
PGDLLEXPORT Datum rdmacc_ycsb_insert(PG_FUNCTION_ARGS);
PG_FUNCTION_INFO_V1(rdmacc_ycsb_insert);
PGDLLEXPORT Datum rdmacc_ycsb_scan(PG_FUNCTION_ARGS);
PG_FUNCTION_INFO_V1(rdmacc_ycsb_scan);
PGDLLEXPORT Datum rdmacc_ycsb_transaction(PG_FUNCTION_ARGS);
PG_FUNCTION_INFO_V1(rdmacc_ycsb_transaction);
}

namespace {

constexpr int kFields = 10, kUpdates = kFields + 1, kColumnCount = kFields + 2;
constexpr int kFieldBytesMin = 25; /* as ycsb_create() asks for: the numbers fit */
constexpr int kFieldBytesMax = 100000;
constexpr int kKeysMax = 4096; /* of one call, which is one round */

constexpr RdmaccNativeColumn kColumns[] = {
    {"ycsb_key", INT4OID, 1}, {"field", TEXTOID, kFields}, {"updates", INT4OID, 1}};
constexpr RdmaccNativeShape kShape = {.table = "usertable",
                                      .procedure = "ycsb_create",
                                      .columns = kColumns,
                                      .column_count = lengthof(kColumns),
                                      .key_columns = 1,
                                      .unique_attribute = 0};

RdmaccNativeTable usertable = {
    .shape = &kShape, .relation = InvalidOid, .epoch = 0, .path = nullptr};

/* As rdmacc.ycsb_value(). */
Datum make_value(int32 record, int field, int32 version, int bytes) {
  constexpr char kLetters[] = "abcdefghijklmnopqrstuvwxyz";
  char numbers[64];
  const int used =
      Min(pg_snprintf(numbers, sizeof(numbers), "%d.%d.%d.", record, field, version), bytes);
  auto* value = static_cast<text*>(palloc(static_cast<Size>(VARHDRSZ + bytes)));
  SET_VARSIZE(value, VARHDRSZ + bytes);
  char* const at = VARDATA(value);
  memcpy(at, numbers, static_cast<size_t>(used));
  for (int i = used; i < bytes; i++) at[i] = kLetters[(i - used) % 26];
  return PointerGetDatum(value);
}

int bytes_of(Datum value) { return static_cast<int>(VARSIZE_ANY_EXHDR(DatumGetPointer(value))); }

Datum fields_of(Datum* values) {
  return PointerGetDatum(construct_array(values + 1, kFields, TEXTOID, -1, false, TYPALIGN_INT));
}

void check_range(const char* what, int value, int least, int most) {
  if (value >= least && value <= most) return;
  ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                  errmsg("%s must be between %d and %d", what, least, most)));
}

/* False when there is no such record. */
bool read_record(const RdmaccNativeAccess* access, int32 record, BridgeBytes* key, Datum* values) {
  BridgeRow row = {};
  const Datum number = Int32GetDatum(record);
  *key = rdmacc_native_key(access, &number);
  rdmacc_native_read(access, key, 1, &row);
  if (row.found) rdmacc_native_values(access, &row, values);
  return row.found;
}

void write_field(const RdmaccNativeAccess* access, BridgeBytes key, const Datum* values,
                 int field) {
  Datum written[kColumnCount];
  memcpy(written, values, sizeof(written));
  written[kUpdates] = DirectFunctionCall1(int4inc, values[kUpdates]);
  const int32 version = DatumGetInt32(written[kUpdates]);
  written[field] = make_value(DatumGetInt32(values[0]), field, version, bytes_of(values[field]));
  rdmacc_native_update(access, key, written);
}

struct Records {
  BridgeBytes* keys;
  BridgeRow* rows;
};

Records read_records(const RdmaccNativeAccess* access, const int32* records, int count) {
  const auto size = static_cast<size_t>(Max(count, 1));
  Records read = {.keys = static_cast<BridgeBytes*>(palloc(size * sizeof(BridgeBytes))),
                  .rows = static_cast<BridgeRow*>(palloc0(size * sizeof(BridgeRow)))};
  for (int i = 0; i < count; i++) {
    const Datum number = Int32GetDatum(records[i]);
    read.keys[i] = rdmacc_native_key(access, &number);
  }
  if (count > 0) rdmacc_native_read(access, read.keys, static_cast<size_t>(count), read.rows);
  return read;
}

int32 count_found(const Records* read, int count) {
  int32 found = 0;
  for (int i = 0; i < count; i++) found += read->rows[i].found;
  return found;
}

const int32* numbers_of(ArrayType* array, int* count) {
  if (ARR_NDIM(array) > 1 || array_contains_nulls(array)) {
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("records must be a list of numbers without nulls")));
  }
  *count = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));
  check_range("the number of records", *count, 0, kKeysMax);
  return reinterpret_cast<const int32*>(ARR_DATA_PTR(array));
}

void check_distinct(const int32* records, int count) {
  for (int i = 1; i < count; i++) {
    for (int before = 0; before < i; before++) {
      if (records[before] != records[i]) continue;
      ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                      errmsg("record %d is to be written twice", records[i])));
    }
  }
}

}  // namespace

Datum rdmacc_ycsb_read(PG_FUNCTION_ARGS) {
  const RdmaccNativeCall call = rdmacc_native_call(ACL_SELECT);
  RdmaccNativeAccess access;
  rdmacc_native_open(&usertable, &call, &access);
  BridgeBytes key;
  Datum values[kColumnCount];
  const bool found = read_record(&access, PG_GETARG_INT32(0), &key, values);
  rdmacc_native_close(&access);
  if (!found) PG_RETURN_NULL();
  return fields_of(values);
}

Datum rdmacc_ycsb_update(PG_FUNCTION_ARGS) {
  check_range("field", PG_GETARG_INT32(1), 1, kFields);
  const RdmaccNativeCall call = rdmacc_native_call(ACL_SELECT | ACL_UPDATE);
  RdmaccNativeAccess access;
  rdmacc_native_open(&usertable, &call, &access);
  BridgeBytes key;
  Datum values[kColumnCount];
  const bool found = read_record(&access, PG_GETARG_INT32(0), &key, values);
  if (found) write_field(&access, key, values, PG_GETARG_INT32(1));
  rdmacc_native_close(&access);
  PG_RETURN_BOOL(found);
}

Datum rdmacc_ycsb_read_modify_write(PG_FUNCTION_ARGS) {
  check_range("field", PG_GETARG_INT32(1), 1, kFields);
  const RdmaccNativeCall call = rdmacc_native_call(ACL_SELECT | ACL_UPDATE);
  RdmaccNativeAccess access;
  rdmacc_native_open(&usertable, &call, &access);
  BridgeBytes key;
  Datum values[kColumnCount];
  const bool found = read_record(&access, PG_GETARG_INT32(0), &key, values);
  if (found) write_field(&access, key, values, PG_GETARG_INT32(1));
  rdmacc_native_close(&access);
  if (!found) PG_RETURN_NULL();
  return fields_of(values);
}

Datum rdmacc_ycsb_insert(PG_FUNCTION_ARGS) {
  const int32 record = PG_GETARG_INT32(0);
  check_range("field_bytes", PG_GETARG_INT32(1), kFieldBytesMin, kFieldBytesMax);
  const RdmaccNativeCall call = rdmacc_native_call(ACL_INSERT);
  RdmaccNativeAccess access;
  rdmacc_native_open(&usertable, &call, &access);
  Datum values[kColumnCount];
  values[0] = Int32GetDatum(record);
  values[kUpdates] = Int32GetDatum(0);
  for (int field = 1; field <= kFields; field++) {
    values[field] = make_value(record, field, 0, PG_GETARG_INT32(1));
  }
  rdmacc_native_insert(&access, values, nullptr);
  rdmacc_native_close(&access);
  PG_RETURN_VOID();
}

Datum rdmacc_ycsb_scan(PG_FUNCTION_ARGS) {
  const int32 first = PG_GETARG_INT32(0);
  const int count = PG_GETARG_INT32(1);
  check_range("count", count, 0, kKeysMax);
  check_range("first", first, PG_INT32_MIN, PG_INT32_MAX - kKeysMax);
  const RdmaccNativeCall call = rdmacc_native_call(ACL_SELECT);
  RdmaccNativeAccess access;
  rdmacc_native_open(&usertable, &call, &access);
  auto* records = static_cast<int32*>(palloc0(sizeof(int32) * static_cast<Size>(Max(count, 1))));
  for (int i = 0; i < count; i++) records[i] = first + i;
  const Records read = read_records(&access, records, count);
  rdmacc_native_close(&access);
  PG_RETURN_INT32(count_found(&read, count));
}

Datum rdmacc_ycsb_transaction(PG_FUNCTION_ARGS) {
  int count = 0;
  const int32* records = numbers_of(PG_GETARG_ARRAYTYPE_P(0), &count);
  const int writes = PG_GETARG_INT32(1);
  check_range("writes", writes, 0, count);
  check_distinct(records, writes);
  const RdmaccNativeCall call =
      rdmacc_native_call(writes > 0 ? ACL_SELECT | ACL_UPDATE : ACL_SELECT);
  RdmaccNativeAccess access;
  rdmacc_native_open(&usertable, &call, &access);
  const Records read = read_records(&access, records, count);
  for (int i = 0; i < writes; i++) {
    if (!read.rows[i].found) continue;
    Datum values[kColumnCount];
    rdmacc_native_values(&access, &read.rows[i], values);
    const int field = 1 + (records[i] % kFields + kFields) % kFields;
    write_field(&access, read.keys[i], values, field);
  }
  rdmacc_native_close(&access);
  PG_RETURN_INT32(count_found(&read, count));
}
