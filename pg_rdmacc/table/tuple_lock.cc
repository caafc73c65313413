#include "pg_rdmacc/table/tuple_lock.h"

#include "pg_rdmacc/relation/foreign_keys.h"
#include "pg_rdmacc/row/fetch.h"
#include "pg_rdmacc/row/handle.h"
#include "pg_rdmacc/row/row_lock.h"
#include "pg_rdmacc/row/slot.h"
#include "pg_rdmacc/row/write_marks.h"
#include "pg_rdmacc/server/error.h"
#include "pg_rdmacc/table/modify.h"
#include "pg_rdmacc/xact/lock_holder.h"
#include "pg_rdmacc/xact/xact.h"

extern "C" {
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

/* A row that this very command has written must not be updated by it again. */
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

TM_Result gone(const ItemPointerData* tid, TM_FailureData* tmfd) {
  tmfd->ctid = *tid;
  tmfd->xmax = InvalidTransactionId;
  tmfd->cmax = InvalidCommandId;
  return TM_Deleted;
}

/* The row as this transaction sees it, locked at once by `lock`. A statement that does not wait has
 * perhaps scanned it without protection, so that it may have changed since. */
TM_Result read_row(Relation rel, const RdmaccHandle* handle, Snapshot snapshot,
                   rdmacc::RowLockMode lock, LockWaitPolicy wait_policy, TM_FailureData* tmfd,
                   BridgeRow* row) {
  if (wait_policy == LockWaitBlock && lock == rdmacc::RowLockMode::kNone) {
    rdmacc_fetch(rel, handle, snapshot, row);
    return row->found ? TM_Ok : TM_Deleted; /* by an earlier command of this transaction */
  }
  const RdmaccRead read = {
      .relation = rel,
      .table = handle->table,
      .visible_before = IsMVCCSnapshot(snapshot) ? snapshot->curcid : RDMACC_EVERY_COMMAND,
      .mark = {.wait_policy = wait_policy,
               .locks = true,
               .exclusive = lock == rdmacc::RowLockMode::kExclusive},
      .to_write = true,
      .lock_command = InvalidCommandId,
      .batch = nullptr};
  if (!rdmacc_lock_row(&read, handle->key, lock, row)) return TM_WouldBlock;
  if (!row->found) return wait_policy == LockWaitSkip ? TM_WouldBlock : TM_Deleted;
  tmfd->traversed = row->version != handle->row.version;
  return TM_Ok;
}

}  // namespace

TM_Result rdmacc_tuple_lock(Relation rel, ItemPointer tid, Snapshot snapshot, TupleTableSlot* slot,
                            CommandId cid, LockTupleMode mode, LockWaitPolicy wait_policy,
                            uint8 flags, TM_FailureData* tmfd) {
  CHECK(snapshot != nullptr && cid != InvalidCommandId && tmfd != nullptr);
  const RdmaccHandle handle = *rdmacc_handle_get(tid, rel);
  CHECK(handle.relation == RelationGetRelid(rel)); /* it may be written as it is */
  tmfd->traversed = false;
  if (rdmacc_handle_is_of_conflict(&handle)) {
    refuse_second_conflict(rel, &handle, cid);
  } else if (rdmacc_modified_by_own_command(&handle, tid, cid, tmfd)) {
    return TM_SelfModified;
  }
  const bool asked_for = (flags & TUPLE_LOCK_FLAG_LOCK_UPDATE_IN_PROGRESS) != 0;
  const bool keeps = asked_for && mode == LockTupleKeyShare && rdmacc_others_refer_to(rel);
  const bool writes = keeps || (asked_for && mode >= LockTupleNoKeyExclusive);
  const rdmacc::RowLockMode lock = writes ? rdmacc::RowLockMode::kExclusive
                                   : asked_for && mode == LockTupleShare && rdmacc_shares_rows()
                                       ? rdmacc::RowLockMode::kShare
                                       : rdmacc::RowLockMode::kNone;
  const ItemPointerData row_tid = *tid;
  BridgeRow row;
  if (writes) rdmacc_enter_write(cid); /* nothing else is waited for with the lock */
  if (lock == rdmacc::RowLockMode::kShare) rdmacc_enter_share();
  const TM_Result read = read_row(rel, &handle, snapshot, lock, wait_policy, tmfd, &row);
  if (read == TM_Deleted) return gone(&row_tid, tmfd);
  if (read != TM_Ok) return read;
  /* Of what a query has asked for; triggers and ON CONFLICT have looked themselves. */
  const bool may_be_written =
      lock != rdmacc::RowLockMode::kNone || (asked_for && bridge_txn_has_writes());
  if (may_be_written && written_since(rel, &handle, &row)) {
    tmfd->ctid = row_tid;
    tmfd->xmax = InvalidTransactionId;
    tmfd->cmax = cid;
    return TM_SelfModified;
  }
  CHECK(row.found);
  rdmacc_slot_store(slot, rel, &row, &row_tid);
  /* In an order of all transactions that comes later, only a write tells others. So does it of a
   * row that others' tables refer to: what deletes it has read it before it searches these, and
   * loses if this transaction has come in between. */
  if (keeps || (writes && !bridge_can_prepare(bridge_txn_protocol()))) {
    rdmacc_put_row(rel, &handle, row.row, cid);
  }
  return TM_Ok;
}
