#include <cctype>

#include "pg_rdmacc/plan/planner.h"
#include "pg_rdmacc/relation/access_method.h"
#include "pg_rdmacc/xact/guests.h"

extern "C" {
#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/transam.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "nodes/nodeFuncs.h"
#include "nodes/parsenodes.h"
#include "optimizer/cost.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/syscache.h"
}

namespace {

bool is_part_of_name(char c) {
  return isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || IS_HIGHBIT_SET(c);
}

bool has_word(const char* text, const char* word) {
  const auto length = static_cast<int>(strlen(word));
  for (const char* at = text; *at != '\0'; at++) {
    if (pg_strncasecmp(at, word, static_cast<Size>(length)) != 0) continue;
    if ((at == text || !is_part_of_name(at[-1])) && !is_part_of_name(at[length])) return true;
  }
  return false;
}

/* A table is behind one of two words. Most functions that have none are expressions, which become a
 * part of the plan; their body may also be a tree of nodes. */
bool may_name_table(HeapTuple function) {
  bool is_null = false;
  SysCacheGetAttr(PROCOID, function, Anum_pg_proc_prosqlbody, &is_null);
  if (!is_null) return true;
  const Datum source = SysCacheGetAttr(PROCOID, function, Anum_pg_proc_prosrc, &is_null);
  if (is_null) return true;
  char* body = TextDatumGetCString(source);
  const bool may = has_word(body, "from") || has_word(body, "table");
  pfree(body);
  return may;
}

bool may_make_queries(Oid function, void* context);

bool parts_may_make_queries(Oid aggregate) {
  HeapTuple tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(aggregate));
  if (!HeapTupleIsValid(tuple)) return false;
  const auto* form = reinterpret_cast<Form_pg_aggregate>(GETSTRUCT(tuple));
  const Oid parts[] = {form->aggtransfn, form->aggcombinefn, form->aggfinalfn};
  ReleaseSysCache(tuple);
  for (const Oid part : parts) {
    if (may_make_queries(part, nullptr)) return true;
  }
  return false;
}

/* Those that are not for workers keep them out by themselves. Functions in C are taken for ones
 * that make none. */
bool may_make_queries(Oid function, void*) {
  if (function < FirstNormalObjectId) return false;
  HeapTuple tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
  if (!HeapTupleIsValid(tuple)) return false;
  const auto* form = reinterpret_cast<Form_pg_proc>(GETSTRUCT(tuple));
  const bool is_aggregate = form->prokind == PROKIND_AGGREGATE;
  const Oid language = form->prolang;
  const bool compiled = language == INTERNALlanguageId || language == ClanguageId;
  const bool may = form->proparallel == PROPARALLEL_SAFE && !compiled &&
                   (language != SQLlanguageId || may_name_table(tuple));
  ReleaseSysCache(tuple);
  return is_aggregate ? parts_may_make_queries(function) : may;
}

bool walk(Node* node, void*) {
  if (node == nullptr) return false;
  if (check_functions_in_node(node, may_make_queries, nullptr)) return true;
  /* PostgreSQL declares walkers without their parameters. */
  const auto walker = reinterpret_cast<bool (*)()>(reinterpret_cast<void (*)()>(walk));
  if (IsA(node, Query)) {
    return query_tree_walker(reinterpret_cast<Query*>(node), walker, nullptr, 0);
  }
  return expression_tree_walker(node, walker, nullptr);
}

/* Each table depends on its access method. */
bool has_tables_of_ours(void) {
  ScanKeyData keys[2];
  ScanKeyInit(&keys[0], Anum_pg_depend_refclassid, BTEqualStrategyNumber, F_OIDEQ,
              ObjectIdGetDatum(AccessMethodRelationId));
  ScanKeyInit(&keys[1], Anum_pg_depend_refobjid, BTEqualStrategyNumber, F_OIDEQ,
              ObjectIdGetDatum(rdmacc_access_method()));
  Relation depend = table_open(DependRelationId, AccessShareLock);
  SysScanDesc scan =
      systable_beginscan(depend, DependReferenceIndexId, true, nullptr, lengthof(keys), keys);
  bool found = false;
  for (HeapTuple tuple = systable_getnext(scan); HeapTupleIsValid(tuple) && !found;
       tuple = systable_getnext(scan)) {
    const auto* form = reinterpret_cast<Form_pg_depend>(GETSTRUCT(tuple));
    found = form->classid == RelationRelationId;
  }
  systable_endscan(scan);
  table_close(depend, AccessShareLock);
  return found;
}

}  // namespace

bool rdmacc_may_have_workers(Query* query, int options, bool ours) {
  CHECK(OidIsValid(rdmacc_access_method()));
  if (ours && !rdmacc_may_have_guests()) return false;
  if ((options & CURSOR_OPT_PARALLEL_OK) == 0 || max_parallel_workers_per_gather == 0) return true;
  const bool calls =
      query->commandType == CMD_SELECT && walk(reinterpret_cast<Node*>(query), nullptr);
  return !calls || !has_tables_of_ours();
}
