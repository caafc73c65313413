#include "pg_rdmacc/index/query_functions.h"

extern "C" {
#include "access/transam.h"
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "nodes/primnodes.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
}

namespace {

/* All that PostgreSQL 15 has. */
bool makes_queries(Oid function) {
  switch (function) {
    case F_TABLE_TO_XML:
    case F_TABLE_TO_XML_AND_XMLSCHEMA:
    case F_QUERY_TO_XML:
    case F_QUERY_TO_XML_AND_XMLSCHEMA:
    case F_CURSOR_TO_XML:
    case F_SCHEMA_TO_XML:
    case F_SCHEMA_TO_XML_AND_XMLSCHEMA:
    case F_DATABASE_TO_XML:
    case F_DATABASE_TO_XML_AND_XMLSCHEMA:
    case F_TS_STAT_TEXT:
    case F_TS_STAT_TEXT_TEXT:
    case F_TS_REWRITE_TSQUERY_TEXT:
    /* Values of any type come out of these, and those of a domain are checked on the way. */
    case F_JSON_POPULATE_RECORD:
    case F_JSON_POPULATE_RECORDSET:
    case F_JSON_TO_RECORD:
    case F_JSON_TO_RECORDSET:
    case F_JSONB_POPULATE_RECORD:
    case F_JSONB_POPULATE_RECORDSET:
    case F_JSONB_TO_RECORD:
    case F_JSONB_TO_RECORDSET:
      return true;
    default:
      return false;
  }
}

struct Search {
  bool of_users; /* their functions count as well */
  Oid found;
};

/* True: it is one, and noted. */
bool check_function(Oid function, void* context) {
  auto* search = static_cast<Search*>(context);
  const bool of_user = search->of_users && function >= FirstUnpinnedObjectId;
  if (!of_user && !makes_queries(function)) return false;
  search->found = function;
  return true;
}

/* It may have a condition, which is a user's, or a part that has one. */
bool may_be_checked(Oid type) {
  return type >= FirstNormalObjectId && get_typtype(type) != TYPTYPE_ENUM;
}

/* A value gets its type. */
bool checks_values(const Node* node) {
  if (IsA(node, CoerceToDomain)) return true;
  if (IsA(node, CoerceViaIO)) {
    return may_be_checked(reinterpret_cast<const CoerceViaIO*>(node)->resulttype);
  }
  if (!IsA(node, TableFunc)) return false;
  ListCell* cell;
  foreach (cell, reinterpret_cast<const TableFunc*>(node)->coltypes) {
    if (may_be_checked(lfirst_oid(cell))) return true;
  }
  return false;
}

bool walk(Node* node, Search* search) {
  if (node == nullptr) return false;
  if (checks_values(node)) search->found = F_DOMAIN_IN;
  if (OidIsValid(search->found)) return true;
  if (check_functions_in_node(node, check_function, search)) return true;
  /* PostgreSQL declares walkers without their parameters. */
  const auto walker = reinterpret_cast<bool (*)()>(reinterpret_cast<void (*)()>(walk));
  if (IsA(node, Query)) {
    return query_tree_walker(reinterpret_cast<Query*>(node), walker, search, 0);
  }
  return expression_tree_walker(node, walker, search);
}

}  // namespace

bool rdmacc_expression_makes_queries(Node* expression) {
  Search search = {.of_users = true, .found = InvalidOid};
  return walk(expression, &search);
}

Oid rdmacc_function_with_queries(Query* query) {
  Search search = {.of_users = false, .found = InvalidOid}; /* plans note users' by themselves */
  /* Rows that come one by one are never put so. */
  const bool of_rows = query->jointree != nullptr && query->jointree->fromlist != NIL;
  if (query->commandType != CMD_INSERT || !of_rows) return InvalidOid;
  walk(reinterpret_cast<Node*>(query), &search);
  return search.found;
}

void rdmacc_note_function(PlannedStmt* plan, Oid function) {
  CHECK(plan != nullptr);
  if (!OidIsValid(function)) return;
  PlanInvalItem* item = makeNode(PlanInvalItem);
  item->cacheId = PROCOID;
  item->hashValue = GetSysCacheHashValue1(PROCOID, ObjectIdGetDatum(function));
  plan->invalItems = lappend(plan->invalItems, item);
}
