#include "pg_rdmacc/workload/native_table.h"

#include "pg_rdmacc/codec/row_codec.h"
#include "pg_rdmacc/index/index_write.h"
#include "pg_rdmacc/index/shadow_index.h"
#include "pg_rdmacc/relation/access_method.h"
#include "pg_rdmacc/server/error.h"
#include "pg_rdmacc/table/modify.h"
#include "pg_rdmacc/xact/exported_snapshot.h"
#include "pg_rdmacc/xact/xact.h"

extern "C" {
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "pgstat.h"
#include "storage/lmgr.h"
#include "tcop/utility.h"
#include "utils/acl.h"
#include "utils/memutils.h"
}

namespace {

[[noreturn]] void refuse(const RdmaccNativeTable* native, Relation relation, const char* why) {
  ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                  errmsg("table \"%s\" is not one that the engine's own path takes",
                         RelationGetRelationName(relation)),
                  errdetail("The table %s.", why),
                  errhint("Call the function of the same name that ends in _sql, or make the table "
                          "by rdmacc.%s().",
                          native->shape->procedure)));
}

/* What would have to run, or hold, for each row. */
const char* not_plain(Relation relation) {
  const FormData_pg_class* form = relation->rd_rel;
  if (form->relkind != RELKIND_RELATION || !rdmacc_is_ours(relation)) return "is no rdmacc table";
  if (form->relhastriggers) return "has triggers or foreign keys";
  if (form->relhasrules) return "has rules";
  if (form->relrowsecurity) return "has row security";
  if (form->relispartition || form->relhassubclass) return "is part of an inheritance tree";
  const TupleConstr* constraints = RelationGetDescr(relation)->constr;
  if (constraints == nullptr) return nullptr;
  if (constraints->num_check > 0) return "has check constraints";
  return constraints->has_generated_stored ? "has generated columns" : nullptr;
}

/* Uniqueness of an inserted row is asked for by the executor. */
bool has_unique_secondary_index(Relation relation) {
  bool found = false;
  List* indexes = RelationGetIndexList(relation);
  ListCell* cell;
  foreach (cell, indexes) {
    if (lfirst_oid(cell) == relation->rd_pkindex) continue;
    Relation index = RelationIdGetRelation(lfirst_oid(cell));
    found |= RelationIsValid(index) && index->rd_index->indisunique;
    if (RelationIsValid(index)) RelationClose(index);
  }
  list_free(indexes);
  return found;
}

bool is_column(const FormData_pg_attribute* attribute, const RdmaccNativeColumn* column,
               int number) {
  char name[NAMEDATALEN];
  strlcpy(name, column->name, sizeof(name));
  if (column->count > 1) pg_sprintf(name + strlen(name), "%d", number);
  return !attribute->attisdropped && attribute->atttypid == column->type &&
         strcmp(NameStr(attribute->attname), name) == 0;
}

bool has_columns(Relation relation, const RdmaccNativeShape* shape) {
  TupleDesc descriptor = RelationGetDescr(relation);
  int at = 0;
  for (int i = 0; i < shape->column_count; i++) {
    const RdmaccNativeColumn* column = &shape->columns[i];
    for (int number = 1; number <= column->count; number++, at++) {
      if (at >= descriptor->natts || !is_column(TupleDescAttr(descriptor, at), column, number)) {
        return false;
      }
    }
  }
  CHECK(at <= RDMACC_NATIVE_ATTRIBUTES_MAX);
  return at == descriptor->natts;
}

bool has_key(const RdmaccKeyLayout* layout, int key_columns) {
  if (layout->column_count != key_columns || layout->number == 0) return false;
  for (int i = 0; i < key_columns; i++) {
    if (layout->columns[i].attno != i + 1) return false;
  }
  return true;
}

void check_shape(const RdmaccNativeTable* native, Relation relation) {
  const char* why = not_plain(relation);
  if (why != nullptr) refuse(native, relation, why);
  if (!has_columns(relation, native->shape)) refuse(native, relation, "has other columns");
  RdmaccKeyLayout layout;
  rdmacc_catalog_layout(relation, &layout);
  if (!has_key(&layout, native->shape->key_columns)) {
    refuse(native, relation, "has another primary key");
  }
  if (has_unique_secondary_index(relation)) {
    refuse(native, relation, "has a unique index beside its primary key");
  }
}

bool is_known(const RdmaccNativeTable* native) {
  return native->epoch != 0 && native->epoch == rdmacc_index_epoch() &&
         OverrideSearchPathMatchesCurrent(native->path);
}

void look_up(RdmaccNativeTable* native, LOCKMODE mode) {
  const uint64 epoch = rdmacc_index_epoch();
  native->epoch = 0;
  RangeVar* name = makeRangeVar(nullptr, pstrdup(native->shape->table), -1);
  native->relation = RangeVarGetRelid(name, mode, true);
  if (!OidIsValid(native->relation)) {
    ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE),
                    errmsg("relation \"%s\" does not exist", native->shape->table),
                    errhint("CALL rdmacc.%s() makes the workload's tables in the first schema of "
                            "search_path.",
                            native->shape->procedure)));
  }
  Relation relation = table_open(native->relation, NoLock);
  check_shape(native, relation);
  table_close(relation, NoLock);
  if (native->path != nullptr) {
    list_free(native->path->schemas);
    pfree(native->path);
    native->path = nullptr;
  }
  native->path = GetOverrideSearchPath(TopMemoryContext);
  native->epoch = epoch; /* changes that came meanwhile are looked at by the next call */
}

void check_rights(Relation relation, AclMode wanted) {
  const Oid oid = RelationGetRelid(relation);
  if (pg_class_aclmask(oid, GetUserId(), wanted, ACLMASK_ALL) == wanted) return;
  aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_TABLE, RelationGetRelationName(relation));
}

/* A virtual slot with the values. */
TupleTableSlot* slot_of(const RdmaccNativeAccess* access, const Datum* values) {
  TupleDesc descriptor = RelationGetDescr(access->relation);
  TupleTableSlot* slot = MakeSingleTupleTableSlot(descriptor, &TTSOpsVirtual);
  memcpy(slot->tts_values, values, sizeof(Datum) * static_cast<size_t>(descriptor->natts));
  memset(slot->tts_isnull, 0, static_cast<size_t>(descriptor->natts));
  return ExecStoreVirtualTuple(slot);
}

}  // namespace

RdmaccNativeCall rdmacc_native_call(AclMode rights) {
  const bool writes = rights != ACL_SELECT;
  if (writes) {
    PreventCommandIfReadOnly("a transaction of a workload");
    rdmacc_await_leave_to_write();
  }
  CommandCounterIncrement();
  return {.rights = rights, .command = GetCurrentCommandId(writes)};
}

void rdmacc_native_open(RdmaccNativeTable* native, const RdmaccNativeCall* call,
                        RdmaccNativeAccess* access) {
  const bool writes = call->rights != ACL_SELECT;
  const LOCKMODE mode = writes ? RowExclusiveLock : AccessShareLock;
  if (is_known(native)) LockRelationOid(native->relation, mode);
  if (!is_known(native)) look_up(native, mode);
  access->relation = table_open(native->relation, NoLock);
  check_rights(access->relation, call->rights);
  if (writes) rdmacc_override_indexes(access->relation, rdmacc_table_to_write(access->relation));
  access->table = *rdmacc_table(access->relation);
  access->command = call->command;
  CHECK(access->table.key.number != 0);
}

void rdmacc_native_close(RdmaccNativeAccess* access) { table_close(access->relation, NoLock); }

BridgeBytes rdmacc_native_key(const RdmaccNativeAccess* access, Datum value) {
  StringInfoData key;
  initStringInfo(&key);
  rdmacc_append_key_column(&access->table.key, 0, access->table.key.columns[0].type, value, &key);
  return {key.data, static_cast<size_t>(key.len)};
}

void rdmacc_native_read(const RdmaccNativeAccess* access, const BridgeBytes* keys, size_t count,
                        BridgeRow* rows) {
  rdmacc_enter();
  rdmacc_check_reads_by_key();
  bridge_start_get_many(access->table.id, keys, count, access->command, rows);
  rdmacc_pump();
  rdmacc_check("could not look up a key", RelationGetRelationName(access->relation));
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
    ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
                    errmsg("column \"%s\" of table \"%s\" has a null value",
                           NameStr(TupleDescAttr(descriptor, i)->attname),
                           RelationGetRelationName(access->relation))));
  }
}

void rdmacc_native_update(const RdmaccNativeAccess* access, BridgeBytes key, const Datum* values) {
  const RdmaccHandle handle = {.relation = RelationGetRelid(access->relation),
                               .table = access->table.id,
                               .visible_before = access->command,
                               .key = key,
                               .row = {}};
  TupleTableSlot* slot = slot_of(access, values);
  rdmacc_rewrite_row(access->relation, &handle, slot, access->command);
  ExecDropSingleTupleTableSlot(slot);
  pgstat_count_heap_update(access->relation, false);
}

void rdmacc_native_insert(const RdmaccNativeAccess* access, const Datum* values) {
  TupleTableSlot* slot = slot_of(access, values);
  rdmacc_tuple_insert(access->relation, slot, access->command, 0, nullptr);
  ExecDropSingleTupleTableSlot(slot);
}
