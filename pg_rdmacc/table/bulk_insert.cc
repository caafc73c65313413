#include "pg_rdmacc/table/bulk_insert.h"

#include "pg_rdmacc/index/secondary_indexes.h"
#include "pg_rdmacc/index/shadow_index.h"
#include "pg_rdmacc/relation/rewritten_table.h"
#include "pg_rdmacc/row/duplicate_key.h"
#include "pg_rdmacc/row/slot.h"
#include "pg_rdmacc/server/error.h"
#include "pg_rdmacc/table/modify.h"
#include "pg_rdmacc/table/row_batch.h"
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

/* Of the table that a statement fills row by row. One at a time: what else is filled meanwhile, by
 * a function of that statement, goes row by row into the engine. */
RdmaccGatheredRows filling;

/* Of a table that is written anew, as its index would find it. */
void raise_of_filling(Relation rel, const void*, const RdmaccLoadedTwice* row) {
  const RdmaccTable* table = rdmacc_table(rel);
  if (table->key.number == 0) elog(ERROR, "a hidden row id is there twice");
  rdmacc_raise_duplicate_in_build(rel, &table->key, row->slot);
}

void flush(Relation rel, RdmaccRowLoad* load, RdmaccTable* table, TupleTableSlot** slots,
           CommandId cid) {
  rdmacc_batch_flush(rel, load, table, cid);
  if (rel->trigdesc != nullptr) rdmacc_load_finish(); /* a trigger is for rows that are there */
  for (int i = 0; i < load->count; i++) {
    rdmacc_row_was_inserted(rel, table, rdmacc_load_key(load, i), slots[i], cid);
  }
  rdmacc_load_reset(load);
}

/* A transient table of a rewrite, or the table of CREATE TABLE AS: rows come one after the other,
 * and rdmacc_finish_bulk_insert() comes at the end. Only such statements, and COPY, have a bulk
 * insert's state: what the query inserts by itself, in a CTE or a function, is none of it. */
bool is_being_filled(Relation rel, const BulkInsertStateData* state) {
  if (state == nullptr) return false;
  if (OidIsValid(rel->rd_rel->relrewrite)) return true;
  return rdmacc_query_fills_new_table() && rel->rd_createSubid == GetCurrentSubTransactionId();
}

void subtransaction_aborted(int nest) { rdmacc_gathered_abort(&filling, nest); }

/* Whatever fills a table says when it has ended: rows that are left would be lost. */
void before_commit(void) {
  if (filling.context == nullptr || filling.load.count == 0) return;
  elog(ERROR, "%d rows of relation %u have not been inserted", filling.load.count,
       filling.relation);
}

void finish(bool) { rdmacc_gathered_forget(&filling); }

}  // namespace

void rdmacc_multi_insert(Relation rel, TupleTableSlot** slots, int nslots, CommandId cid, int,
                         struct BulkInsertStateData*) {
  CHECK(nslots >= 0 && cid != InvalidCommandId);
  if (nslots == 0) return; /* COPY flushes all of its partitions' buffers, and some are empty */
  rdmacc_override_indexes(rel, rdmacc_table_to_write(rel));
  RdmaccTable table = *rdmacc_table(rel);
  const RdmaccLoadTarget target = rdmacc_batch_target(rel, &table, cid);
  auto* load = static_cast<RdmaccRowLoad*>(palloc(sizeof(RdmaccRowLoad)));
  rdmacc_load_begin(load, rel, &target, rdmacc_raise_of_batch, nullptr);
  int first = 0; /* of the batch */
  for (int i = 0; i < nslots; i++) {
    CHECK(!TTS_EMPTY(slots[i]));
    if (!rdmacc_batch_add(load, &table, slots[i]) && i + 1 < nslots) continue;
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
    rdmacc_key_as_before(rel);
    rdmacc_gathered_begin(&filling, rel, cid, raise_of_filling);
    /* The table of a query, of which keys may be there twice. */
    const bool keyed = filling.table.key.number != 0;
    if (keyed && !OidIsValid(rel->rd_rel->relrewrite)) rdmacc_gathered_forget(&filling);
  }
  if (filling.context == nullptr || filling.relation != RelationGetRelid(rel)) return false;
  if (filling.command != cid) return false;
  if (rdmacc_gathered_add(&filling, slot)) rdmacc_gathered_flush(&filling, rel);
  return true;
}

void rdmacc_finish_bulk_insert(Relation rel, int) {
  if (filling.context != nullptr && filling.relation == RelationGetRelid(rel)) {
    rdmacc_gathered_end(&filling);
    return;
  }
  rdmacc_batches_end(rel); /* of COPY, which has flushed each of them */
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
