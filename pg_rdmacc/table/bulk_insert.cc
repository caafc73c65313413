#include "pg_rdmacc/table/bulk_insert.h"

#include "pg_rdmacc/codec/row_codec.h"
#include "pg_rdmacc/index/secondary_indexes.h"
#include "pg_rdmacc/index/shadow_index.h"
#include "pg_rdmacc/relation/rewritten_table.h"
#include "pg_rdmacc/row/duplicate_key.h"
#include "pg_rdmacc/row/row_load.h"
#include "pg_rdmacc/row/slot.h"
#include "pg_rdmacc/server/error.h"
#include "pg_rdmacc/table/modify.h"
#include "pg_rdmacc/table/seq_scan.h"
#include "pg_rdmacc/xact/running_query.h"
#include "pg_rdmacc/xact/xact.h"

extern "C" {
#include "access/heapam.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
}

namespace {

/* Of the table that the running command loads: it is asked for once. */
struct KnownTarget {
  uint32 transaction;
  CommandId command;
  RdmaccLoadTarget target;
};
KnownTarget known;

/* The table that a statement fills row by row. One at a time: what else is filled meanwhile, by a
 * function of that statement, goes row by row into the engine. */
struct Filling {
  MemoryContext context; /* NULL: none */
  MemoryContext row;     /* of the row that comes */
  Oid relation;
  int nest;
  CommandId command;
  RdmaccTable table;
  RdmaccRowLoad load;
};
Filling filling;

/* Entries are the transaction's own writes, which wait; but a unique index is read after each row,
 * and what it shows has to be a row that the query may see. */
bool reads_indexes(Relation rel) {
  const RdmaccIndexSet set = rdmacc_secondary_indexes(rel);
  for (int i = 0; i < set.count; i++) {
    if (set.indexes[i].unique) return true;
  }
  return false;
}

RdmaccLoadTarget target_of(Relation rel, const RdmaccTable* table, CommandId cid) {
  if (known.transaction == rdmacc_transaction_number() && known.command == cid &&
      known.target.table == table->id) {
    return known.target;
  }
  RdmaccLoadTarget target = {
      .table = table->id, .check_absent = table->key.number != 0, .in_place = false};
  if (!reads_indexes(rel)) {
    rdmacc_load_target(table->id, &table->key, &target);
  }
  known = {rdmacc_transaction_number(), cid, target};
  return target;
}

bool add_row(RdmaccRowLoad* load, const RdmaccTable* table, TupleTableSlot* slot) {
  StringInfoData key;
  initStringInfo(&key);
  rdmacc_table_key(&table->key, slot, &key);
  return rdmacc_load_add(load, {key.data, static_cast<size_t>(key.len)}, rdmacc_row_encode(slot));
}

void describe_load(void* name) {
  errcontext("a row that was loaded into \"%s\" before", static_cast<const char*>(name));
}

/* COPY may be at another row by now, or say nothing of rows any more. */
void raise_of_row(Relation rel, const void*, const RdmaccLoadedTwice* row) {
  ErrorContextCallback here = {.previous = error_context_stack,
                               .callback = describe_load,
                               .arg = RelationGetRelationName(rel)};
  if (row->late) error_context_stack = &here;
  rdmacc_raise_duplicate(rel, rdmacc_table(rel), row->key, row->slot);
}

/* Of a table that is written anew, as its index would find it. */
void raise_of_filling(Relation rel, const void*, const RdmaccLoadedTwice* row) {
  const RdmaccTable* table = rdmacc_table(rel);
  if (table->key.number == 0) elog(ERROR, "a hidden row id is there twice");
  rdmacc_raise_duplicate_in_build(rel, &table->key, row->slot);
}

void flush(Relation rel, RdmaccRowLoad* load, const RdmaccTable* table, TupleTableSlot** slots,
           CommandId cid) {
  rdmacc_load_flush(load, cid);
  if (rel->trigdesc != nullptr) rdmacc_load_finish(); /* a trigger is for rows that are there */
  for (int i = 0; i < load->count; i++) {
    rdmacc_row_was_inserted(rel, table, rdmacc_load_key(load, i), slots[i], cid);
  }
  rdmacc_load_reset(load);
}

void flush_filling(Relation rel) {
  CHECK(filling.context != nullptr && filling.relation == RelationGetRelid(rel));
  rdmacc_load_flush(&filling.load, filling.command);
  pgstat_count_heap_insert(rel, filling.load.count);
  rdmacc_load_reset(&filling.load);
}

void forget_filling(void) {
  if (filling.context == nullptr) return; /* every transaction ends here, and it is large */
  MemoryContextDelete(filling.context);
  filling = {};
}

/* A transient table of a rewrite, or the table of CREATE TABLE AS: rows come one after the other,
 * and rdmacc_finish_bulk_insert() comes at the end. Only such statements, and COPY, have a bulk
 * insert's state: what the query inserts by itself, in a CTE or a function, is none of it. */
bool is_being_filled(Relation rel, const BulkInsertStateData* state) {
  if (state == nullptr) return false;
  if (OidIsValid(rel->rd_rel->relrewrite)) return true;
  return rdmacc_query_fills_new_table() && rel->rd_createSubid == GetCurrentSubTransactionId();
}

void begin_filling(Relation rel, CommandId cid) {
  CHECK(filling.context == nullptr && cid != InvalidCommandId);
  rdmacc_key_as_before(rel);
  rdmacc_override_indexes(rel, rdmacc_table_to_write(rel));
  const RdmaccTable table = *rdmacc_table(rel);
  const RdmaccLoadTarget target = target_of(rel, &table, cid);
  filling.context =
      AllocSetContextCreate(TopTransactionContext, "rdmacc load", ALLOCSET_DEFAULT_SIZES);
  filling.row = AllocSetContextCreate(filling.context, "rdmacc row", ALLOCSET_DEFAULT_SIZES);
  filling.relation = RelationGetRelid(rel);
  filling.nest = GetCurrentTransactionNestLevel();
  filling.command = cid;
  filling.table = table;
  const MemoryContext previous = MemoryContextSwitchTo(filling.context);
  rdmacc_load_begin(&filling.load, rel, &target, raise_of_filling, nullptr);
  MemoryContextSwitchTo(previous);
}

void subtransaction_aborted(int nest) {
  if (filling.context != nullptr && filling.nest >= nest) forget_filling();
}

/* Whatever fills a table says when it has ended: rows that are left would be lost. */
void before_commit(void) {
  if (filling.context == nullptr || filling.load.count == 0) return;
  elog(ERROR, "%d rows of relation %u have not been inserted", filling.load.count,
       filling.relation);
}

void finish(bool) { forget_filling(); }

}  // namespace

void rdmacc_multi_insert(Relation rel, TupleTableSlot** slots, int nslots, CommandId cid, int,
                         struct BulkInsertStateData*) {
  CHECK(nslots > 0 && cid != InvalidCommandId);
  rdmacc_override_indexes(rel, rdmacc_table_to_write(rel));
  const RdmaccTable table = *rdmacc_table(rel);
  const RdmaccLoadTarget target = target_of(rel, &table, cid);
  auto* load = static_cast<RdmaccRowLoad*>(palloc(sizeof(RdmaccRowLoad)));
  rdmacc_load_begin(load, rel, &target, raise_of_row, nullptr);
  int first = 0; /* of the batch */
  for (int i = 0; i < nslots; i++) {
    CHECK(!TTS_EMPTY(slots[i]));
    if (!add_row(load, &table, slots[i]) && i + 1 < nslots) continue;
    flush(rel, load, &table, slots + first, cid);
    first = i + 1;
  }
  pfree(load->bytes.data);
  pfree(load);
  pgstat_count_heap_insert(rel, nslots);
}

bool rdmacc_gather_row(Relation rel, TupleTableSlot* slot, CommandId cid,
                       const BulkInsertStateData* state) {
  if (!is_being_filled(rel, state)) return false;
  if (filling.context == nullptr) {
    if (rel->trigdesc != nullptr) return false;
    if (rdmacc_secondary_indexes(rel).count > 0) return false;
    begin_filling(rel, cid);
    /* The table of a query, of which keys may be there twice. */
    const bool keyed = filling.table.key.number != 0;
    if (keyed && !OidIsValid(rel->rd_rel->relrewrite)) forget_filling();
  }
  if (filling.context == nullptr || filling.relation != RelationGetRelid(rel)) return false;
  if (filling.command != cid) return false;
  MemoryContextReset(filling.row);
  const MemoryContext previous = MemoryContextSwitchTo(filling.row);
  const bool full = add_row(&filling.load, &filling.table, slot);
  MemoryContextSwitchTo(previous);
  if (full) flush_filling(rel);
  return true;
}

void rdmacc_finish_bulk_insert(Relation rel, int) {
  if (filling.context != nullptr && filling.relation == RelationGetRelid(rel)) {
    flush_filling(rel);
    rdmacc_load_end(&filling.load);
    forget_filling();
    return;
  }
  /* COPY, which has flushed each batch. */
  rdmacc_load_finish();
  const bool loaded = known.transaction == rdmacc_transaction_number() && known.target.in_place;
  if (loaded && rdmacc_table(rel)->id == known.target.table) {
    rdmacc_settle_load(known.target.table);
    known = {};
  }
}

double rdmacc_copy_all_rows(Relation from, Relation to, CommandId cid) {
  double rows = 0;
  TupleTableSlot* slot = table_slot_create(from, nullptr);
  const BulkInsertState state = GetBulkInsertState();
  TableScanDesc scan = rdmacc_scan_begin(from, SnapshotAny, 0, nullptr, nullptr, 0);
  while (rdmacc_scan_getnextslot(scan, ForwardScanDirection, slot)) {
    CHECK_FOR_INTERRUPTS();
    rdmacc_tuple_insert(to, slot, cid, 0, state);
    rows += 1;
  }
  rdmacc_scan_end(scan);
  FreeBulkInsertState(state);
  ExecDropSingleTupleTableSlot(slot);
  rdmacc_finish_bulk_insert(to, 0);
  return rows;
}

const RdmaccTransactionPart rdmacc_bulk_insert_part = {
    .before_commit = before_commit,
    .finish = finish,
    .subtransaction_aborted = subtransaction_aborted};
