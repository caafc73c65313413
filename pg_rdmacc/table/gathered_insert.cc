#include "pg_rdmacc/table/gathered_insert.h"

#include "pg_rdmacc/index/insert_observers.h"
#include "pg_rdmacc/relation/access_method.h"
#include "pg_rdmacc/server/error.h"
#include "pg_rdmacc/table/modify.h"
#include "pg_rdmacc/table/row_batch.h"
#include "pg_rdmacc/xact/running_query.h"

extern "C" {
#include "catalog/pg_class.h"
#include "nodes/execnodes.h"
#include "nodes/plannodes.h"
#include "utils/memutils.h"
}

namespace {

constexpr double kRowsExpected = 64; /* so many are worth a batch */

/* One query at a time: what others insert meanwhile goes row by row. */
const QueryDesc* gathering; /* nullptr: none */
Relation target;            /* the executor's */
RdmaccGatheredRows rows;

bool reads(const PlannedStmt* plan, Relation relation) {
  int count = 0;
  ListCell* cell;
  foreach (cell, plan->rtable) {
    const auto* entry = static_cast<const RangeTblEntry*>(lfirst(cell));
    if (entry->rtekind == RTE_RELATION && entry->relid == RelationGetRelid(relation)) count++;
  }
  return count > 1;
}

/* nullptr: it is none whose rows are gathered. */
Relation target_of(const QueryDesc* query) {
  if (query->operation != CMD_INSERT || !IsA(query->planstate, ModifyTableState)) return nullptr;
  const auto* state = reinterpret_cast<const ModifyTableState*>(query->planstate);
  if (outerPlan(state->ps.plan)->plan_rows < kRowsExpected) return nullptr;
  if (!rdmacc_plan_only_inserts(query->plannedstmt)) return nullptr;
  Relation relation = state->resultRelInfo->ri_RelationDesc;
  const bool takes_batches = relation->rd_rel->relkind == RELKIND_RELATION &&
                             rdmacc_is_ours(relation) && !rdmacc_inserts_are_observed(relation);
  return takes_batches ? relation : nullptr;
}

void forget(void) {
  if (gathering == nullptr) return;
  rdmacc_note_unseen_writes(nullptr);
  gathering = nullptr;
  target = nullptr;
  rdmacc_gathered_forget(&rows);
}

/* It has no rows any more, or none yet. An error of its level ends the query. */
void subtransaction_aborted(int nest) { rdmacc_gathered_abort(&rows, nest); }

void finish(bool) { forget(); }

}  // namespace

void rdmacc_gather_begin(const QueryDesc* query) {
  if (gathering != nullptr) return;
  target = target_of(query);
  if (target == nullptr) return;
  gathering = query;
  if (!reads(query->plannedstmt, target)) rdmacc_note_unseen_writes(query);
}

bool rdmacc_gather_insert(Relation rel, TupleTableSlot* slot, CommandId cid) {
  if (target != rel || rdmacc_running_query() != gathering) return false;
  if (rows.context == nullptr) {
    rdmacc_gathered_begin(&rows, rel, cid, rdmacc_raise_of_batch);
  }
  CHECK(rows.command == cid);
  const bool full = rdmacc_gathered_add(&rows, slot);
  const BridgeBytes key = rdmacc_load_key(&rows.load, rows.load.count - 1);
  const MemoryContext previous = MemoryContextSwitchTo(rows.row);
  rdmacc_row_was_inserted(rel, &rows.table, key, slot, cid); /* as good as */
  MemoryContextSwitchTo(previous);
  if (full) rdmacc_gathered_flush(&rows, rel);
  return true;
}

void rdmacc_gather_end(const QueryDesc* query) {
  if (gathering != query) return;
  if (rows.context != nullptr) {
    rdmacc_gathered_flush(&rows, target);
    rdmacc_batches_end(target);
  }
  forget();
}

void rdmacc_gather_give_up(const QueryDesc* query) {
  if (gathering == query) forget();
}

const RdmaccTransactionPart rdmacc_gathered_insert_part = {
    .finish = finish, .subtransaction_aborted = subtransaction_aborted};
