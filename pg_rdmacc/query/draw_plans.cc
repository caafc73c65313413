#include "pg_rdmacc/query/draw_plans.h"

#include "pg_rdmacc/query/client_statements.h"
#include "pg_rdmacc/relation/access_method.h"

extern "C" {
#include "access/htup_details.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/plannodes.h"
#include "nodes/primnodes.h"
#include "optimizer/planner.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/syscache.h"
}

namespace {

planner_hook_type previous_planner;

/* The extension's function in place of this one; NULL for functions that stay. */
const char* replacement_of(Oid function) {
  switch (function) {
    case F_NEXTVAL:
      return "noted_nextval";
    case F_CURRVAL:
      return "noted_currval";
    case F_LASTVAL:
      return "noted_lastval";
    case F_GEN_RANDOM_UUID:
      return "noted_uuid";
    case F_RANDOM:
      return "noted_random";
    case F_CLOCK_TIMESTAMP:
      return "noted_clock";
    default:
      return nullptr;
  }
}

/* As PostgreSQL's headers declare them for C. */
bool (*walker(void))();
bool (*walker_in_place(void))();
Node* (*mutator(void))();

bool draws(Node* node, void* context) {
  if (node == nullptr) return false;
  if (IsA(node, NextValueExpr)) return true;
  if (IsA(node, FuncExpr) && replacement_of(reinterpret_cast<FuncExpr*>(node)->funcid) != nullptr) {
    return true;
  }
  if (IsA(node, Query)) {
    return query_tree_walker(reinterpret_cast<Query*>(node), walker(), context, 0);
  }
  return expression_tree_walker(node, walker(), context);
}

bool (*walker(void))() { return reinterpret_cast<bool (*)()>(reinterpret_cast<void*>(draws)); }

/* InvalidOid in a database whose extension does not have it (yet), or where rights to it were given
 * or taken: what a statement may do must not hang on that. Rights to the schema do not matter, as
 * for what stands in a plan. */
Oid function_named(const char* name, Oid argument) {
  const Oid schema = rdmacc_extension_schema();
  if (!OidIsValid(schema)) return InvalidOid;
  const oidvector* arguments = buildoidvector(&argument, OidIsValid(argument) ? 1 : 0);
  HeapTuple tuple = SearchSysCache3(PROCNAMEARGSNSP, CStringGetDatum(name),
                                    PointerGetDatum(arguments), ObjectIdGetDatum(schema));
  if (!HeapTupleIsValid(tuple)) return InvalidOid;
  bool anybody_may = true;
  SysCacheGetAttr(PROCNAMEARGSNSP, tuple, Anum_pg_proc_proacl, &anybody_may);
  const Oid function = reinterpret_cast<Form_pg_proc>(GETSTRUCT(tuple))->oid;
  ReleaseSysCache(tuple);
  return anybody_may ? function : InvalidOid;
}

/* The extension's function, that stands there now; InvalidOid: the call is as it was. */
Oid replace_in_place(FuncExpr* call) {
  const char* name = replacement_of(call->funcid);
  if (name == nullptr) return InvalidOid;
  const bool of_sequence = call->funcid == F_NEXTVAL || call->funcid == F_CURRVAL;
  const Oid function = function_named(name, of_sequence ? REGCLASSOID : InvalidOid);
  if (!OidIsValid(function)) return InvalidOid;
  CHECK(list_length(call->args) == (of_sequence ? 1 : 0));
  call->funcid = function;
  return function;
}

/* Of identity columns, with the type of the column. */
Node* identity_call(const NextValueExpr* next) {
  const Oid function = function_named("noted_identity", REGCLASSOID);
  if (!OidIsValid(function)) return nullptr;
  Const* sequence = makeConst(REGCLASSOID, -1, InvalidOid, sizeof(Oid),
                              ObjectIdGetDatum(next->seqid), false, true);
  FuncExpr* call = makeFuncExpr(function, INT8OID, list_make1(sequence), InvalidOid, InvalidOid,
                                COERCE_EXPLICIT_CALL);
  if (next->typeId == INT8OID) return reinterpret_cast<Node*>(call);
  const Oid cast = next->typeId == INT4OID ? F_INT4_INT8 : F_INT2_INT8;
  return reinterpret_cast<Node*>(makeFuncExpr(cast, next->typeId, list_make1(call), InvalidOid,
                                              InvalidOid, COERCE_EXPLICIT_CALL));
}

Node* replace(Node* node, void* context) {
  if (node == nullptr) return nullptr;
  if (IsA(node, Query)) {
    return reinterpret_cast<Node*>(
        query_tree_mutator(reinterpret_cast<Query*>(node), mutator(), context, 0));
  }
  if (IsA(node, NextValueExpr)) {
    Node* call = identity_call(reinterpret_cast<NextValueExpr*>(node));
    if (call != nullptr) return call;
  }
  Node* copy = expression_tree_mutator(node, mutator(), context);
  if (IsA(copy, FuncExpr)) replace_in_place(reinterpret_cast<FuncExpr*>(copy));
  return copy;
}

void depend_on(PlannedStmt* statement, Oid function) {
  PlanInvalItem* item = makeNode(PlanInvalItem);
  item->cacheId = PROCOID;
  item->hashValue = GetSysCacheHashValue1(PROCOID, ObjectIdGetDatum(function));
  statement->invalItems = lappend(statement->invalItems, item);
}

Node* (*mutator(void))() { return reinterpret_cast<Node* (*)()>(reinterpret_cast<void*>(replace)); }

/* `context`: the PlannedStmt, which is made anew when rights to the function change. */
bool visit(Node* node, void* context) {
  if (node == nullptr) return false;
  if (IsA(node, FuncExpr)) {
    const Oid function = replace_in_place(reinterpret_cast<FuncExpr*>(node));
    if (OidIsValid(function)) depend_on(static_cast<PlannedStmt*>(context), function);
  }
  return expression_tree_walker(node, walker_in_place(), context);
}

bool (*walker_in_place(void))() {
  return reinterpret_cast<bool (*)()>(reinterpret_cast<void*>(visit));
}

void visit_list(PlannedStmt* statement, List* expressions) {
  visit(reinterpret_cast<Node*>(expressions), statement);
}

/* Where values of rows are computed. (Calls elsewhere end a block's journal: lasting_effects.h.) */
void visit_plan(PlannedStmt* statement, Plan* plan) {
  if (plan == nullptr) return;
  visit_list(statement, plan->targetlist);
  visit_list(statement, plan->qual);
  if (IsA(plan, ModifyTable)) {
    const auto* modify = reinterpret_cast<const ModifyTable*>(plan);
    visit_list(statement, modify->returningLists);
    visit_list(statement, modify->onConflictSet);
    visit_list(statement, modify->mergeActionLists);
  }
  if (IsA(plan, ValuesScan)) {
    visit_list(statement, reinterpret_cast<ValuesScan*>(plan)->values_lists);
  }
  if (IsA(plan, SubqueryScan)) {
    visit_plan(statement, reinterpret_cast<SubqueryScan*>(plan)->subplan);
  }
  visit_plan(statement, outerPlan(plan));
  visit_plan(statement, innerPlan(plan));
}

/* What the planner has put in the place of functions in SQL. */
void replace_in_plan(PlannedStmt* statement) {
  CHECK(statement->commandType != CMD_UTILITY && statement->planTree != nullptr);
  visit_plan(statement, statement->planTree);
  ListCell* cell;
  foreach (cell, statement->subplans) visit_plan(statement, static_cast<Plan*>(lfirst(cell)));
}

/* Whether the statement is one of a block or not: its plan may be used in one later. */
PlannedStmt* plan(Query* query, const char* text, int options, ParamListInfo params) {
  const bool notes =
      rdmacc_replay_limit > 0 && query->commandType != CMD_UTILITY && !rdmacc_explaining();
  if (notes && draws(reinterpret_cast<Node*>(query), nullptr)) {
    query = reinterpret_cast<Query*>(replace(reinterpret_cast<Node*>(query), nullptr));
  }
  PlannedStmt* planned = previous_planner != nullptr
                             ? previous_planner(query, text, options, params)
                             : standard_planner(query, text, options, params);
  /* A plan that holds a function's expression is made anew when the function changes. */
  if (notes && planned->invalItems != NIL) replace_in_plan(planned);
  return planned;
}

}  // namespace

PlannedStmt* rdmacc_with_noted_draws(PlannedStmt* statement) {
  CHECK(statement->commandType == CMD_UTILITY);
  if (!IsA(statement->utilityStmt, CallStmt) || rdmacc_replay_limit == 0) return statement;
  auto* arguments = reinterpret_cast<CallStmt*>(statement->utilityStmt)->funcexpr->args;
  if (!draws(reinterpret_cast<Node*>(arguments), nullptr)) return statement;
  auto* copy = static_cast<PlannedStmt*>(copyObjectImpl(statement));
  FuncExpr* call = reinterpret_cast<CallStmt*>(copy->utilityStmt)->funcexpr;
  call->args = reinterpret_cast<List*>(replace(reinterpret_cast<Node*>(call->args), nullptr));
  return copy;
}

void rdmacc_draw_plans_init(void) {
  previous_planner = planner_hook;
  planner_hook = plan;
}
