#include "pg_rdmacc/ddl/exclusive_delete.h"

#include "pg_rdmacc/ddl/exclusive_table.h"
#include "pg_rdmacc/relation/engine_table.h"
#include "pg_rdmacc/row/scan_rows.h"
#include "pg_rdmacc/xact/exported_snapshot.h"

extern "C" {
#include "access/table.h"
#include "catalog/pg_class.h"
#include "commands/trigger.h"
#include "parser/parsetree.h"
#include "pgstat.h"
#include "utils/rel.h"
}

namespace {

/* As many as are deleted one by one in the two milliseconds that a new file takes. */
constexpr double kRowsExpected = 2000;

bool has_triggers(const TriggerDesc* triggers) {
  return triggers != nullptr &&
         (triggers->trig_delete_before_row || triggers->trig_delete_after_row ||
          triggers->trig_delete_before_statement || triggers->trig_delete_after_statement);
}

bool suits(Relation relation) {
  return rdmacc_may_have_alone(relation) && !has_triggers(relation->trigdesc);
}

/* One scan of the table without conditions, and no other table (views only lead to it). */
bool deletes_all(const PlannedStmt* plan, Index target) {
  const Plan* source = outerPlan(plan->planTree);
  if (!IsA(source, SeqScan) || source->qual != NIL || source->initPlan != NIL) return false;
  if (reinterpret_cast<const Scan*>(source)->scanrelid != target) return false;
  ListCell* cell;
  foreach (cell, plan->rtable) {
    const auto* entry = static_cast<const RangeTblEntry*>(lfirst(cell));
    const bool is_target = static_cast<Index>(foreach_current_index(cell) + 1) == target;
    if (!is_target && entry->relkind != RELKIND_VIEW) return false;
  }
  return true;
}

bool only_deletes(const PlannedStmt* plan) {
  return plan->commandType == CMD_DELETE && IsA(plan->planTree, ModifyTable) &&
         list_length(plan->resultRelations) == 1 && plan->planTree->initPlan == NIL &&
         plan->subplans == NIL && plan->rowMarks == NIL && !plan->hasReturning &&
         !plan->hasModifyingCTE;
}

/* Others keep out: what is read so is none of the transaction's reads. */
bool count_rows(Relation relation, void* context) {
  if (!suits(relation)) return false;
  rdmacc_rows_settle(relation);
  RdmaccRows rows;
  rdmacc_rows_begin(&rows, rdmacc_table(relation)->id, RDMACC_EVERY_COMMAND);
  rows.quiet = true;
  rows.wants.count_only = true;
  uint64 count = 0;
  while (rdmacc_rows_count_next(&rows, relation)) count++;
  *static_cast<uint64*>(context) = count;
  pgstat_count_heap_scan(relation);
  return true;
}

/* As the rows' deletion one by one would have counted, whatever becomes of the transaction. */
void report(Oid table, uint64 rows) {
  Relation relation = table_open(table, NoLock);
  if (pgstat_should_count_relation(relation)) {
    relation->pgstat_info->t_counts.t_tuples_deleted += static_cast<PgStat_Counter>(rows);
  }
  table_close(relation, NoLock);
}

}  // namespace

Oid rdmacc_exclusive_target_of_delete(const PlannedStmt* plan) {
  if (!only_deletes(plan) || outerPlan(plan->planTree)->plan_rows < kRowsExpected) {
    return InvalidOid;
  }
  const auto target = static_cast<Index>(linitial_int(plan->resultRelations));
  if (!rdmacc_exclusive_deletes || !deletes_all(plan, target)) return InvalidOid;
  if (!rdmacc_may_have_tables_alone()) return InvalidOid;
  Relation relation = table_open(rt_fetch(target, plan->rtable)->relid, NoLock);
  const Oid table = suits(relation) ? RelationGetRelid(relation) : InvalidOid;
  table_close(relation, NoLock);
  return table;
}

bool rdmacc_delete_exclusively(Oid table, uint64* rows) {
  rdmacc_await_leave_to_write(); /* before the lock: it may have to wait */
  if (!rdmacc_begin_anew(table, count_rows, rows)) return false;
  report(table, *rows);
  return true;
}
