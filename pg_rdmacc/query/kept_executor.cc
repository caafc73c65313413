#include "pg_rdmacc/query/kept_executor.h"

#include "pg_rdmacc/index/shadow_index.h"
#include "pg_rdmacc/plan/key_lookup.h"
#include "pg_rdmacc/query/executor_loans.h"
#include "pg_rdmacc/query/keepable_plan.h"
#include "pg_rdmacc/query/replay.h"

extern "C" {
#include "access/xact.h"
#include "commands/trigger.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "nodes/plannodes.h"
#include "tcop/pquery.h"
#include "utils/backend_status.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/plancache.h"
#include "utils/portal.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
}

namespace {

constexpr Size kBytesMax = 128 * 1024; /* executions leave a little in it, each */

/* Of each plan for any parameters that has been executed. */
struct Entry {
  const PlannedStmt* plan; /* the key */
  uint64 judged;           /* at which epoch the plan was found keepable, or not */
  bool keepable;
  const QueryDesc* query; /* started last, and to be kept; may be gone */
  uint64 epoch;           /* when that started, or when the state was kept */
  EState* state;          /* NULL: nothing is kept */
  PlanState* top;
  TupleDesc type;
  RdmaccExecutorLoans* loans; /* NULL: nothing ever was */
};

HTAB* entries; /* NULL: none yet */
struct {
  const PlannedStmt* plan;
  Entry* entry;
} latest;             /* question, and its answer */
MemoryContext memory; /* of what is kept */
int kept_count;       /* executors */
bool others_have_hooks;
uint64 function_changes;

/* Of all that kept executors refer to. */
uint64 epoch_now(void) { return rdmacc_index_epoch() + function_changes; }

void function_changed(Datum, int, uint32) { function_changes++; }

/* NULL: none. A statement asks twice as it starts, and as it ends. */
Entry* find(const PlannedStmt* plan) {
  if (entries == nullptr || latest.plan == plan) return latest.entry;
  latest = {plan, static_cast<Entry*>(hash_search(entries, &plan, HASH_FIND, nullptr))};
  return latest.entry;
}

void drop_state(Entry* entry) {
  if (entry->state == nullptr) return;
  CHECK(MemoryContextGetParent(entry->state->es_query_cxt) == memory); /* no query has it */
  MemoryContextDelete(entry->state->es_query_cxt);
  entry->state = nullptr;
  kept_count--;
}

void plan_goes(void* plan) {
  Entry* entry = find(static_cast<const PlannedStmt*>(plan));
  if (entry == nullptr) return;
  drop_state(entry);
  if (entry->loans != nullptr) pfree(entry->loans);
  latest = {};
  hash_search(entries, &plan, HASH_REMOVE, nullptr);
}

void make_entries(void) {
  memory = AllocSetContextCreate(TopMemoryContext, "rdmacc kept executors", ALLOCSET_SMALL_SIZES);
  HASHCTL control = {};
  control.keysize = sizeof(const PlannedStmt*);
  control.entrysize = sizeof(Entry);
  control.hcxt = memory;
  entries =
      hash_create("rdmacc kept executors", 64, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

Entry* add(PlannedStmt* plan) {
  CHECK(find(plan) == nullptr);
  if (entries == nullptr) make_entries();
  MemoryContext of_plan = GetMemoryChunkContext(plan);
  auto* callback = static_cast<MemoryContextCallback*>(
      MemoryContextAlloc(of_plan, sizeof(MemoryContextCallback)));
  *callback = {.func = plan_goes, .arg = plan, .next = nullptr};
  auto* entry = static_cast<Entry*>(hash_search(entries, &plan, HASH_ENTER, nullptr));
  *entry = {};
  entry->plan = plan;
  latest = {plan, entry};
  MemoryContextRegisterResetCallback(of_plan, callback);
  return entry;
}

/* The plan of a prepared statement that is executed by itself, for any parameters: the statement
 * holds it as well as the portal. */
bool is_of_prepared_statement(PlannedStmt* plan) {
  const Portal portal = ActivePortal;
  if (portal == nullptr || portal->cplan == nullptr || portal->cplan->refcount < 2) return false;
  if (rdmacc_replaying()) return false; /* the journal holds one as well, made for one execution */
  return list_member_ptr(portal->cplan->stmt_list, plan);
}

bool is_plain_start(const QueryDesc* query, int flags) {
  const ParamListInfo params = query->params;
  const bool hooked =
      params != nullptr && (params->paramFetch != nullptr || params->paramCompile != nullptr);
  const bool only_reads = query->operation == CMD_SELECT && query->plannedstmt->rowMarks == NIL;
  return flags == 0 && !hooked && query->instrument_options == 0 && query->queryEnv == nullptr &&
         query->crosscheck_snapshot == InvalidSnapshot && (!XactReadOnly || only_reads) &&
         !IsInParallelMode();
}

RdmaccKeyLookup* lookup_under(PlanState* state) {
  if (IsA(state, ModifyTableState) || IsA(state, LockRowsState)) state = outerPlanState(state);
  return IsA(state, CustomScanState) ? reinterpret_cast<RdmaccKeyLookup*>(state) : nullptr;
}

/* False: something else lives in the executor's memory, and ends with it. Hooks of others learn so
 * that a query has ended. */
bool has_own_memory_only(const EState* state, const RdmaccKeyLookup* lookup) {
  if (state->es_query_cxt->reset_cbs != nullptr) return false;
  int own = list_length(state->es_exprcontexts) + (lookup == nullptr ? 0 : 1);
  for (MemoryContext child = state->es_query_cxt->firstchild; child != nullptr;
       child = child->nextchild) {
    own--;
  }
  return own == 0;
}

/* As ExecutorEnd(), but for the memory. */
void let_go(EState* state, PlanState* top, RdmaccExecutorLoans* loans) {
  CHECK(state->es_finished && state->es_epq_active == nullptr);
  RdmaccKeyLookup* lookup = lookup_under(top);
  if (lookup != nullptr) rdmacc_lookup_pause(lookup);
  rdmacc_return_loans(state, top, loans);
  ListCell* cell;
  foreach (cell, state->es_exprcontexts) {
    ResetExprContext(static_cast<ExprContext*>(lfirst(cell)));
  }
  UnregisterSnapshot(state->es_snapshot);
  state->es_snapshot = InvalidSnapshot;
}

void set_up(EState* state, QueryDesc* query) {
  const PlannedStmt* plan = query->plannedstmt;
  CHECK(state->es_plannedstmt == plan && state->es_snapshot == InvalidSnapshot);
  ListCell* cell;
  foreach (cell, state->es_exprcontexts) {
    static_cast<ExprContext*>(lfirst(cell))->ecxt_param_list_info = query->params;
  }
  state->es_param_list_info = query->params;
  state->es_sourceText = query->sourceText;
  state->es_processed = 0;
  state->es_finished = false;
  if (plan->paramExecTypes != NIL) {
    memset(state->es_param_exec_vals, 0,
           sizeof(ParamExecData) * static_cast<size_t>(list_length(plan->paramExecTypes)));
  }
  if (query->operation != CMD_SELECT || plan->rowMarks != NIL) {
    state->es_output_cid = GetCurrentCommandId(true);
  }
  state->es_snapshot = RegisterSnapshot(query->snapshot);
  if ((state->es_top_eflags & EXEC_FLAG_SKIP_TRIGGERS) == 0) AfterTriggerBeginQuery();
}

/* A lookup has been, when it was let go. */
void start_anew(PlanState* top) {
  if (!IsA(top, ModifyTableState)) return;
  auto* modify = reinterpret_cast<ModifyTableState*>(top);
  modify->mt_done = false;
  modify->fireBSTriggers = true;
  if (IsA(outerPlanState(top), ResultState)) ExecReScan(outerPlanState(top));
}

}  // namespace

bool rdmacc_take_kept_executor(QueryDesc* query, int flags) {
  PlannedStmt* plan = query->plannedstmt;
  Entry* entry = find(plan);
  if (entry == nullptr || entry->state == nullptr || !is_plain_start(query, flags)) return false;
  CHECK(query->estate == nullptr && entry->top != nullptr && entry->loans != nullptr);
  EState* state = entry->state;
  if (entry->epoch != epoch_now() || kept_count > rdmacc_kept_executors ||
      !rdmacc_renew_loans(state, entry->top, plan, entry->loans)) {
    drop_state(entry);
    return false;
  }
  if (entry->epoch != epoch_now()) { /* heard of as an index was locked */
    rdmacc_return_loans(state, entry->top, entry->loans);
    drop_state(entry);
    return false;
  }
  pgstat_report_query_id(plan->queryId, false);
  ExecCheckRTPerms(plan->rtable, true);
  entry->state = nullptr; /* the query's, and an error's */
  kept_count--;
  entry->query = query;
  MemoryContextSetParent(state->es_query_cxt, CurrentMemoryContext);
  query->estate = state;
  query->planstate = entry->top;
  query->tupDesc = entry->type;
  const MemoryContext previous = MemoryContextSwitchTo(state->es_query_cxt);
  set_up(state, query);
  start_anew(entry->top);
  MemoryContextSwitchTo(previous);
  return true;
}

void rdmacc_consider_keeping(QueryDesc* query, int flags) {
  PlannedStmt* plan = query->plannedstmt;
  Entry* entry = find(plan);
  if (entry != nullptr) entry->query = nullptr;
  if (others_have_hooks || rdmacc_kept_executors == 0 || !is_plain_start(query, flags)) return;
  if (entry == nullptr && is_of_prepared_statement(plan)) entry = add(plan);
  if (entry == nullptr) return;
  if (entry->judged != epoch_now()) {
    entry->judged = epoch_now();
    entry->keepable = rdmacc_plan_is_keepable(plan);
  }
  if (!entry->keepable) return;
  entry->query = query;
  entry->epoch = epoch_now();
}

bool rdmacc_keep_executor(QueryDesc* query) {
  Entry* entry = find(query->plannedstmt);
  if (entry == nullptr || entry->query != query) return false;
  entry->query = nullptr;
  EState* state = query->estate;
  PlanState* top = query->planstate;
  CHECK(state != nullptr && top != nullptr);
  if (entry->state != nullptr || entry->epoch != epoch_now() || !state->es_finished ||
      (state->es_top_eflags & ~EXEC_FLAG_SKIP_TRIGGERS) != 0 ||
      kept_count >= rdmacc_kept_executors || !has_own_memory_only(state, lookup_under(top)) ||
      !rdmacc_executor_is_keepable(state, top)) {
    return false;
  }
  if (entry->loans == nullptr) {
    entry->loans =
        static_cast<RdmaccExecutorLoans*>(MemoryContextAlloc(memory, sizeof(RdmaccExecutorLoans)));
  }
  if (!rdmacc_note_loans(state, top, entry->loans)) return false;
  let_go(state, top, entry->loans);
  MemoryContextSetParent(state->es_query_cxt, memory);
  entry->state = state;
  entry->top = top;
  entry->type = query->tupDesc;
  kept_count++;
  query->estate = nullptr;
  query->planstate = nullptr;
  query->tupDesc = nullptr;
  query->totaltime = nullptr;
  if (MemoryContextMemAllocated(state->es_query_cxt, false) > kBytesMax) drop_state(entry);
  return true;
}

void rdmacc_kept_executor_init(void) {
  CacheRegisterSyscacheCallback(PROCOID, function_changed, static_cast<Datum>(0));
  others_have_hooks = ExecutorStart_hook != nullptr || ExecutorEnd_hook != nullptr;
}
