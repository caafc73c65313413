#include "pg_rdmacc/relation/access_method.h"

extern "C" {
#include "access/htup_details.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "commands/defrem.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
}

namespace {

const TableAmRoutine* routine;

/* Statements ask for it some times each. Forgotten with any change of pg_am. */
Oid known_access_method;
bool watches_changes;

void forget_access_method(Datum, int, uint32) { known_access_method = InvalidOid; }

}  // namespace

void rdmacc_set_table_routine(const TableAmRoutine* table_routine) {
  CHECK(routine == nullptr && table_routine != nullptr);
  routine = table_routine;
}

Oid rdmacc_access_method(void) {
  if (OidIsValid(known_access_method)) return known_access_method;
  if (!watches_changes) CacheRegisterSyscacheCallback(AMOID, forget_access_method, 0);
  watches_changes = true;
  known_access_method = get_table_am_oid(RDMACC_ACCESS_METHOD, true);
  return known_access_method;
}

Oid rdmacc_handler(void) {
  HeapTuple tuple = SearchSysCache1(AMOID, ObjectIdGetDatum(rdmacc_access_method()));
  if (!HeapTupleIsValid(tuple)) return InvalidOid;
  const Oid handler = reinterpret_cast<Form_pg_am>(GETSTRUCT(tuple))->amhandler;
  ReleaseSysCache(tuple);
  return handler;
}

Oid rdmacc_extension_schema(void) {
  const Oid handler = rdmacc_handler();
  return OidIsValid(handler) ? get_func_namespace(handler) : InvalidOid;
}

bool rdmacc_is_ours(Relation relation) {
  CHECK(RelationIsValid(relation));
  return relation->rd_tableam == routine;
}

bool rdmacc_relation_is_ours(Oid relation) {
  const Oid access_method = rdmacc_access_method();
  if (!OidIsValid(access_method)) return false;
  HeapTuple tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relation));
  if (!HeapTupleIsValid(tuple)) return false;
  const auto* form = reinterpret_cast<Form_pg_class>(GETSTRUCT(tuple));
  const bool ours = form->relam == access_method;
  ReleaseSysCache(tuple);
  return ours;
}
