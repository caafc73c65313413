#include "pg_rdmacc/row/row_lock.h"

#include "pg_rdmacc/server/error.h"
#include "pg_rdmacc/xact/running_query.h"
#include "pg_rdmacc/xact/xact.h"

extern "C" {
#include "nodes/execnodes.h"
#include "nodes/nodeFuncs.h"
#include "utils/snapmgr.h"
}

namespace {

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

bool has_no_wait_mark(const PlannedStmt* statement) {
  ListCell* cell;
  foreach (cell, statement->rowMarks) {
    if (static_cast<const PlanRowMark*>(lfirst(cell))->waitPolicy != LockWaitBlock) return true;
  }
  return false;
}

LockWaitPolicy policy_of(const void* scan) {
  const QueryDesc* query = rdmacc_running_query();
  if (query == nullptr || !has_no_wait_mark(query->plannedstmt)) return LockWaitBlock;
  CHECK(query->planstate != nullptr && query->estate != nullptr);
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
  CHECK(wait_policy != LockWaitBlock); /* such a row is read, and checked at the commit */
  rdmacc::RowLock result = rdmacc::RowLock::kAbsent;
  row->found = false;
  rdmacc_enter();
  bridge_start_try_lock(table, key, exclusive, visible_before, row, &result);
  rdmacc_pump();
  rdmacc_check("could not lock a row", RelationGetRelationName(relation));
  if (result != rdmacc::RowLock::kBusy) return true;
  if (wait_policy == LockWaitError) rdmacc_raise_row_locked(relation);
  return false;
}

void rdmacc_raise_row_locked(Relation relation) {
  ereport(ERROR, (errcode(ERRCODE_LOCK_NOT_AVAILABLE),
                  errmsg("could not obtain lock on row in relation \"%s\"",
                         RelationGetRelationName(relation))));
}
