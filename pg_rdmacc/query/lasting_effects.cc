#include "pg_rdmacc/query/lasting_effects.h"

#include "pg_rdmacc/query/journal.h"
#include "pg_rdmacc/relation/access_method.h"

extern "C" {
#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "commands/defrem.h"
#include "commands/proclang.h"
#include "tcop/tcopprot.h"
#include "utils/fmgroids.h"
#include "utils/syscache.h"
}

namespace {

object_access_hook_type previous_access;

/* Effects that no ROLLBACK takes back, and that matter when they come twice; and what tells of
 * such. */
bool has_lasting_effect(Oid function) {
  switch (function) {
    case F_PG_ADVISORY_LOCK_INT8:
    case F_PG_ADVISORY_LOCK_SHARED_INT8:
    case F_PG_TRY_ADVISORY_LOCK_INT8:
    case F_PG_TRY_ADVISORY_LOCK_SHARED_INT8:
    case F_PG_ADVISORY_UNLOCK_INT8:
    case F_PG_ADVISORY_UNLOCK_SHARED_INT8:
    case F_PG_ADVISORY_LOCK_INT4_INT4:
    case F_PG_ADVISORY_LOCK_SHARED_INT4_INT4:
    case F_PG_TRY_ADVISORY_LOCK_INT4_INT4:
    case F_PG_TRY_ADVISORY_LOCK_SHARED_INT4_INT4:
    case F_PG_ADVISORY_UNLOCK_INT4_INT4:
    case F_PG_ADVISORY_UNLOCK_SHARED_INT4_INT4:
    case F_PG_ADVISORY_UNLOCK_ALL:
    /* Of a plan that was made outside of a block; within one it is noted. */
    case F_CURRVAL:
    case F_LASTVAL:
    case F_SETVAL_REGCLASS_INT8:
    case F_SETVAL_REGCLASS_INT8_BOOL:
      return true;
    default:
      return false;
  }
}

/* An attempt that is rolled back gives these locks away, and what they guard may lie elsewhere. */
bool locks_for_transaction(Oid function) {
  switch (function) {
    case F_PG_ADVISORY_XACT_LOCK_INT8:
    case F_PG_ADVISORY_XACT_LOCK_SHARED_INT8:
    case F_PG_TRY_ADVISORY_XACT_LOCK_INT8:
    case F_PG_TRY_ADVISORY_XACT_LOCK_SHARED_INT8:
    case F_PG_ADVISORY_XACT_LOCK_INT4_INT4:
    case F_PG_ADVISORY_XACT_LOCK_SHARED_INT4_INT4:
    case F_PG_TRY_ADVISORY_XACT_LOCK_INT4_INT4:
    case F_PG_TRY_ADVISORY_XACT_LOCK_SHARED_INT4_INT4:
      return true;
    default:
      return false;
  }
}

bool is_trusted(Oid language) {
  HeapTuple tuple = SearchSysCache1(LANGOID, ObjectIdGetDatum(language));
  if (!HeapTupleIsValid(tuple)) return false;
  const bool trusted = reinterpret_cast<Form_pg_language>(GETSTRUCT(tuple))->lanpltrusted;
  ReleaseSysCache(tuple);
  return trusted;
}

/* Volatile functions in C, as those of dblink, and untrusted languages reach beyond the server. */
bool may_reach_outside(Oid function) {
  if (function < FirstNormalObjectId) return false;
  HeapTuple tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
  if (!HeapTupleIsValid(tuple)) return true;
  const auto* form = reinterpret_cast<Form_pg_proc>(GETSTRUCT(tuple));
  const Oid language = form->prolang;
  const bool ours = form->pronamespace == rdmacc_extension_schema();
  const bool changes_something = form->provolatile == PROVOLATILE_VOLATILE;
  ReleaseSysCache(tuple);
  if (ours || language == SQLlanguageId) return false;
  return language == ClanguageId ? changes_something : !is_trusted(language);
}

/* What is a transaction by itself has done nothing under its locks yet that is told. */
bool spoils(Oid function) {
  return has_lasting_effect(function) ||
         (locks_for_transaction(function) && !rdmacc_journal_is_alone()) ||
         may_reach_outside(function);
}

void object_access(ObjectAccessType access, Oid class_id, Oid object, int sub_id, void* argument) {
  if (previous_access != nullptr) previous_access(access, class_id, object, sub_id, argument);
  if (access != OAT_FUNCTION_EXECUTE || !rdmacc_journal_is_open()) return;
  /* Without a statement the client has called it by the protocol's function message. */
  if (debug_query_string == nullptr || spoils(object)) rdmacc_journal_spoil();
}

}  // namespace

bool rdmacc_function_spoils_journals(Oid function) {
  return has_lasting_effect(function) || locks_for_transaction(function);
}

bool rdmacc_code_may_reach_outside(const DoStmt* statement) {
  const char* name = "plpgsql";
  ListCell* cell;
  foreach (cell, statement->args) {
    auto* option = static_cast<DefElem*>(lfirst(cell));
    if (strcmp(option->defname, "language") == 0) name = defGetString(option);
  }
  const Oid language = get_language_oid(name, true);
  return OidIsValid(language) && !is_trusted(language);
}

void rdmacc_lasting_effects_init(void) {
  previous_access = object_access_hook;
  object_access_hook = object_access;
}
