#include "pg_rdmacc/index/insert_observers.h"

#include "pg_rdmacc/index/query_functions.h"
#include "pg_rdmacc/index/secondary_indexes.h"
#include "pg_rdmacc/relation/access_method.h"

extern "C" {
#include "access/tupdesc.h"
#include "nodes/nodes.h"
#include "utils/reltrigger.h"
}

namespace {

bool has_triggers(const TriggerDesc* triggers) {
  return triggers != nullptr &&
         (triggers->trig_insert_before_row || triggers->trig_insert_after_row ||
          triggers->trig_insert_instead_row || triggers->trig_insert_new_table);
}

/* CHECKs: a user's function may do anything. */
bool checks_make_queries(const TupleConstr* constraints) {
  const int count = constraints != nullptr ? constraints->num_check : 0;
  for (int i = 0; i < count; i++) {
    Node* condition = static_cast<Node*>(stringToNode(constraints->check[i].ccbin));
    if (rdmacc_expression_makes_queries(condition)) return true;
  }
  return false;
}

}  // namespace

bool rdmacc_inserts_are_read(Relation relation) {
  if (!rdmacc_is_ours(relation)) return false; /* by PostgreSQL alone */
  const RdmaccIndexSet set = rdmacc_secondary_indexes(relation);
  for (int i = 0; i < set.count; i++) {
    if (set.indexes[i].unique) return true;
  }
  return false;
}

bool rdmacc_inserts_call_functions(Relation relation) {
  return has_triggers(relation->trigdesc) ||
         checks_make_queries(RelationGetDescr(relation)->constr);
}

bool rdmacc_inserts_are_observed(Relation relation) {
  return rdmacc_inserts_call_functions(relation) || rdmacc_inserts_are_read(relation);
}

bool rdmacc_plan_only_inserts(const PlannedStmt* plan) {
  if (plan->commandType != CMD_INSERT || !IsA(plan->planTree, ModifyTable)) return false;
  const auto* modify = reinterpret_cast<const ModifyTable*>(plan->planTree);
  return plan->invalItems == NIL && !plan->hasModifyingCTE &&
         list_length(plan->resultRelations) == 1 && modify->onConflictAction == ONCONFLICT_NONE &&
         modify->withCheckOptionLists == NIL;
}
