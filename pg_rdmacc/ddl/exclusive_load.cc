#include "pg_rdmacc/ddl/exclusive_load.h"

#include <sys/stat.h>

#include "pg_rdmacc/ddl/exclusive_table.h"
#include "pg_rdmacc/index/insert_observers.h"
#include "pg_rdmacc/relation/access_method.h"
#include "pg_rdmacc/relation/engine_table.h"
#include "pg_rdmacc/relation/row_estimate.h"
#include "pg_rdmacc/row/row_load.h"
#include "pg_rdmacc/row/scan_rows.h"
#include "pg_rdmacc/xact/exported_snapshot.h"

extern "C" {
#include "access/table.h"
#include "catalog/pg_authid_d.h"
#include "catalog/pg_class.h"
#include "commands/trigger.h"
#include "miscadmin.h"
#include "parser/parsetree.h"
#include "utils/acl.h"
#include "utils/rel.h"
}

namespace {

/* More than the planner expects of functions of which it knows nothing. */
constexpr double kRowsExpected = 2000;

/* Of what may hold it back from being loaded in place, all that does not depend on its rows. */
bool suits(Relation relation) {
  if (!rdmacc_may_have_alone(relation)) return false;
  const TriggerDesc* triggers = relation->trigdesc;
  if (triggers != nullptr && triggers->trig_insert_before_row) return false;
  return rdmacc_estimated_rows(relation) <= 0;
}

bool may_load(void) { return rdmacc_exclusive_loads && rdmacc_may_have_tables_alone(); }

/* It wants a table of its own transaction, and an error otherwise. */
bool freezes(const CopyStmt* copy) {
  ListCell* cell;
  foreach (cell, copy->options) {
    if (strcmp(static_cast<DefElem*>(lfirst(cell))->defname, "freeze") == 0) return true;
  }
  return false;
}

bool reads_others_only(const PlannedStmt* plan, Index target) {
  ListCell* cell;
  foreach (cell, plan->rtable) {
    const auto* entry = static_cast<const RangeTblEntry*>(lfirst(cell));
    if (entry->rtekind != RTE_RELATION) continue;
    if (static_cast<Index>(foreach_current_index(cell) + 1) == target) continue;
    const bool elsewhere = entry->relkind == RELKIND_PARTITIONED_TABLE ||
                           entry->relkind == RELKIND_FOREIGN_TABLE; /* which may lead back here */
    if (elsewhere || rdmacc_relation_is_ours(entry->relid)) return false;
  }
  return true;
}

bool has_no_row(RdmaccRows* rows, Relation relation) {
  const bool none = rdmacc_rows_next(rows, relation) == nullptr;
  rdmacc_rows_end(rows);
  return none;
}

/* As far as a look shows that leaves nothing behind. It comes before the lock, for that stands in
 * the WAL and lasts until the commit where the WAL is replayed, whatever is found under it. */
bool seems_empty(Relation relation, uint32 table) {
  RdmaccRows rows;
  rdmacc_rows_begin(&rows, table, RDMACC_EVERY_COMMAND);
  rows.as_stored = true;
  return has_no_row(&rows, relation);
}

/* Others keep out: what is read so is none of the transaction's reads. */
bool is_empty(Relation relation, void*) {
  if (!suits(relation) || rdmacc_inserts_are_read(relation)) return false;
  rdmacc_rows_settle(relation);
  RdmaccRows rows;
  rdmacc_rows_begin(&rows, rdmacc_table(relation)->id, RDMACC_EVERY_COMMAND);
  rows.quiet = true;
  return has_no_row(&rows, relation);
}

}  // namespace

Oid rdmacc_exclusive_target_of_copy(const CopyStmt* copy) {
  CHECK(copy != nullptr);
  if (!copy->is_from || copy->relation == nullptr || !may_load()) return InvalidOid;
  if (freezes(copy)) return InvalidOid;
  Relation relation = table_openrv_extended(copy->relation, RowExclusiveLock, true);
  if (relation == nullptr) return InvalidOid;
  const Oid target = suits(relation) ? RelationGetRelid(relation) : InvalidOid;
  table_close(relation, NoLock);
  return target;
}

bool rdmacc_copies_large_file(const CopyStmt* copy) {
  /* A program may read the table by a connection of its own, and would wait for this one. */
  if (!copy->is_from || copy->filename == nullptr || copy->is_program) return false;
  if (!has_privs_of_role(GetUserId(), ROLE_PG_READ_SERVER_FILES)) return false;
  struct stat file;
  return stat(copy->filename, &file) == 0 && file.st_size >= RDMACC_EXCLUSIVE_LOAD_BYTES;
}

Oid rdmacc_exclusive_target_of_insert(const PlannedStmt* plan) {
  if (!IsA(plan->planTree, ModifyTable)) return InvalidOid;
  const Plan* source = outerPlan(plan->planTree);
  if (source->plan_rows < kRowsExpected) return InvalidOid;
  if (source->plan_rows * source->plan_width < RDMACC_EXCLUSIVE_LOAD_BYTES) return InvalidOid;
  if (!rdmacc_plan_only_inserts(plan) || !may_load()) return InvalidOid;
  const auto number = static_cast<Index>(linitial_int(plan->resultRelations));
  const Oid target = rt_fetch(number, plan->rtable)->relid;
  if (!reads_others_only(plan, number)) return InvalidOid;
  Relation relation = table_open(target, NoLock);
  const bool may = suits(relation) && !rdmacc_inserts_are_observed(relation);
  table_close(relation, NoLock);
  return may ? target : InvalidOid;
}

bool rdmacc_load_exclusively(Oid table) {
  /* All that it may have to wait for comes before the lock. */
  rdmacc_await_leave_to_write();
  Relation relation = table_open(table, NoLock);
  const uint32 present = rdmacc_table(relation)->id;
  const bool possible = rdmacc_may_load_beforehand(present) && seems_empty(relation, present);
  table_close(relation, NoLock);
  return possible && rdmacc_begin_anew(table, is_empty, nullptr);
}
