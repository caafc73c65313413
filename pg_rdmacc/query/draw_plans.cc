#include "pg_rdmacc/query/draw_plans.h"

#include "pg_rdmacc/query/client_statements.h"
#include "pg_rdmacc/relation/access_method.h"

extern "C" {
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
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

/* InvalidOid in a database whose extension does not have it (yet). The client's rights to the
 * schema do not matter, as for what stands in a plan. */
Oid function_named(const char* name, Oid argument) {
  const Oid schema = rdmacc_extension_schema();
  if (!OidIsValid(schema)) return InvalidOid;
  const oidvector* arguments = buildoidvector(&argument, OidIsValid(argument) ? 1 : 0);
  return GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid, CStringGetDatum(name),
                         PointerGetDatum(arguments), ObjectIdGetDatum(schema));
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
  if (!IsA(copy, FuncExpr)) return copy;
  auto* call = reinterpret_cast<FuncExpr*>(copy);
  const char* name = replacement_of(call->funcid);
  if (name == nullptr) return copy;
  const bool of_sequence = call->funcid == F_NEXTVAL || call->funcid == F_CURRVAL;
  const Oid argument = of_sequence ? REGCLASSOID : InvalidOid;
  const Oid function = function_named(name, argument);
  if (OidIsValid(function)) call->funcid = function;
  return copy;
}

Node* (*mutator(void))() { return reinterpret_cast<Node* (*)()>(reinterpret_cast<void*>(replace)); }

/* Whether the statement is one of a block or not: its plan may be used in one later. */
PlannedStmt* plan(Query* query, const char* text, int options, ParamListInfo params) {
  if (rdmacc_replay_limit > 0 && query->commandType != CMD_UTILITY && !rdmacc_explaining() &&
      draws(reinterpret_cast<Node*>(query), nullptr)) {
    query = reinterpret_cast<Query*>(replace(reinterpret_cast<Node*>(query), nullptr));
  }
  if (previous_planner != nullptr) return previous_planner(query, text, options, params);
  return standard_planner(query, text, options, params);
}

}  // namespace

void rdmacc_draw_plans_init(void) {
  previous_planner = planner_hook;
  planner_hook = plan;
}
