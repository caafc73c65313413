#include "pg_rdmacc/row/row_lock.h"

#include "pg_rdmacc/server/error.h"
#include "pg_rdmacc/xact/guests.h"
#include "pg_rdmacc/xact/lock_holder.h"
#include "pg_rdmacc/xact/row_sharers.h"
#include "pg_rdmacc/xact/running_query.h"
#include "pg_rdmacc/xact/savepoint.h"
#include "pg_rdmacc/xact/xact.h"

extern "C" {
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "nodes/nodeFuncs.h"
#include "utils/snapmgr.h"
}

namespace {

constexpr RdmaccRowMark kNoMark = {
    .wait_policy = LockWaitBlock, .locks = false, .exclusive = false};

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

bool locks_rows(const PlannedStmt* statement) {
  ListCell* cell;
  foreach (cell, statement->rowMarks) {
    const auto* mark = static_cast<const PlanRowMark*>(lfirst(cell));
    if (RowMarkRequiresRowShareLock(mark->markType)) return true;
  }
  return false;
}

RdmaccRowMark mark_of_scan(const void* scan) {
  const QueryDesc* query = rdmacc_running_query();
  if (query == nullptr || !locks_rows(query->plannedstmt)) return kNoMark;
  CHECK(query->planstate != nullptr && query->estate != nullptr);
  ScanSearch search = {scan, 0};
  if (!find_scan(query->planstate, &search)) {
    ListCell* cell;
    foreach (cell, query->estate->es_subplanstates) {
      if (find_scan(static_cast<PlanState*>(lfirst(cell)), &search)) break;
    }
  }
  return search.number == 0 ? kNoMark : rdmacc_row_mark_of(query->plannedstmt, search.number);
}

/* False when another transaction holds the row. */
bool try_lock(const RdmaccRead* read, BridgeBytes key, rdmacc::RowLockMode mode, BridgeRow* row) {
  rdmacc::RowLock result = rdmacc::RowLock::kAbsent;
  row->found = false;
  if (mode == rdmacc::RowLockMode::kNone && (read->to_write || read->mark.locks)) {
    mode = rdmacc::RowLockMode::kKeyShare;
  }
  rdmacc_enter();
  bridge_start_try_lock(read->table, key, mode, read->visible_before, row, &result);
  rdmacc_pump();
  rdmacc_check("could not lock a row", RelationGetRelationName(read->relation));
  return result != rdmacc::RowLock::kBusy;
}

}  // namespace

RdmaccRowMark rdmacc_row_mark_of(const PlannedStmt* statement, Index number) {
  ListCell* cell;
  foreach (cell, statement->rowMarks) {
    const auto* mark = static_cast<const PlanRowMark*>(lfirst(cell));
    if (mark->rti != number || !RowMarkRequiresRowShareLock(mark->markType)) continue;
    return {.wait_policy = mark->waitPolicy,
            .locks = mark->strength >= LCS_FORSHARE,
            .exclusive = mark->strength >= LCS_FORNOKEYUPDATE};
  }
  return kNoMark;
}

bool rdmacc_writes_rows_of(const PlannedStmt* statement, Index number) {
  if (list_member_int(statement->resultRelations, static_cast<int>(number))) return true;
  ListCell* cell;
  foreach (cell, statement->rowMarks) {
    const auto* mark = static_cast<const PlanRowMark*>(lfirst(cell));
    if (mark->rti == number && RowMarkRequiresRowShareLock(mark->markType)) return true;
  }
  return false;
}

RdmaccRowMark rdmacc_row_mark_of_scan(const TableScanDescData* scan) { return mark_of_scan(scan); }

RdmaccRowMark rdmacc_row_mark_of_index_scan(const IndexScanDescData* scan) {
  return mark_of_scan(scan);
}

void rdmacc_enter_share(void) {
  rdmacc_invite_no_guests();
  rdmacc_enter();
  rdmacc_savepoint_before_write();
}

bool rdmacc_lock_row(const RdmaccRead* read, BridgeBytes key, rdmacc::RowLockMode mode,
                     BridgeRow* row) {
  RdmaccHolderWait wait = {};
  while (!try_lock(read, key, mode, row)) {
    switch (read->mark.wait_policy) {
      case LockWaitSkip:
        return false;
      case LockWaitError:
        rdmacc_raise_row_locked(read->relation);
      case LockWaitBlock:
        /* What is shared is in the way of nothing else. */
        rdmacc_wait_for_holder(&wait,
                               mode == rdmacc::RowLockMode::kExclusive
                                   ? rdmacc_sharer_of(read->table, key)
                                   : RDMACC_NO_SESSION,
                               RelationGetRelationName(read->relation));
        break;
    }
  }
  if (mode == rdmacc::RowLockMode::kShare && row->found) rdmacc_note_shared_row(read->table, key);
  return true;
}

void rdmacc_read_rows(const RdmaccRead* read, const BridgeBytes* keys, size_t count,
                      BridgeRow* rows) {
  const bool locks = read->lock_command != InvalidCommandId;
  rdmacc::RowLockMode mode = rdmacc::RowLockMode::kNone;
  if (locks && read->mark.locks && !read->mark.exclusive) {
    mode = rdmacc::RowLockMode::kShare;
    rdmacc_enter_share();
  } else if (locks) {
    mode = rdmacc::RowLockMode::kExclusive;
    rdmacc_enter_write(read->lock_command);
  }
  if (!locks && read->mark.wait_policy == LockWaitBlock) {
    if (read->batch != nullptr) {
      CHECK(!read->to_write);
      bridge_start_read_batch(read->batch, read->table, keys, count, read->visible_before, rows);
    } else {
      bridge_start_get_many(read->table, keys, count, read->visible_before, read->to_write, rows);
    }
    if (!rdmacc_pump_unless_held(read->mark.locks)) {
      rdmacc_check("could not read rows", RelationGetRelationName(read->relation));
      return;
    }
  }
  for (size_t i = 0; i < count; i++) {
    CHECK_FOR_INTERRUPTS();
    if (!rdmacc_lock_row(read, keys[i], mode, &rows[i])) rows[i].found = false;
  }
}

void rdmacc_raise_row_locked(Relation relation) {
  ereport(ERROR, (errcode(ERRCODE_LOCK_NOT_AVAILABLE),
                  errmsg("could not obtain lock on row in relation \"%s\"",
                         RelationGetRelationName(relation))));
}
