#include "pg_rdmacc/table/gathered_insert.h"

#include "pg_rdmacc/index/insert_observers.h"
#include "pg_rdmacc/relation/access_method.h"
#include "pg_rdmacc/server/error.h"
#include "pg_rdmacc/table/modify.h"
#include "pg_rdmacc/table/row_batch.h"
#include "pg_rdmacc/xact/running_query.h"

extern "C" {
#include "access/relation.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "nodes/execnodes.h"
#include "nodes/plannodes.h"
#include "nodes/primnodes.h"
#include "storage/lmgr.h"
#include "utils/memutils.h"
}

namespace {

constexpr double kRowsExpected = 64; /* so many are worth a batch */
constexpr int kTargetsMax = 32;      /* partitions; rows of others go one by one */

/* One query at a time: what others insert meanwhile goes row by row. */
const QueryDesc* gathering; /* nullptr: none */
Relation named;             /* the executor's: the table, or one whose partitions get the rows */
RdmaccGatheredRows targets[kTargetsMax];
int target_count;

/* Something besides the rows' destination that they could be seen in. */
bool reads(const PlannedStmt* plan, Index destination) {
  ListCell* cell;
  foreach (cell, plan->rtable) {
    const auto* entry = static_cast<const RangeTblEntry*>(lfirst(cell));
    if (static_cast<Index>(foreach_current_index(cell) + 1) == destination) continue;
    if (entry->rtekind != RTE_RELATION) continue;
    if (entry->relid == RelationGetRelid(named)) return true;
    if (named->rd_rel->relkind == RELKIND_PARTITIONED_TABLE) return true;
  }
  return false;
}

/* Nothing reads a row of it right after the row was put there, if its inserts call no functions. */
bool takes_batches(Relation relation) {
  return relation->rd_rel->relkind == RELKIND_RELATION && rdmacc_is_ours(relation) &&
         !rdmacc_inserts_are_read(relation);
}

/* Triggers and functions of one partition may look at the rows of others. None gets another one
 * from here on. What is locked otherwise is not waited for: no row may go there. */
bool no_part_observes(Relation divided) {
  ListCell* cell;
  foreach (cell, find_all_inheritors(RelationGetRelid(divided), NoLock, nullptr)) {
    const Oid part = lfirst_oid(cell);
    if (!ConditionalLockRelationOid(part, RowExclusiveLock)) return false;
    Relation relation = try_relation_open(part, NoLock);
    if (relation == nullptr) return false;
    const char kind = relation->rd_rel->relkind;
    const bool known = kind == RELKIND_RELATION || kind == RELKIND_PARTITIONED_TABLE;
    const bool observes = !known || rdmacc_inserts_call_functions(relation);
    relation_close(relation, NoLock);
    if (observes) return false;
  }
  return true;
}

bool may_be_gathered(const QueryDesc* query) {
  if (query->operation != CMD_INSERT || !IsA(query->planstate, ModifyTableState)) return false;
  const auto* state = reinterpret_cast<const ModifyTableState*>(query->planstate);
  if (outerPlan(state->ps.plan)->plan_rows < kRowsExpected) return false;
  if (!rdmacc_plan_only_inserts(query->plannedstmt)) return false;
  Relation relation = state->resultRelInfo->ri_RelationDesc;
  if (relation->rd_rel->relkind == RELKIND_PARTITIONED_TABLE) return no_part_observes(relation);
  return takes_batches(relation) && !rdmacc_inserts_call_functions(relation);
}

void forget(void) {
  if (gathering == nullptr) return;
  rdmacc_note_unseen_writes(nullptr);
  gathering = nullptr;
  named = nullptr;
  for (int i = 0; i < target_count; i++) rdmacc_gathered_forget(&targets[i]);
  target_count = 0;
}

/* It has no rows any more, or none yet. An error of its level ends the query. */
void subtransaction_aborted(int nest) {
  for (int i = 0; i < target_count; i++) rdmacc_gathered_abort(&targets[i], nest);
}

void finish(bool) { forget(); }

/* nullptr: its rows go one by one. Often it is the last one's. */
RdmaccGatheredRows* target_of(Relation rel, CommandId cid) {
  if (rel != named && named->rd_rel->relkind != RELKIND_PARTITIONED_TABLE) return nullptr;
  for (int i = target_count - 1; i >= 0; i--) {
    if (targets[i].relation == RelationGetRelid(rel)) return &targets[i];
  }
  if (target_count == kTargetsMax || !takes_batches(rel)) return nullptr;
  RdmaccGatheredRows* rows = &targets[target_count];
  rdmacc_gathered_begin(rows, rel, cid, rdmacc_raise_of_batch);
  target_count++;
  return rows;
}

}  // namespace

void rdmacc_gather_begin(const QueryDesc* query) {
  if (gathering != nullptr || !may_be_gathered(query)) return;
  CHECK(target_count == 0);
  const auto* state = reinterpret_cast<const ModifyTableState*>(query->planstate);
  gathering = query;
  named = state->resultRelInfo->ri_RelationDesc;
  const Index destination = state->resultRelInfo->ri_RangeTableIndex;
  if (!reads(query->plannedstmt, destination)) rdmacc_note_unseen_writes(query);
}

bool rdmacc_gather_insert(Relation rel, TupleTableSlot* slot, CommandId cid) {
  if (gathering == nullptr || rdmacc_running_query() != gathering) return false;
  RdmaccGatheredRows* rows = target_of(rel, cid);
  if (rows == nullptr) return false;
  CHECK(rows->command == cid && rows->context != nullptr);
  const bool full = rdmacc_gathered_add(rows, slot);
  const BridgeBytes key = rdmacc_load_key(&rows->load, rows->load.count - 1);
  const MemoryContext previous = MemoryContextSwitchTo(rows->row);
  rdmacc_row_was_inserted(rel, &rows->table, key, slot, cid); /* as good as */
  MemoryContextSwitchTo(previous);
  if (full) rdmacc_gathered_flush(rows, rel);
  return true;
}

void rdmacc_gather_end(const QueryDesc* query) {
  if (gathering != query) return;
  for (int i = 0; i < target_count; i++) rdmacc_gathered_end(&targets[i]);
  forget();
}

void rdmacc_gather_give_up(const QueryDesc* query) {
  if (gathering == query) forget();
}

const RdmaccTransactionPart rdmacc_gathered_insert_part = {
    .finish = finish, .subtransaction_aborted = subtransaction_aborted};
