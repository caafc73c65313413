#include "pg_rdmacc/query/keepable_plan.h"

#include "pg_rdmacc/plan/scan.h"
#include "pg_rdmacc/query/lasting_effects.h"
#include "pg_rdmacc/relation/access_method.h"

extern "C" {
#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/pg_proc.h"
#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
#include "parser/parsetree.h"
#include "utils/rel.h"
#include "utils/syscache.h"
}

namespace {

/* One that not every role may execute is asked for its permission when an executor is made, and so
 * is what it does to the journal. */
bool is_unkeepable_function(Oid function, void*) {
  if (function >= FirstNormalObjectId || rdmacc_function_spoils_journals(function)) return true;
  const HeapTuple tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
  if (!HeapTupleIsValid(tuple)) return true;
  const bool has_permissions = !heap_attisnull(tuple, Anum_pg_proc_proacl, nullptr);
  ReleaseSysCache(tuple);
  return has_permissions;
}

/* True for what may not be kept. */
bool is_unkeepable(Node* node, void* context) {
  if (node == nullptr) return false;
  switch (nodeTag(node)) {
    case T_Var:
      if (castNode(Var, node)->varattno == 0) return true; /* a row type, looked up once */
      break;
    case T_Param:
      if (castNode(Param, node)->paramkind != PARAM_EXTERN) return true;
      break;
    case T_ScalarArrayOpExpr: { /* its other functions are not reported below */
      const auto* any = castNode(ScalarArrayOpExpr, node);
      if (OidIsValid(any->hashfuncid) || OidIsValid(any->negfuncid)) return true;
      break;
    }
    case T_Const:
    case T_FuncExpr:
    case T_OpExpr:
    case T_DistinctExpr:
    case T_NullIfExpr:
    case T_BoolExpr:
    case T_RelabelType:
    case T_CoerceViaIO:
    case T_CaseExpr:
    case T_CaseWhen:
    case T_CaseTestExpr:
    case T_CoalesceExpr:
    case T_ArrayExpr:
    case T_NullTest:
    case T_BooleanTest:
    case T_SQLValueFunction:
    case T_NextValueExpr:
    case T_TargetEntry:
    case T_List:
      break;
    default:
      return true;
  }
  if (check_functions_in_node(node, is_unkeepable_function, nullptr)) return true;
  return expression_tree_walker(
      node, reinterpret_cast<bool (*)()>(reinterpret_cast<void (*)()>(is_unkeepable)), context);
}

bool has_unkeepable(const List* expressions) {
  return is_unkeepable(reinterpret_cast<Node*>(const_cast<List*>(expressions)), nullptr);
}

bool is_keepable_lookup(const Plan* plan) {
  if (plan == nullptr || !rdmacc_is_key_lookup(plan)) return false;
  return !has_unkeepable(plan->targetlist) && !has_unkeepable(plan->qual) &&
         !has_unkeepable(reinterpret_cast<const CustomScan*>(plan)->custom_exprs);
}

/* The values of one row. */
bool is_keepable_row(const Plan* plan) {
  if (plan == nullptr || !IsA(plan, Result) || outerPlan(plan) != nullptr) return false;
  return reinterpret_cast<const Result*>(plan)->resconstantqual == nullptr && plan->qual == NIL &&
         !has_unkeepable(plan->targetlist);
}

bool writes_one_of_ours(const PlannedStmt* plan) {
  if (list_length(plan->resultRelations) != 1) return false;
  const auto number = static_cast<Index>(linitial_int(plan->resultRelations));
  return rdmacc_relation_is_ours(rt_fetch(number, plan->rtable)->relid);
}

bool is_keepable_write(const ModifyTable* modify) {
  if (list_length(modify->resultRelations) != 1 || modify->withCheckOptionLists != NIL ||
      modify->onConflictAction != ONCONFLICT_NONE || modify->operation == CMD_MERGE) {
    return false;
  }
  if (has_unkeepable(modify->returningLists)) return false;
  const Plan* source = outerPlan(&modify->plan);
  return modify->operation == CMD_INSERT ? is_keepable_row(source) : is_keepable_lookup(source);
}

bool has_plain_indexes(const ResultRelInfo* result) {
  for (int i = 0; i < result->ri_NumIndices; i++) {
    const IndexInfo* info = result->ri_IndexRelationInfo[i];
    if (info->ii_Expressions != NIL || info->ii_Predicate != NIL ||
        info->ii_ExclusionOps != nullptr) {
      return false;
    }
  }
  return true;
}

bool is_plain_target(const ResultRelInfo* result) {
  const Relation relation = result->ri_RelationDesc;
  CHECK(RelationIsValid(relation));
  const TupleConstr* constraints = RelationGetDescr(relation)->constr;
  if (constraints != nullptr && (constraints->num_check > 0 || constraints->has_generated_stored)) {
    return false;
  }
  return relation->rd_rel->relkind == RELKIND_RELATION && !relation->rd_rel->relispartition &&
         result->ri_TrigDesc == nullptr && has_plain_indexes(result);
}

}  // namespace

bool rdmacc_plan_is_keepable(const PlannedStmt* plan) {
  if (plan->subplans != NIL || plan->hasModifyingCTE || plan->jitFlags != 0 ||
      plan->parallelModeNeeded) {
    return false;
  }
  const Plan* top = plan->planTree;
  CHECK(top != nullptr);
  if (IsA(top, ModifyTable)) {
    return writes_one_of_ours(plan) && is_keepable_write(reinterpret_cast<const ModifyTable*>(top));
  }
  if (IsA(top, LockRows)) return is_keepable_lookup(outerPlan(top));
  return is_keepable_lookup(top);
}

bool rdmacc_executor_is_keepable(const EState* state, const PlanState* top) {
  const EPQState* recheck = nullptr;
  if (IsA(top, LockRowsState)) {
    recheck = &reinterpret_cast<const LockRowsState*>(top)->lr_epqstate;
  } else if (IsA(top, ModifyTableState)) {
    const auto* modify = reinterpret_cast<const ModifyTableState*>(top);
    recheck = &modify->mt_epqstate;
    if (modify->mt_nrels != 1 || !is_plain_target(modify->resultRelInfo)) return false;
  }
  if (recheck != nullptr && recheck->recheckestate != nullptr) return false;
  ListCell* cell;
  foreach (cell, state->es_exprcontexts) {
    if (static_cast<const ExprContext*>(lfirst(cell))->ecxt_callbacks != nullptr) return false;
  }
  return state->es_subplanstates == NIL && state->es_auxmodifytables == NIL &&
         state->es_trig_target_relations == NIL && state->es_tuple_routing_result_relations == NIL;
}
