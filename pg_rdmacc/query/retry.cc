#include "pg_rdmacc/query/retry.h"

#include "pg_rdmacc/query/client_messages.h"
#include "pg_rdmacc/query/early_commit.h"
#include "pg_rdmacc/query/exclusive_query.h"
#include "pg_rdmacc/query/held_rows.h"
#include "pg_rdmacc/query/kept_owner.h"
#include "pg_rdmacc/query/lost_attempt.h"
#include "pg_rdmacc/query/new_attempt.h"
#include "pg_rdmacc/relation/access_method.h"
#include "pg_rdmacc/server/error.h"
#include "pg_rdmacc/xact/given_numbers.h"
#include "pg_rdmacc/xact/held_cursors.h"
#include "pg_rdmacc/xact/running_query.h"
#include "pg_rdmacc/xact/xact.h"

extern "C" {
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "nodes/plannodes.h"
#include "tcop/dest.h"
#include "tcop/pquery.h"
#include "tcop/tcopprot.h"
#include "utils/portal.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"
}

namespace {

bool last_attempt; /* the one under way, or the last one, must not be followed by another */

/* ---- Whether */

/* A simple query has no plan in the cache, and is a transaction if it is one statement. Otherwise
 * the client may send more for the same transaction, unless the end is here already. */
bool ends_transaction(const PortalData* portal) {
  if (portal->cplan == nullptr) return true;
  if (whereToSendOutput != DestRemote || !pq_buffer_has_data()) return false;
  pq_startmsgread();
  const int next = pq_peekbyte();
  pq_endmsgread();
  return next == 'S'; /* Sync */
}

/* And of no cursor, which COMMIT may run to its end. */
bool is_all_of(const PortalData* portal, const PlannedStmt* plan) {
  return portal != nullptr && list_length(portal->stmts) == 1 && linitial(portal->stmts) == plan &&
         (portal->cursorOptions & CURSOR_OPT_HOLD) == 0;
}

/* Of tables that the query names. Functions are asked for nothing, so that what has no table at all
 * may use ours, rows of a partitioned table may go to one of ours, and so may triggers and foreign
 * keys, which are triggers. */
bool may_use_tables_of_ours(const QueryDesc* query) {
  bool tables = false;
  const bool writes = query->operation != CMD_SELECT || query->plannedstmt->hasModifyingCTE;
  const Relation* open = query->estate->es_relations;
  ListCell* cell;
  foreach (cell, query->plannedstmt->rtable) {
    const auto* entry = static_cast<const RangeTblEntry*>(lfirst(cell));
    const Relation relation = open[foreach_current_index(cell)];
    if (entry->rtekind != RTE_RELATION) continue;
    if (entry->relkind == RELKIND_PARTITIONED_TABLE) return true;
    if (relation != nullptr ? rdmacc_is_ours(relation) : rdmacc_relation_is_ours(entry->relid)) {
      return true;
    }
    const bool triggers = writes && relation != nullptr && relation->trigdesc != nullptr;
    if (triggers) return OidIsValid(rdmacc_access_method());
    tables = tables || entry->relkind != RELKIND_VIEW;
  }
  return !tables && OidIsValid(rdmacc_access_method());
}

/* ---- How */

/* NULL when the attempt has succeeded; otherwise the conflict, or that memory was short, of a
 * transaction that is still to be rolled back. Other errors pass. `deleted`: rows that the table
 * had which it got anew. */
ErrorData* run_once(QueryDesc* query, RdmaccAttempt attempt, RdmaccHeldRows* held, bool last,
                    int memory_waits, uint64* deleted) {
  const MemoryContext context = CurrentMemoryContext;
  ErrorData* volatile conflict = nullptr;
  PG_TRY();
  {
    rdmacc_have_table_alone(query, deleted);
    if (query->estate == nullptr) rdmacc_start_attempt(query);
    attempt(query);
    rdmacc_end_lone_statement(held);
  }
  PG_CATCH();
  {
    rdmacc_validate_error(context);
    const bool done = held->passing || last_attempt || rdmacc_cursors_have_moved();
    const bool again = rdmacc_caught_conflict() && !done;
    if (again) rdmacc_count_loss(last);
    if (!(again && !last) && (done || !rdmacc_memory_may_come(memory_waits))) {
      PG_RE_THROW();
    }
    MemoryContextSwitchTo(context);
    conflict = CopyErrorData();
    FlushErrorState();
  }
  PG_END_TRY();
  return conflict;
}

void run_attempts(QueryDesc* query, RdmaccAttempt attempt) {
  const MemoryContext context = CurrentMemoryContext;
  CHECK(query->dest != nullptr && query->estate != nullptr);
  RdmaccHeldRows held;
  last_attempt = false;
  rdmacc_forget_attempts();
  rdmacc_remember_cursors();
  rdmacc_hold_rows(&held, query->dest, static_cast<Size>(work_mem) * 1024);
  query->dest = &held.receiver;
  rdmacc_forget_owners();
  const int retries_max = rdmacc_auto_retry;
  int lost = 0;
  int memory_waits = 0;
  uint64 deleted = 0;
  for (;;) {
    const bool last = lost == retries_max;
    ErrorData* error = run_once(query, attempt, &held, last, memory_waits, &deleted);
    if (error == nullptr) break;
    rdmacc_drop_held_rows(&held);
    if (!rdmacc_begin_attempt(query, context, StartTransactionCommand)) ReThrowError(error);
    rdmacc_numbers_begin_attempt();
    CHECK(!rdmacc_transaction_used()); /* the attempt that has failed is rolled back */
    const bool memory_short = error->sqlerrcode == ERRCODE_OUT_OF_MEMORY;
    FreeErrorData(error);
    if (memory_short) {
      rdmacc_wait_for_memory(memory_waits++);
      continue;
    }
    rdmacc_back_off(++lost, retries_max);
  }
  query->estate->es_processed += deleted;
  rdmacc_release_held_rows(&held, query->estate->es_query_cxt);
  query->dest = held.real;
}

}  // namespace

bool rdmacc_is_whole_statement(const QueryDesc* query, ScanDirection direction, uint64 count) {
  if (count != 0 || !ScanDirectionIsForward(direction)) return false;
  const PortalData* portal = ActivePortal;
  if (!is_all_of(portal, query->plannedstmt) || portal->status != PORTAL_ACTIVE ||
      !portal->atStart) {
    return false;
  }
  /* Not of a function that a utility statement runs. */
  return !rdmacc_in_utility() && CurrentMemoryContext == portal->portalContext &&
         portal->resowner != nullptr && CurrentResourceOwner == portal->resowner;
}

bool rdmacc_is_whole_transaction(void) {
  if (IsTransactionBlock() || IsSubTransaction() || (MyXactFlags & XACT_FLAGS_PIPELINING) != 0) {
    return false;
  }
  return ends_transaction(ActivePortal);
}

bool rdmacc_may_run_again(const QueryDesc* query) {
  return rdmacc_auto_retry > 0 && may_use_tables_of_ours(query) && rdmacc_is_whole_transaction();
}

void rdmacc_run_with_retries(QueryDesc* query, RdmaccAttempt attempt) {
  rdmacc_numbers_keep(true);
  PG_TRY();
  { run_attempts(query, attempt); }
  PG_FINALLY();
  { rdmacc_numbers_keep(false); }
  PG_END_TRY();
}

void rdmacc_attempt_stays(void) { last_attempt = true; }

void rdmacc_retry_init(void) { rdmacc_new_attempt_init(); }
