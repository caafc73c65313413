#include "pg_rdmacc/query/new_attempt.h"

#include "pg_rdmacc/index/shadow_index.h"
#include "pg_rdmacc/query/kept_owner.h"
#include "pg_rdmacc/query/lost_attempt.h"
#include "pg_rdmacc/xact/running_query.h"

extern "C" {
#include "access/xact.h"
#include "executor/executor.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "nodes/plannodes.h"
#include "storage/lmgr.h"
#include "storage/lwlock.h"
#include "tcop/pquery.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/portal.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"
}

namespace {

const PlannedStmt* to_watch;   /* the plan, when the attempt that has failed is rolled back, and */
const PlannedStmt* watched;    /* when it is between two transactions */
const PlannedStmt* unfinished; /* of which the last attempt did not come to the statement */
bool stale;                    /* one of its tables has changed since its first attempt */

/* What the executor of the failed attempt was started with, and has measured. */
struct Executor {
  int flags;
  bool timed;
  Instrumentation time;
};

Executor executor;

void relation_changed(Datum, Oid relation) {
  if (watched == nullptr) return;
  stale = stale || rdmacc_plan_uses(watched, relation);
}

void remember_executor(const QueryDesc* query) {
  executor.flags = query->estate->es_top_eflags;
  executor.timed = query->totaltime != nullptr;
  if (!executor.timed) return;
  if (!INSTR_TIME_IS_ZERO(query->totaltime->starttime)) InstrStopNode(query->totaltime, 0);
  executor.time = *query->totaltime;
}

/* The executor's memory is the portal's, and outlives the transaction; what else it has does not.
 */
void forget_executor(QueryDesc* query) {
  EState* state = query->estate;
  if (state == nullptr) return; /* it has not been started since the last time */
  remember_executor(query);
  query->estate = nullptr;
  query->planstate = nullptr;
  query->tupDesc = nullptr;
  query->totaltime = nullptr;
  query->snapshot = InvalidSnapshot;
  query->already_executed = false;
  MemoryContextDelete(state->es_query_cxt);
}

/* Under the query's snapshot. */
void start_executor(QueryDesc* query) {
  standard_ExecutorStart(query, executor.flags);
  rdmacc_override_scans(query);
  /* Measurements of the statement go on where the last executor ended. */
  if (executor.timed && query->totaltime == nullptr) {
    query->totaltime = static_cast<Instrumentation*>(
        MemoryContextAlloc(query->estate->es_query_cxt, sizeof(Instrumentation)));
    *query->totaltime = executor.time;
  }
}

/* As that of a cursor that an earlier transaction has left, which the end of one leaves alone: it
 * keeps plan, memory and status. */
void take_out_of_transaction(Portal portal) {
  portal->createSubid = portal->activeSubid = InvalidSubTransactionId;
  portal->resowner = nullptr;
  portal->portalSnapshot = nullptr;
}

/* Before ROLLBACK TO the subtransaction has failed, and has its number still. */
bool is_inside(void) { return IsTransactionState() || IsAbortedTransactionBlockState(); }

void put_into_transaction(Portal portal) {
  const bool inside = is_inside();
  portal->createSubid = portal->activeSubid =
      inside ? GetCurrentSubTransactionId() : TopSubTransactionId;
  portal->createLevel = inside ? GetCurrentTransactionNestLevel() : 1;
}

/* An error has ended the attempt before its BEGIN. The client, which is in a block, is told so by
 * every further statement until it ends it: none may be taken for a transaction of its own. */
void fail_in_block(void) {
  HOLD_INTERRUPTS();
  AbortOutOfAnyTransaction();
  StartTransactionCommand();
  BeginTransactionBlock();
  CommitTransactionCommand();
  CHECK(IsTransactionBlock() && !IsSubTransaction());
  RESUME_INTERRUPTS();
}

void begin_again(QueryDesc* query, RdmaccBegin begin, MemoryContext context) {
  Portal portal = ActivePortal;
  CHECK(portal != nullptr && portal->status == PORTAL_ACTIVE);
  const bool in_block = IsTransactionBlock();
  LWLockReleaseAll(); /* the error may have passed locks of PostgreSQL's own */
  take_out_of_transaction(portal);
  rdmacc_note_owners();
  PG_TRY();
  {
    AbortOutOfAnyTransaction(); /* with what it has changed itself: that is no other table */
    watched = to_watch;
    PortalErrorCleanup(); /* cursors that a procedure had kept through a ROLLBACK */
    const bool owners = rdmacc_make_owners();
    if (query != nullptr) forget_executor(query);
    if (!owners) rdmacc_raise_lost("The block could not be run again within its savepoint.");
    begin();
    rdmacc_hand_over_owners();
  }
  PG_CATCH();
  {
    rdmacc_drop_owners();
    if (in_block && !IsTransactionBlock()) fail_in_block();
    put_into_transaction(portal);
    PG_RE_THROW();
  }
  PG_END_TRY();
  put_into_transaction(portal);
  CHECK(is_inside() && ActivePortal == portal);
  portal->resowner = ResourceOwnerCreate(CurTransactionResourceOwner, "Portal");
  CurrentResourceOwner = portal->resowner;
  MemoryContextSwitchTo(context);
}

}  // namespace

bool rdmacc_plan_uses(const PlannedStmt* plan, Oid relation) {
  return !OidIsValid(relation) || list_member_oid(plan->relationOids, relation);
}

void rdmacc_lock_relations(const PlannedStmt* plan) {
  ListCell* cell;
  foreach (cell, plan->rtable) {
    const auto* entry = static_cast<const RangeTblEntry*>(lfirst(cell));
    if (entry->rtekind == RTE_RELATION) LockRelationOid(entry->relid, entry->rellockmode);
  }
  /* A lock that is held twice would not have looked. */
  AcceptInvalidationMessages();
}

void rdmacc_begin_transaction_again(RdmaccBegin begin, MemoryContext context) {
  Portal portal = ActivePortal;
  const bool holds = portal->holdSnapshot != nullptr;
  portal->holdSnapshot = nullptr;
  begin_again(nullptr, begin, context);
  /* As PostgreSQL has taken one, under which long values are fetched when rows are sent. */
  if (holds) portal->holdSnapshot = RegisterSnapshot(GetTransactionSnapshot());
}

void rdmacc_fail_block(void) {
  Portal portal = ActivePortal;
  CHECK(portal != nullptr && portal->status == PORTAL_ACTIVE);
  take_out_of_transaction(portal);
  fail_in_block();
  put_into_transaction(portal);
}

void rdmacc_forget_attempts(void) { unfinished = nullptr; }

bool rdmacc_begin_attempt(QueryDesc* query, MemoryContext context, RdmaccBegin begin) {
  CHECK(watched == nullptr);
  const PlannedStmt* plan = query->plannedstmt;
  LWLockReleaseAll();
  if (unfinished != plan) {
    /* What others have changed so far they have changed in spite of our locks, which they do not
     * conflict with. */
    AcceptInvalidationMessages();
    stale = false;
  }
  unfinished = to_watch = plan;
  PG_TRY();
  {
    begin_again(query, begin, context);
    rdmacc_lock_relations(plan);
    unfinished = nullptr;
  }
  PG_FINALLY();
  { to_watch = watched = nullptr; }
  PG_END_TRY();
  return !stale;
}

void rdmacc_start_attempt(QueryDesc* query) {
  Portal portal = ActivePortal;
  Snapshot snapshot = GetTransactionSnapshot();
  CHECK(query->estate == nullptr && portal != nullptr && IsTransactionState());
  if (portal->holdSnapshot != nullptr) {
    snapshot = portal->holdSnapshot = RegisterSnapshot(snapshot);
  }
  /* Popped by the caller that has pushed the one that is gone. */
  PushCopiedSnapshot(snapshot);
  query->snapshot = RegisterSnapshot(GetActiveSnapshot());
  rdmacc_query_opened(query);
  start_executor(query);
  if (portal->queryDesc == query) portal->tupDesc = query->tupDesc;
}

void rdmacc_end_executor(QueryDesc* query) {
  CHECK(query->estate != nullptr && !query->already_executed);
  remember_executor(query);
  rdmacc_query_closed(query);
  query->estate->es_finished = true; /* it has not begun */
  standard_ExecutorEnd(query);
}

void rdmacc_start_executor_again(QueryDesc* query) {
  CHECK(query->estate == nullptr && query->snapshot != InvalidSnapshot);
  rdmacc_query_opened(query);
  start_executor(query);
}

void rdmacc_new_attempt_init(void) {
  CacheRegisterRelcacheCallback(relation_changed, static_cast<Datum>(0));
}
