#include "pg_rdmacc/query/lasting_effects.h"

#include "pg_rdmacc/query/copied_rows.h"
#include "pg_rdmacc/query/journal.h"
#include "pg_rdmacc/query/lost_attempt.h"
#include "pg_rdmacc/relation/access_method.h"
#include "pg_rdmacc/xact/given_numbers.h"

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
    case F_SETVAL_REGCLASS_INT8:
    case F_SETVAL_REGCLASS_INT8_BOOL:
      return true;
    default:
      return false;
  }
}

/* Plans have others in their place (draw_plans.h), but not arguments of EXECUTE, and what stands in
 * an SQL function's place only where rows' values are computed. */
bool draws_or_tells_number(Oid function) {
  switch (function) {
    case F_NEXTVAL:
    case F_CURRVAL:
    case F_LASTVAL:
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

/* Numbers that are not noted another attempt draws anew, as COPY and a statement alone may, and the
 * session tells the last one drawn (given_numbers.h). */
void note_unnoted_number(Oid function) {
  if (function == F_NEXTVAL && (rdmacc_runs_copy() || rdmacc_journal_is_alone())) return;
  rdmacc_journal_spoil();
  if (rdmacc_numbers_are_settled()) return;
  rdmacc_raise_lost(
      "The block was run again after a conflict, and draws other numbers of sequences.");
}

/* What is a transaction by itself has done nothing under its locks yet that is told. */
bool spoils(Oid function) {
  return has_lasting_effect(function) ||
         (locks_for_transaction(function) && !rdmacc_journal_is_alone()) ||
         may_reach_outside(function);
}

void object_access(ObjectAccessType access, Oid class_id, Oid object, int sub_id, void* argument) {
  if (previous_access != nullptr) previous_access(access, class_id, object, sub_id, argument);
  if (access != OAT_FUNCTION_EXECUTE) return;
  if (rdmacc_journal_count() > 0 && draws_or_tells_number(object)) note_unnoted_number(object);
  if (!rdmacc_journal_is_open()) return;
  /* Without a statement the client has called it by the protocol's function message. */
  if (debug_query_string == nullptr || spoils(object)) rdmacc_journal_spoil();
}

}  // namespace

bool rdmacc_function_spoils_journals(Oid function) {
  return has_lasting_effect(function) || locks_for_transaction(function) ||
         draws_or_tells_number(function);
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
