#include "pg_rdmacc/row_lock.h"

#include "pg_rdmacc/error.h"
#include "pg_rdmacc/fetch.h"
#include "pg_rdmacc/modify.h"
#include "pg_rdmacc/running_query.h"
#include "pg_rdmacc/scan_rows.h"
#include "pg_rdmacc/slot.h"
#include "pg_rdmacc/write_marks.h"
#include "pg_rdmacc/xact.h"

extern "C" {
#include "nodes/execnodes.h"
#include "nodes/nodeFuncs.h"
#include "utils/snapmgr.h"
}

namespace {

/* True when this transaction has written the row since the version `row` that a query read. Such a
 * query may be older than the write, whose mark may be gone by now. */
bool written_since(Relation rel, const RdmaccHandle* handle, const BridgeRow* row) {
  BridgeRow newest;
  rdmacc_fetch(rel, handle, SnapshotSelf, &newest);
  return !newest.found || !rdmacc_same_bytes(newest.row, row->row);
}

/* Handles from a search for conflicting keys see all own writes. A row that this very command has
 * written must not be updated by it again. */
void refuse_second_conflict(Relation rel, const RdmaccHandle* handle, CommandId cid) {
  BridgeRow row = {};
  CommandId at = InvalidCommandId;
  bool written = rdmacc_write_marked_since(handle->table, handle->key, cid, &at);
  if (!written) {
    rdmacc_enter();
    bridge_start_get(handle->table, handle->key, cid, &row);
    rdmacc_pump();
    rdmacc_check("could not read a row", RelationGetRelationName(rel));
    written = !row.found;
  }
  if (!written) return;
  ereport(ERROR, (errcode(ERRCODE_CARDINALITY_VIOLATION),
                  errmsg("ON CONFLICT DO UPDATE command cannot affect row a second time"),
                  errhint("Ensure that no rows proposed for insertion within the same command "
                          "have duplicate constrained values.")));
}

/* ---- Which scan is it */

struct ScanSearch {
  const void* scan; /* of a table or of an index */
  Index number;     /* of its range table entry; 0: not found */
};

bool find_scan(PlanState* state, ScanSearch* search) {
  if (state == nullptr) return false;
  const void* scan = nullptr;
  if (IsA(state, SeqScanState)) {
    scan = reinterpret_cast<const ScanState*>(state)->ss_currentScanDesc;
  } else if (IsA(state, IndexScanState)) {
    scan = reinterpret_cast<const IndexScanState*>(state)->iss_ScanDesc;
  }
  if (scan != nullptr && scan == search->scan) {
    search->number = reinterpret_cast<const Scan*>(state->plan)->scanrelid;
    return true;
  }
  /* PostgreSQL declares walkers without their parameters. */
  return planstate_tree_walker(
      state, reinterpret_cast<bool (*)()>(reinterpret_cast<void (*)()>(find_scan)), search);
}

bool has_impatient_mark(const PlannedStmt* statement) {
  ListCell* cell;
  foreach (cell, statement->rowMarks) {
    if (static_cast<const PlanRowMark*>(lfirst(cell))->waitPolicy != LockWaitBlock) return true;
  }
  return false;
}

LockWaitPolicy policy_of(const void* scan) {
  const QueryDesc* query = rdmacc_running_query();
  if (query == nullptr || !has_impatient_mark(query->plannedstmt)) return LockWaitBlock;
  ScanSearch search = {scan, 0};
  if (!find_scan(query->planstate, &search)) {
    ListCell* cell;
    foreach (cell, query->estate->es_subplanstates) {
      if (find_scan(static_cast<PlanState*>(lfirst(cell)), &search)) break;
    }
  }
  return search.number == 0 ? LockWaitBlock
                            : rdmacc_wait_policy_of(query->plannedstmt, search.number);
}

/* ---- Locking */

TM_Result gone(const ItemPointerData* tid, TM_FailureData* tmfd) {
  tmfd->ctid = *tid;
  tmfd->xmax = InvalidTransactionId;
  tmfd->cmax = InvalidCommandId;
  return TM_Deleted;
}

/* The row as this transaction sees it. Who does not wait has perhaps scanned it without
 * protection, so that it may have changed since. */
TM_Result read_row(Relation rel, const RdmaccHandle* handle, Snapshot snapshot, bool exclusive,
                   LockWaitPolicy wait_policy, TM_FailureData* tmfd, BridgeRow* row) {
  if (wait_policy == LockWaitBlock) {
    rdmacc_fetch(rel, handle, snapshot, row);
    return row->found ? TM_Ok : TM_Deleted; /* by an earlier command of this transaction */
  }
  const uint32 visible_before = IsMVCCSnapshot(snapshot) ? snapshot->curcid : RDMACC_EVERY_COMMAND;
  if (!rdmacc_try_lock_row(rel, handle->table, handle->key, exclusive, visible_before, wait_policy,
                           row)) {
    return TM_WouldBlock;
  }
  if (!row->found) return wait_policy == LockWaitSkip ? TM_WouldBlock : TM_Deleted;
  tmfd->traversed = row->version != handle->row.version;
  return TM_Ok;
}

}  // namespace

LockWaitPolicy rdmacc_wait_policy_of(const PlannedStmt* statement, Index number) {
  ListCell* cell;
  foreach (cell, statement->rowMarks) {
    const auto* mark = static_cast<const PlanRowMark*>(lfirst(cell));
    if (mark->rti == number && RowMarkRequiresRowShareLock(mark->markType)) return mark->waitPolicy;
  }
  return LockWaitBlock;
}

LockWaitPolicy rdmacc_wait_policy_of_scan(const TableScanDescData* scan) { return policy_of(scan); }

LockWaitPolicy rdmacc_wait_policy_of_index_scan(const IndexScanDescData* scan) {
  return policy_of(scan);
}

bool rdmacc_try_lock_row(Relation relation, uint32 table, BridgeBytes key, bool exclusive,
                         uint32 visible_before, LockWaitPolicy wait_policy, BridgeRow* row) {
  BridgeRowLock result = BRIDGE_ROW_ABSENT;
  row->found = false;
  rdmacc_enter();
  bridge_start_try_lock(table, key, exclusive, visible_before, row, &result);
  rdmacc_pump();
  rdmacc_check("could not lock a row", RelationGetRelationName(relation));
  if (result != BRIDGE_ROW_BUSY) return true;
  if (wait_policy == LockWaitError) rdmacc_raise_row_locked(relation);
  return false;
}

void rdmacc_raise_row_locked(Relation relation) {
  ereport(ERROR, (errcode(ERRCODE_LOCK_NOT_AVAILABLE),
                  errmsg("could not obtain lock on row in relation \"%s\"",
                         RelationGetRelationName(relation))));
}

TM_Result rdmacc_tuple_lock(Relation rel, ItemPointer tid, Snapshot snapshot, TupleTableSlot* slot,
                            CommandId cid, LockTupleMode mode, LockWaitPolicy wait_policy,
                            uint8 flags, TM_FailureData* tmfd) {
  const RdmaccHandle handle = *rdmacc_handle_get(tid, rel);
  tmfd->traversed = false;
  if (handle.visible_before == RDMACC_EVERY_COMMAND) {
    refuse_second_conflict(rel, &handle, cid);
  } else if (rdmacc_modified_by_own_command(&handle, tid, cid, tmfd)) {
    return TM_SelfModified;
  }
  const bool writes =
      (flags & TUPLE_LOCK_FLAG_LOCK_UPDATE_IN_PROGRESS) != 0 && mode >= LockTupleNoKeyExclusive;
  const ItemPointerData row_tid = *tid;
  BridgeRow row;
  const TM_Result read = read_row(rel, &handle, snapshot, writes, wait_policy, tmfd, &row);
  if (read == TM_Deleted) return gone(&row_tid, tmfd);
  if (read != TM_Ok) return read;
  if (writes && written_since(rel, &handle, &row)) {
    tmfd->ctid = row_tid;
    tmfd->xmax = InvalidTransactionId;
    tmfd->cmax = cid;
    return TM_SelfModified;
  }
  rdmacc_slot_store(slot, rel, &row, &row_tid);
  if (writes) rdmacc_put_row(rel, &handle, row.row, cid);
  return TM_Ok;
}
