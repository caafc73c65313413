#include "pg_rdmacc/xact/running_query.h"

extern "C" {
#include "access/xact.h"
#include "executor/executor.h"
#include "nodes/execnodes.h"
#include "nodes/plannodes.h"
#include "parser/parsetree.h"
#include "tcop/dest.h"
#include "utils/memutils.h"
}

namespace {

struct OpenQuery {
  const QueryDesc* query;
  int nest; /* of the subtransaction that it ends with, at the latest */
};

const QueryDesc* running;
const QueryDesc* unseen; /* whose writes are not seen before its end */
RdmaccUtility utility;
int depth_of_running; /* of utility statements */
List* open_queries;   /* in the executor, the running one included; in TopMemoryContext */

void forget_from(int nest) {
  ListCell* cell;
  foreach (cell, open_queries) {
    auto* each = static_cast<OpenQuery*>(lfirst(cell));
    if (each->nest < nest) continue;
    open_queries = foreach_delete_current(open_queries, cell);
    pfree(each);
  }
}

void subtransaction_committed(int nest) {
  ListCell* cell;
  foreach (cell, open_queries) {
    auto* each = static_cast<OpenQuery*>(lfirst(cell));
    each->nest = Min(each->nest, nest - 1);
  }
}

void forget(void) {
  unseen = nullptr;
  forget_from(0);
}

}  // namespace

const QueryDesc* rdmacc_running_query(void) { return running; }

bool rdmacc_query_needs_handles(Relation relation) {
  if (running == nullptr) return false;
  CHECK(RelationIsValid(relation));
  const PlannedStmt* statement = running->plannedstmt;
  const Oid relid = RelationGetRelid(relation);
  ListCell* cell;
  foreach (cell, statement->resultRelations) {
    const auto number = static_cast<Index>(lfirst_int(cell));
    if (rt_fetch(number, statement->rtable)->relid == relid) return true;
  }
  foreach (cell, statement->rowMarks) {
    const auto* mark = static_cast<const PlanRowMark*>(lfirst(cell));
    if (RowMarkRequiresRowShareLock(mark->markType) &&
        rt_fetch(mark->rti, statement->rtable)->relid == relid) {
      return true;
    }
  }
  return false;
}

bool rdmacc_query_keeps_handles(Relation relation) {
  CHECK(RelationIsValid(relation));
  if (rdmacc_query_needs_handles(relation)) return true;
  if (running == nullptr) return false;
  const PlannedStmt* statement = running->plannedstmt;
  bool passes_locks = false, referenced = false;
  ListCell* cell;
  foreach (cell, statement->rowMarks) {
    const auto* mark = static_cast<const PlanRowMark*>(lfirst(cell));
    if (RowMarkRequiresRowShareLock(mark->markType)) {
      passes_locks |= mark->waitPolicy != LockWaitBlock;
    } else {
      referenced |= rt_fetch(mark->rti, statement->rtable)->relid == RelationGetRelid(relation);
    }
  }
  return passes_locks && referenced;
}

bool rdmacc_query_writes_as_it_scans(void) {
  if (running == nullptr) return false;
  const PlannedStmt* statement = running->plannedstmt;
  const Plan* plan = statement->planTree;
  return IsA(plan, ModifyTable) && IsA(outerPlan(plan), SeqScan) && statement->rowMarks == NIL &&
         list_length(statement->resultRelations) == 1;
}

bool rdmacc_query_returns(void) { return running != nullptr && running->plannedstmt->hasReturning; }

bool rdmacc_query_scrolls(void) {
  return running != nullptr && running->estate != nullptr &&
         (running->estate->es_top_eflags & EXEC_FLAG_BACKWARD) != 0;
}

bool rdmacc_query_fills_new_table(void) {
  if (running == nullptr || running->dest == nullptr) return false;
  if (utility.depth != depth_of_running) return false;
  return running->dest->mydest == DestIntoRel || running->dest->mydest == DestTransientRel;
}

void rdmacc_note_unseen_writes(const QueryDesc* query) { unseen = query; }

bool rdmacc_may_show_rows_early(void) {
  const bool only_fills =
      rdmacc_query_fills_new_table() || (running != nullptr && running == unseen);
  return list_length(open_queries) == (only_fills ? 1 : 0);
}

bool rdmacc_other_queries_open(void) { return list_length(open_queries) > 1; }

void rdmacc_query_opened(const QueryDesc* query) {
  const MemoryContext previous = MemoryContextSwitchTo(TopMemoryContext);
  auto* opened = static_cast<OpenQuery*>(palloc(sizeof(OpenQuery)));
  *opened = {query, GetCurrentTransactionNestLevel()};
  open_queries = lappend(open_queries, opened);
  MemoryContextSwitchTo(previous);
}

void rdmacc_query_closed(const QueryDesc* query) {
  ListCell* cell;
  foreach (cell, open_queries) {
    auto* each = static_cast<OpenQuery*>(lfirst(cell));
    if (each->query != query) continue;
    open_queries = foreach_delete_current(open_queries, cell);
    pfree(each);
  }
}

RdmaccRunningQuery rdmacc_begin_running(const QueryDesc* query) {
  const RdmaccRunningQuery outer = {running, depth_of_running};
  running = query;
  depth_of_running = utility.depth;
  return outer;
}

void rdmacc_end_running(RdmaccRunningQuery outer) {
  running = outer.query;
  depth_of_running = outer.utility_depth;
}

RdmaccUtility rdmacc_begin_utility(const Node* statement) {
  CHECK(statement != nullptr && utility.depth >= 0);
  const RdmaccUtility outer = utility;
  utility = {outer.depth + 1, IsA(statement, CopyStmt)};
  return outer;
}

void rdmacc_end_utility(RdmaccUtility outer) {
  CHECK(outer.depth + 1 == utility.depth);
  utility = outer;
}

bool rdmacc_in_utility(void) { return utility.depth > 0; }

bool rdmacc_in_definition(void) {
  const int of_queries = running == nullptr ? 0 : depth_of_running;
  return utility.depth > of_queries && !utility.copies;
}

const RdmaccTransactionPart rdmacc_running_query_part = {
    .subtransaction_committed = subtransaction_committed,
    .subtransaction_aborted = forget_from,
    .forget = forget};
