#include "pg_rdmacc/row/shared_scan.h"

#include "pg_rdmacc/relation/access_method.h"
#include "pg_rdmacc/relation/engine_table.h"
#include "pg_rdmacc/server/error.h"
#include "pg_rdmacc/xact/entry.h"
#include "pg_rdmacc/xact/guests.h"
#include "pg_rdmacc/xact/lock_holder.h"
#include "pg_rdmacc/xact/row_sharers.h"

extern "C" {
#include "access/parallel.h"
#include "access/xact.h"
}

bool rdmacc_may_share_scans(const PlannedStmt* plan) {
  CHECK(!IsParallelWorker());
  ListCell* cell;
  foreach (cell, plan->rtable) {
    const auto* entry = static_cast<const RangeTblEntry*>(lfirst(cell));
    if (entry->rtekind != RTE_RELATION || entry->inh) continue;
    if (!rdmacc_relation_is_ours(entry->relid)) continue;
    if (!rdmacc_may_have_guests()) return false;
    Relation relation = RelationIdGetRelation(entry->relid);
    if (!RelationIsValid(relation)) return false;
    const uint32 table = rdmacc_table(relation)->id;
    RelationClose(relation);
    return rdmacc_invite_guests(table);
  }
  /* Functions in its workers may read ours, as guests of what was planned before. */
  if (!IsInParallelMode()) rdmacc_invite_no_guests();
  return true;
}

void rdmacc_share_scan(RdmaccSharedScan* scan, Relation relation) {
  CHECK(!IsParallelWorker() && reinterpret_cast<uintptr_t>(&scan->walk) % sizeof(uint64) == 0);
  if (!rdmacc_has_guests()) elog(ERROR, "parallel workers cannot share this scan");
  scan->walk = 0;
  scan->table = rdmacc_table(relation)->id;
  scan->shared = true;
  RdmaccHolderWait wait = {};
  for (;;) {
    bridge_start_share_scan(scan->table, &scan->walk);
    if (!rdmacc_pump_unless_held(/*locks_rows=*/false)) break;
    rdmacc_wait_for_holder(&wait, RDMACC_NO_SESSION, RelationGetRelationName(relation));
  }
  rdmacc_check("could not scan", RelationGetRelationName(relation));
}

void rdmacc_share_scan_again(RdmaccSharedScan* scan) {
  CHECK(!IsParallelWorker());
  rdmacc_borrow_lent();
  scan->walk = bridge_shared_walk_anew(scan->walk);
}

void rdmacc_share_no_scan(RdmaccSharedScan* scan) { *scan = {}; }

/* The leader knows the table, of which its transaction may have made another one. */
void rdmacc_rows_begin_shared(RdmaccRows* rows, RdmaccSharedScan* scan, Relation relation,
                              uint32 visible_before) {
  const bool worker = IsParallelWorker();
  if (worker && (scan == nullptr || !rdmacc_be_guest())) rdmacc_refuse_worker();
  rdmacc_rows_begin(rows, worker ? scan->table : rdmacc_table(relation)->id, visible_before);
  if (scan != nullptr && scan->shared) rows->shared_walk = &scan->walk;
}
