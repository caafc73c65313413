#include "pg_rdmacc/row/duplicate_key.h"

#include "pg_rdmacc/codec/key_codec.h"
#include "pg_rdmacc/row/slot.h"
#include "pg_rdmacc/server/error.h"
#include "pg_rdmacc/xact/xact.h"

extern "C" {
#include "access/genam.h"
#include "commands/copy.h"
#include "utils/typcache.h"
}

namespace {

/* "(id)=(1)"; NULL when the user may not see the values. */
char* key_description(Relation index, const RdmaccKeyLayout* layout, TupleTableSlot* slot) {
  CHECK(layout->column_count > 0); /* hidden row ids are never there twice */
  Datum values[INDEX_MAX_KEYS] = {};
  bool nulls[INDEX_MAX_KEYS] = {};
  for (int i = 0; i < layout->column_count; i++) {
    values[i] = slot_getattr(slot, layout->columns[i].attno, &nulls[i]);
  }
  return BuildIndexValueDescription(index, values, nulls);
}

bool keys_equal(const RdmaccKeyLayout* layout, TupleTableSlot* one, TupleTableSlot* other) {
  for (int i = 0; i < layout->column_count; i++) {
    const RdmaccKeyColumn* column = &layout->columns[i];
    bool null_in_one = false;
    bool null_in_other = false;
    const Datum in_one = slot_getattr(one, column->attno, &null_in_one);
    const Datum in_other = slot_getattr(other, column->attno, &null_in_other);
    TypeCacheEntry* entry = lookup_type_cache(column->type, TYPECACHE_EQ_OPR_FINFO);
    if (!DatumGetBool(
            FunctionCall2Coll(&entry->eq_opr_finfo, column->collation, in_one, in_other))) {
      return false;
    }
  }
  return true;
}

bool has_hashed_column(const RdmaccKeyLayout* layout) {
  for (int i = 0; i < layout->column_count; i++) {
    if (rdmacc_key_kind(layout->columns[i].type) == RDMACC_KEY_HASH) return true;
  }
  return false;
}

void describe_copy(void* name) { errcontext("COPY %s", static_cast<const char*>(name)); }

}  // namespace

void rdmacc_refuse_collision(Relation relation, const RdmaccTable* table, BridgeBytes key,
                             TupleTableSlot* slot) {
  if (!has_hashed_column(&table->key)) return;
  BridgeRow row = {};
  bridge_start_get(table->id, key, RDMACC_EVERY_COMMAND, &row);
  rdmacc_pump();
  rdmacc_check("could not read the row with the same key", RelationGetRelationName(relation));
  if (!row.found) return;
  TupleTableSlot* other = MakeSingleTupleTableSlot(RelationGetDescr(relation), &TTSOpsHeapTuple);
  rdmacc_slot_store(other, relation, &row, nullptr);
  const bool equal = keys_equal(&table->key, slot, other);
  ExecDropSingleTupleTableSlot(other);
  if (equal) return;
  ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                  errmsg("two different primary keys of table \"%s\" have the same hash",
                         RelationGetRelationName(relation)),
                  errhint("Use a primary key of another data type.")));
}

void rdmacc_check_reads(Relation relation) {
  if (!bridge_txn_active()) return;
  bridge_start_check_reads();
  rdmacc_pump();
  rdmacc_check("could not check what was read", RelationGetRelationName(relation));
}

void rdmacc_leave_out_line_of_copy(Relation relation) {
  static ErrorContextCallback without_line;
  ErrorContextCallback* copy = error_context_stack;
  if (copy == nullptr || copy->callback != CopyFromErrorCallback) return;
  without_line = {.previous = copy->previous,
                  .callback = describe_copy,
                  .arg = RelationGetRelationName(relation)};
  error_context_stack = &without_line; /* until the error is caught */
}

void rdmacc_raise_duplicate(Relation relation, const RdmaccTable* table, BridgeBytes key,
                            TupleTableSlot* slot) {
  rdmacc_check_reads(relation);
  rdmacc_refuse_collision(relation, table, key, slot);
  Relation index = RelationIdGetRelation(table->key.index);
  if (!RelationIsValid(index)) elog(ERROR, "could not open index %u", table->key.index);
  const char* description = key_description(index, &table->key, slot);
  ereport(ERROR, (errcode(ERRCODE_UNIQUE_VIOLATION),
                  errmsg("duplicate key value violates unique constraint \"%s\"",
                         RelationGetRelationName(index)),
                  description != nullptr ? errdetail("Key %s already exists.", description) : 0,
                  errtableconstraint(relation, RelationGetRelationName(index))));
}

void rdmacc_raise_duplicate_in_build(Relation relation, const RdmaccKeyLayout* layout,
                                     TupleTableSlot* slot) {
  Relation index = RelationIdGetRelation(layout->index);
  if (!RelationIsValid(index)) elog(ERROR, "could not open index %u", layout->index);
  const char* description = key_description(index, layout, slot);
  ereport(ERROR, (errcode(ERRCODE_UNIQUE_VIOLATION),
                  errmsg("could not create unique index \"%s\"", RelationGetRelationName(index)),
                  description != nullptr ? errdetail("Key %s is duplicated.", description)
                                         : errdetail("Duplicate keys exist."),
                  errtableconstraint(relation, RelationGetRelationName(index))));
}
