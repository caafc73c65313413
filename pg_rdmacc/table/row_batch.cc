#include "pg_rdmacc/table/row_batch.h"

#include "pg_rdmacc/codec/row_codec.h"
#include "pg_rdmacc/index/insert_observers.h"
#include "pg_rdmacc/index/shadow_index.h"
#include "pg_rdmacc/row/duplicate_key.h"
#include "pg_rdmacc/server/error.h"
#include "pg_rdmacc/xact/xact.h"

extern "C" {
#include "access/xact.h"
#include "pgstat.h"
#include "utils/memutils.h"
#include "utils/rel.h"
}

namespace {

/* Of the table that the running command loads. */
struct KnownTarget {
  uint32 transaction;
  CommandId command;
  RdmaccLoadTarget target;
};
KnownTarget known;

void describe_load(void* name) {
  errcontext("a row that was loaded into \"%s\" before", static_cast<const char*>(name));
}

}  // namespace

RdmaccLoadTarget rdmacc_batch_target(Relation rel, const RdmaccTable* table, CommandId cid) {
  if (known.transaction == rdmacc_transaction_number() && known.command == cid &&
      known.target.table == table->id) {
    return known.target;
  }
  RdmaccLoadTarget target = {
      .table = table->id, .check_absent = table->key.number != 0, .in_place = false};
  if (!rdmacc_inserts_are_read(rel)) rdmacc_load_target(table->id, &table->key, &target);
  known = {rdmacc_transaction_number(), cid, target};
  return target;
}

bool rdmacc_batch_add(RdmaccRowLoad* load, const RdmaccTable* table, TupleTableSlot* slot) {
  StringInfoData key;
  initStringInfo(&key);
  rdmacc_table_key(&table->key, slot, &key);
  return rdmacc_load_add(load, {key.data, static_cast<size_t>(key.len)}, rdmacc_row_encode(slot));
}

void rdmacc_batch_flush(Relation rel, RdmaccRowLoad* load, RdmaccTable* table, CommandId cid) {
  CHECK(load->target.table == table->id);
  rdmacc_load_fit(load, &table->key);
  if (load->target.table != table->id) {
    if (known.target.table == table->id) known.target.table = load->target.table;
    *table = *rdmacc_table(rel);
    CHECK(table->id == load->target.table);
  }
  rdmacc_load_flush(load, cid);
}

void rdmacc_gathered_begin(RdmaccGatheredRows* rows, Relation rel, CommandId cid,
                           RdmaccRaiseOfLoad raise) {
  CHECK(rows->context == nullptr && cid != InvalidCommandId);
  rdmacc_override_indexes(rel, rdmacc_table_to_write(rel));
  rows->relation = RelationGetRelid(rel);
  rows->command = cid;
  rows->nest = GetCurrentTransactionNestLevel();
  rows->table = *rdmacc_table(rel);
  const RdmaccLoadTarget target = rdmacc_batch_target(rel, &rows->table, cid);
  rows->context =
      AllocSetContextCreate(TopTransactionContext, "rdmacc gathered rows", ALLOCSET_DEFAULT_SIZES);
  rows->row = AllocSetContextCreate(rows->context, "rdmacc row", ALLOCSET_DEFAULT_SIZES);
  const MemoryContext previous = MemoryContextSwitchTo(rows->context);
  rdmacc_load_begin(&rows->load, rel, &target, raise, nullptr);
  MemoryContextSwitchTo(previous);
}

bool rdmacc_gathered_add(RdmaccGatheredRows* rows, TupleTableSlot* slot) {
  CHECK(rows->context != nullptr);
  MemoryContextReset(rows->row);
  const MemoryContext previous = MemoryContextSwitchTo(rows->row);
  const bool full = rdmacc_batch_add(&rows->load, &rows->table, slot);
  MemoryContextSwitchTo(previous);
  return full;
}

void rdmacc_gathered_flush(RdmaccGatheredRows* rows, Relation rel) {
  if (rows->context == nullptr || rows->load.count == 0) return;
  CHECK(rows->relation == RelationGetRelid(rel));
  CHECK(rows->nest == GetCurrentTransactionNestLevel()); /* or they would go with a savepoint */
  rdmacc_batch_flush(rel, &rows->load, &rows->table, rows->command);
  pgstat_count_heap_insert(rel, rows->load.count);
  rdmacc_load_reset(&rows->load);
}

void rdmacc_gathered_end(RdmaccGatheredRows* rows) {
  if (rows->context == nullptr) return;
  rdmacc_gathered_flush(rows, rows->load.relation);
  rdmacc_load_end(&rows->load);
  if (known.target.table == rows->table.id) known = {};
  rdmacc_gathered_forget(rows);
}

void rdmacc_gathered_forget(RdmaccGatheredRows* rows) {
  if (rows->context == nullptr) return; /* every transaction ends here, and they are large */
  MemoryContextDelete(rows->context);
  *rows = {};
}

void rdmacc_gathered_abort(RdmaccGatheredRows* rows, int nest) {
  if (rows->context != nullptr && rows->nest >= nest) rdmacc_gathered_forget(rows);
}

void rdmacc_batches_end(Relation rel) {
  rdmacc_load_finish();
  const bool loaded = known.transaction == rdmacc_transaction_number() && known.target.in_place;
  if (!loaded || rdmacc_table(rel)->id != known.target.table) return;
  rdmacc_settle_load(known.target.table);
  known = {};
}

/* The statement may be at another row by now, or say nothing of rows any more. */
void rdmacc_raise_of_batch(Relation rel, const void*, const RdmaccLoadedTwice* row) {
  rdmacc_leave_out_line_of_copy(rel);
  ErrorContextCallback here = {.previous = error_context_stack,
                               .callback = describe_load,
                               .arg = RelationGetRelationName(rel)};
  if (row->late) error_context_stack = &here;
  rdmacc_raise_duplicate(rel, rdmacc_table(rel), row->key, row->slot);
}
