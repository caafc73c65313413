#include "pg_rdmacc/index/insert_observers.h"

#include "pg_rdmacc/index/secondary_indexes.h"

extern "C" {
#include "access/tupdesc.h"
#include "utils/reltrigger.h"
}

namespace {

bool has_triggers(const TriggerDesc* triggers) {
  return triggers != nullptr &&
         (triggers->trig_insert_before_row || triggers->trig_insert_after_row ||
          triggers->trig_insert_instead_row || triggers->trig_insert_new_table);
}

}  // namespace

bool rdmacc_inserts_are_read(Relation relation) {
  const RdmaccIndexSet set = rdmacc_secondary_indexes(relation);
  for (int i = 0; i < set.count; i++) {
    if (set.indexes[i].unique) return true;
  }
  return false;
}

bool rdmacc_inserts_are_observed(Relation relation) {
  const TupleConstr* constraints = RelationGetDescr(relation)->constr;
  if (constraints != nullptr && constraints->num_check > 0) return true;
  return has_triggers(relation->trigdesc) || rdmacc_inserts_are_read(relation);
}

bool rdmacc_plan_only_inserts(const PlannedStmt* plan) {
  if (plan->commandType != CMD_INSERT || !IsA(plan->planTree, ModifyTable)) return false;
  const auto* modify = reinterpret_cast<const ModifyTable*>(plan->planTree);
  return plan->invalItems == NIL && !plan->hasReturning && !plan->hasModifyingCTE &&
         list_length(plan->resultRelations) == 1 && modify->onConflictAction == ONCONFLICT_NONE &&
         modify->withCheckOptionLists == NIL;
}
