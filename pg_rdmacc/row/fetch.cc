#include "pg_rdmacc/row/fetch.h"

#include "pg_rdmacc/row/slot.h"
#include "pg_rdmacc/server/error.h"
#include "pg_rdmacc/xact/running_query.h"
#include "pg_rdmacc/xact/xact.h"

extern "C" {
#include "access/htup_details.h"
#include "access/relscan.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "commands/trigger.h"
#include "utils/snapmgr.h"
}

namespace {

/* An UPDATE that leaves a foreign key's columns alone has nothing to check, unless it replaces a
 * row of its own transaction, whose check may still be to come and will then find the row gone.
 * PostgreSQL tells such rows by an xmin that is the transaction's XID. */
void show_own_write(TupleTableSlot* slot) {
  if (!TTS_IS_HEAPTUPLE(slot)) return;
  HeapTuple tuple = reinterpret_cast<HeapTupleTableSlot*>(slot)->tuple;
  CHECK(tuple != nullptr);
  HeapTupleHeaderSetXmin(tuple->t_data, GetTopTransactionId());
}

/* True when a trigger of PostgreSQL's checks that what the relation's rows refer to is there. */
bool has_foreign_key(Relation relation) {
  const TriggerDesc* triggers = relation->trigdesc;
  for (int i = 0; triggers != nullptr && i < triggers->numtriggers; i++) {
    if (RI_FKey_trigger_type(triggers->triggers[i].tgfoid) == RI_TRIGGER_FK) return true;
  }
  return false;
}

}  // namespace

bool rdmacc_same_bytes(BridgeBytes one, BridgeBytes other) {
  return one.size == other.size && memcmp(one.data, other.data, one.size) == 0;
}

void rdmacc_fetch(Relation relation, const RdmaccHandle* handle, Snapshot snapshot,
                  BridgeRow* row) {
  CHECK(snapshot != nullptr && handle->relation == RelationGetRelid(relation));
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

bool rdmacc_tuple_fetch_row_version(Relation rel, ItemPointer tid, Snapshot snapshot,
                                    TupleTableSlot* slot) {
  const RdmaccHandle handle = *rdmacc_handle_get(tid, rel);
  BridgeRow row;
  rdmacc_fetch(rel, &handle, snapshot, &row);
  if (!row.found) return false;
  const ItemPointerData row_tid = *tid; /* may lie in the slot that is stored to */
  rdmacc_slot_store(slot, rel, &row, &row_tid);
  if (snapshot->snapshot_type == SNAPSHOT_ANY && row.version == 0 && has_foreign_key(rel)) {
    show_own_write(slot);
  }
  return true;
}

bool rdmacc_tuple_tid_valid(TableScanDesc scan, ItemPointer tid) {
  return rdmacc_handle_find(tid, scan->rs_rd) != nullptr;
}

/* Of WHERE CURRENT OF: the cursor's handle keeps the row as the cursor has shown it, which this
 * transaction may have written since. Another one names it as of the scan's own command, for
 * whatever asks for the row that is replaced. */
void rdmacc_tuple_get_latest_tid(TableScanDesc scan, ItemPointer tid) {
  if (!rdmacc_query_needs_handles(scan->rs_rd)) return; /* currtid2(): nothing is written */
  CHECK(IsMVCCSnapshot(scan->rs_snapshot));
  RdmaccHandle handle = *rdmacc_handle_get(tid, scan->rs_rd);
  /* The new handle may take the place of the old one's block. */
  auto* key = static_cast<char*>(palloc(handle.key.size));
  memcpy(key, handle.key.data, handle.key.size);
  handle.key.data = key;
  handle.visible_before = scan->rs_snapshot->curcid;
  handle.row = {};
  const bool keep = scan->rs_rd->trigdesc != nullptr;
  rdmacc_handle_assign(rdmacc_handle_write_stream(keep), &handle, tid);
  pfree(key);
}

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
