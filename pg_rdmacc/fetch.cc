#include "pg_rdmacc/fetch.h"

#include "pg_rdmacc/error.h"
#include "pg_rdmacc/foreign_key.h"
#include "pg_rdmacc/scan_rows.h"
#include "pg_rdmacc/shadow_index.h"
#include "pg_rdmacc/slot.h"
#include "pg_rdmacc/xact.h"

extern "C" {
#include "access/htup_details.h"
#include "access/relscan.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "utils/snapmgr.h"
}

namespace {

struct IndexFetch {
  IndexFetchTableData base;
  bool nothing; /* of an index-only scan */
};

/* An UPDATE that leaves a foreign key's columns alone has nothing to check, unless it replaces a
 * row of its own transaction, whose check may still be to come and will then find the row gone.
 * PostgreSQL tells such rows by an xmin that is the transaction's XID. */
void show_own_write(TupleTableSlot* slot) {
  if (!TTS_IS_HEAPTUPLE(slot)) return;
  HeapTuple tuple = reinterpret_cast<HeapTupleTableSlot*>(slot)->tuple;
  HeapTupleHeaderSetXmin(tuple->t_data, GetTopTransactionId());
}

}  // namespace

bool rdmacc_same_bytes(BridgeBytes one, BridgeBytes other) {
  return one.size == other.size && memcmp(one.data, other.data, one.size) == 0;
}

void rdmacc_fetch(Relation relation, const RdmaccHandle* handle, Snapshot snapshot,
                  BridgeRow* row) {
  const bool any = snapshot->snapshot_type == SNAPSHOT_ANY;
  if (any && handle->row.found) {
    *row = handle->row;
    return;
  }
  uint32 visible_before = RDMACC_EVERY_COMMAND;
  if (any) {
    visible_before = handle->visible_before;
  } else if (IsMVCCSnapshot(snapshot)) {
    visible_before = snapshot->curcid;
  }
  row->found = false;
  rdmacc_enter();
  bridge_start_get(handle->table, handle->key, visible_before, row);
  rdmacc_pump();
  rdmacc_check("could not read a row", RelationGetRelationName(relation));
}

struct IndexFetchTableData* rdmacc_index_fetch_begin(Relation rel) {
  auto* fetch = static_cast<IndexFetch*>(palloc0(sizeof(IndexFetch)));
  IndexFetchTableData* data = &fetch->base;
  data->rel = rel;
  if (rdmacc_has_foreign_index_open(rel)) {
    elog(ERROR, "an index of table \"%s\" would be found empty", RelationGetRelationName(rel));
  }
  return data;
}

void rdmacc_index_fetch_nothing(struct IndexFetchTableData* data) {
  reinterpret_cast<IndexFetch*>(data)->nothing = true;
}

void rdmacc_index_fetch_reset(struct IndexFetchTableData*) {}

void rdmacc_index_fetch_end(struct IndexFetchTableData* data) { pfree(data); }

bool rdmacc_index_fetch_tuple(struct IndexFetchTableData* scan, ItemPointer tid, Snapshot snapshot,
                              TupleTableSlot* slot, bool* call_again, bool* all_dead) {
  *call_again = false;
  if (all_dead != nullptr) *all_dead = false;
  if (reinterpret_cast<const IndexFetch*>(scan)->nothing) return true;
  if (snapshot->snapshot_type == SNAPSHOT_DIRTY) {
    /* Nobody waits here: what others do meanwhile is settled when we commit. */
    snapshot->xmin = snapshot->xmax = InvalidTransactionId;
    snapshot->speculativeToken = 0;
  }
  const RdmaccHandle handle = *rdmacc_handle_get(tid, scan->rel);
  if (handle.row.found) {
    /* Just looked up by the index scan, under the same snapshot. */
    rdmacc_slot_store(slot, scan->rel, &handle.row, tid);
    return true;
  }
  return rdmacc_tuple_fetch_row_version(scan->rel, tid, snapshot, slot);
}

bool rdmacc_tuple_fetch_row_version(Relation rel, ItemPointer tid, Snapshot snapshot,
                                    TupleTableSlot* slot) {
  const RdmaccHandle handle = *rdmacc_handle_get(tid, rel);
  BridgeRow row;
  rdmacc_fetch(rel, &handle, snapshot, &row);
  if (!row.found) return false;
  const ItemPointerData row_tid = *tid; /* may lie in the slot that is stored to */
  rdmacc_slot_store(slot, rel, &row, &row_tid);
  if (snapshot->snapshot_type == SNAPSHOT_ANY && row.version == 0 && rdmacc_has_foreign_key(rel)) {
    show_own_write(slot);
  }
  return true;
}

bool rdmacc_tuple_tid_valid(TableScanDesc scan, ItemPointer tid) {
  return rdmacc_handle_find(tid, scan->rs_rd) != nullptr;
}

/* A handle names a key, and a fetch under a snapshot finds that key's latest version. */
void rdmacc_tuple_get_latest_tid(TableScanDesc, ItemPointer) {}

bool rdmacc_tuple_satisfies_snapshot(Relation rel, TupleTableSlot* slot, Snapshot snapshot) {
  /* All that the engine's transaction reads belongs to one serial order. */
  if (IsMVCCSnapshot(snapshot)) return true;
  const RdmaccHandle handle = *rdmacc_handle_get(&slot->tts_tid, rel);
  BridgeRow present;
  BridgeRow then;
  rdmacc_fetch(rel, &handle, SnapshotSelf, &present);
  rdmacc_fetch(rel, &handle, SnapshotAny, &then);
  return present.found && then.found && rdmacc_same_bytes(present.row, then.row);
}
