#include "pg_rdmacc/query/exclusive_query.h"

#include "pg_rdmacc/ddl/exclusive_delete.h"
#include "pg_rdmacc/ddl/exclusive_load.h"
#include "pg_rdmacc/query/new_attempt.h"

extern "C" {
#include "utils/snapmgr.h"
}

namespace {

Oid target_of(const PlannedStmt* plan) {
  if (plan->commandType == CMD_INSERT) return rdmacc_exclusive_target_of_insert(plan);
  if (plan->commandType == CMD_DELETE) return rdmacc_exclusive_target_of_delete(plan);
  return InvalidOid;
}

void try_to_have(Oid table, bool deletes, uint64* deleted) {
  PushActiveSnapshot(GetTransactionSnapshot());
  if (deletes) {
    rdmacc_delete_exclusively(table, deleted);
  } else {
    rdmacc_load_exclusively(table);
  }
  PopActiveSnapshot();
}

}  // namespace

void rdmacc_have_table_alone(QueryDesc* query, uint64* deleted) {
  *deleted = 0;
  const PlannedStmt* plan = query->plannedstmt;
  const Oid table = target_of(plan);
  if (!OidIsValid(table)) return;
  const bool started = query->estate != nullptr;
  if (started) rdmacc_end_executor(query);
  try_to_have(table, plan->commandType == CMD_DELETE, deleted);
  if (started) rdmacc_start_executor_again(query);
}
