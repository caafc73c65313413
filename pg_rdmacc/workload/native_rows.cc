#include "pg_rdmacc/workload/native_rows.h"

#include "pg_rdmacc/codec/row_codec.h"
#include "pg_rdmacc/server/error.h"
#include "pg_rdmacc/table/modify.h"
#include "pg_rdmacc/xact/exported_snapshot.h"
#include "pg_rdmacc/xact/xact.h"

extern "C" {
#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "executor/tuptable.h"
#include "funcapi.h"
#include "pgstat.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"
}

namespace {

const char* name_of(const RdmaccNativeAccess* access) {
  return RelationGetRelationName(access->relation);
}

/* A virtual slot with the values. */
TupleTableSlot* slot_of(const RdmaccNativeAccess* access, const Datum* values, const bool* nulls) {
  TupleDesc descriptor = RelationGetDescr(access->relation);
  const auto count = static_cast<size_t>(descriptor->natts);
  TupleTableSlot* slot = MakeSingleTupleTableSlot(descriptor, &TTSOpsVirtual);
  memcpy(slot->tts_values, values, sizeof(Datum) * count);
  if (nulls != nullptr) {
    memcpy(slot->tts_isnull, nulls, count);
  } else {
    memset(slot->tts_isnull, 0, count);
  }
  return ExecStoreVirtualTuple(slot);
}

RdmaccHandle handle_of(const RdmaccNativeAccess* access, BridgeBytes key) {
  return {.relation = RelationGetRelid(access->relation),
          .table = access->table.id,
          .visible_before = access->command,
          .key = key,
          .row = {}};
}

/* Each in memory of its own size: a call may have a hundred. */
void make_keys(const RdmaccNativeAccess* access, const Datum* values, size_t count,
               BridgeBytes* keys) {
  const RdmaccKeyLayout* layout = &access->table.key;
  CHECK(layout->number != 0);
  StringInfoData key;
  initStringInfo(&key);
  for (size_t k = 0; k < count; k++) {
    resetStringInfo(&key);
    for (int i = 0; i < layout->column_count; i++) {
      rdmacc_append_key_column(layout, i, layout->columns[i].type, *values++, &key);
    }
    auto* data = static_cast<char*>(palloc(static_cast<size_t>(key.len)));
    memcpy(data, key.data, static_cast<size_t>(key.len));
    keys[k] = {data, static_cast<size_t>(key.len)};
  }
  pfree(key.data);
}

void check_nulls(const RdmaccNativeAccess* access, const bool* nulls) {
  TupleDesc descriptor = RelationGetDescr(access->relation);
  for (int i = 0; i < descriptor->natts; i++) {
    const FormData_pg_attribute* attribute = TupleDescAttr(descriptor, i);
    if (!nulls[i] || !attribute->attnotnull) continue;
    ereport(ERROR, (errcode(ERRCODE_NOT_NULL_VIOLATION),
                    errmsg("null value in column \"%s\" of relation \"%s\" violates not-null "
                           "constraint",
                           NameStr(attribute->attname), name_of(access))));
  }
}

}  // namespace

BridgeBytes rdmacc_native_key(const RdmaccNativeAccess* access, const Datum* values) {
  BridgeBytes key;
  make_keys(access, values, 1, &key);
  return key;
}

void rdmacc_native_read(const RdmaccNativeAccess* access, const BridgeBytes* keys, size_t count,
                        BridgeRow* rows) {
  rdmacc_enter();
  rdmacc_check_reads_by_key();
  bridge_start_get_many(access->table.id, keys, count, access->command, false, rows);
  rdmacc_pump();
  rdmacc_check("could not look up a key", name_of(access));
  pgstat_count_heap_fetch(access->relation);
}

void rdmacc_native_values(const RdmaccNativeAccess* access, const BridgeRow* row, Datum* values) {
  CHECK(row->found);
  bool nulls[RDMACC_NATIVE_ATTRIBUTES_MAX];
  TupleDesc descriptor = RelationGetDescr(access->relation);
  CHECK(descriptor->natts <= RDMACC_NATIVE_ATTRIBUTES_MAX);
  heap_deform_tuple(rdmacc_row_decode(row->row), descriptor, values, nulls);
  for (int i = 0; i < descriptor->natts; i++) {
    if (!nulls[i]) continue;
    values[i] = 0;
    if (i + 1 == access->nullable_attribute) continue;
    ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
                    errmsg("column \"%s\" of table \"%s\" has a null value",
                           NameStr(TupleDescAttr(descriptor, i)->attname), name_of(access))));
  }
}

void rdmacc_native_read_rows(const RdmaccNativeAccess* access, const Datum* keys, size_t count,
                             RdmaccNativeRow* rows) {
  if (count == 0) return;
  auto* of_rows = static_cast<BridgeBytes*>(palloc(count * sizeof(BridgeBytes)));
  auto* read = static_cast<BridgeRow*>(palloc0(count * sizeof(BridgeRow)));
  make_keys(access, keys, count, of_rows);
  rdmacc_native_read(access, of_rows, count, read);
  for (size_t i = 0; i < count; i++) {
    rows[i].key = of_rows[i];
    rows[i].found = read[i].found;
    if (read[i].found) rdmacc_native_values(access, &read[i], rows[i].values);
  }
}

void rdmacc_native_read_row(const RdmaccNativeAccess* access, const Datum* key,
                            RdmaccNativeRow* row) {
  rdmacc_native_read_rows(access, key, 1, row);
  if (!row->found) rdmacc_native_lacks_row(access);
}

void rdmacc_native_lacks_row(const RdmaccNativeAccess* access) {
  ereport(ERROR, (errcode(ERRCODE_NO_DATA_FOUND),
                  errmsg("table \"%s\" lacks a row that the transaction is of", name_of(access))));
}

Datum rdmacc_native_text(TupleDesc descriptor, const Datum* values, FmgrInfo* output) {
  if (!OidIsValid(output->fn_oid)) fmgr_info_cxt(F_RECORD_OUT, output, TopMemoryContext);
  bool nulls[RDMACC_NATIVE_ATTRIBUTES_MAX] = {};
  HeapTuple tuple = heap_form_tuple(descriptor, const_cast<Datum*>(values), nulls);
  return CStringGetTextDatum(OutputFunctionCall(output, HeapTupleGetDatum(tuple)));
}

Datum rdmacc_native_assigned(const RdmaccNativeAccess* access, int column, Datum value) {
  const FormData_pg_attribute* attribute =
      TupleDescAttr(RelationGetDescr(access->relation), column);
  const Datum modifier = Int32GetDatum(attribute->atttypmod);
  if (attribute->atttypmod < 0) return value;
  switch (attribute->atttypid) {
    case NUMERICOID:
      return DirectFunctionCall2(numeric, value, modifier);
    case VARCHAROID:
      return DirectFunctionCall3(varchar, value, modifier, BoolGetDatum(false));
    case BPCHAROID:
      return DirectFunctionCall3(bpchar, value, modifier, BoolGetDatum(false));
    default:
      return value;
  }
}

void rdmacc_native_update(const RdmaccNativeAccess* access, BridgeBytes key, const Datum* values) {
  const RdmaccHandle handle = handle_of(access, key);
  TupleTableSlot* slot = slot_of(access, values, nullptr);
  rdmacc_rewrite_row(access->relation, &handle, slot, access->command);
  ExecDropSingleTupleTableSlot(slot);
  pgstat_count_heap_update(access->relation, false);
}

void rdmacc_native_insert(const RdmaccNativeAccess* access, const Datum* values,
                          const bool* nulls) {
  if (nulls != nullptr) check_nulls(access, nulls);
  TupleTableSlot* slot = slot_of(access, values, nulls);
  rdmacc_tuple_insert(access->relation, slot, access->command, 0, nullptr);
  ExecDropSingleTupleTableSlot(slot);
}

void rdmacc_native_insert_absent(const RdmaccNativeAccess* access, const Datum* values) {
  TupleTableSlot* slot = slot_of(access, values, nullptr);
  rdmacc_insert_absent_row(access->relation, slot, access->command);
  ExecDropSingleTupleTableSlot(slot);
}

void rdmacc_native_delete(const RdmaccNativeAccess* access, BridgeBytes key) {
  const RdmaccHandle handle = handle_of(access, key);
  ItemPointerData tid;
  rdmacc_handle_assign(rdmacc_handle_write_stream(false), &handle, &tid);
  TM_FailureData failure;
  const TM_Result result = rdmacc_tuple_delete(access->relation, &tid, access->command, nullptr,
                                               nullptr, true, &failure, false);
  CHECK(result == TM_Ok); /* conflicts are errors, and the call has not written the row before */
}
