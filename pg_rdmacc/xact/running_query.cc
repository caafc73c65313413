#include "pg_rdmacc/xact/running_query.h"

extern "C" {
#include "executor/executor.h"
#include "nodes/execnodes.h"
#include "nodes/plannodes.h"
#include "parser/parsetree.h"
#include "tcop/dest.h"
}

namespace {

const QueryDesc* running;
int open_queries; /* in the executor, the running one included */

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

bool rdmacc_query_returns(void) { return running != nullptr && running->plannedstmt->hasReturning; }

bool rdmacc_query_scrolls(void) {
  return running != nullptr && running->estate != nullptr &&
         (running->estate->es_top_eflags & EXEC_FLAG_BACKWARD) != 0;
}

bool rdmacc_query_fills_new_table(void) {
  if (running == nullptr || running->dest == nullptr) return false;
  return running->dest->mydest == DestIntoRel || running->dest->mydest == DestTransientRel;
}

bool rdmacc_may_show_rows_early(void) {
  return open_queries == (rdmacc_query_fills_new_table() ? 1 : 0);
}

void rdmacc_query_opened(void) { open_queries++; }
void rdmacc_query_closed(void) { open_queries = Max(open_queries - 1, 0); }
void rdmacc_forget_queries(void) { open_queries = 0; }

void rdmacc_set_running_query(const QueryDesc* query) { running = query; }
