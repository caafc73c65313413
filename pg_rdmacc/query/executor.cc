#include "pg_rdmacc/query/executor.h"

#include "pg_rdmacc/index/unique_check.h"
#include "pg_rdmacc/query/block.h"
#include "pg_rdmacc/query/client_statements.h"
#include "pg_rdmacc/query/draw_plans.h"
#include "pg_rdmacc/query/early_commit.h"
#include "pg_rdmacc/query/gone_parents.h"
#include "pg_rdmacc/query/kept_executor.h"
#include "pg_rdmacc/query/lasting_effects.h"
#include "pg_rdmacc/query/lost_attempt.h"
#include "pg_rdmacc/query/replay.h"
#include "pg_rdmacc/query/retry.h"
#include "pg_rdmacc/relation/access_method.h"
#include "pg_rdmacc/row/shared_scan.h"
#include "pg_rdmacc/row/write_marks.h"
#include "pg_rdmacc/table/deferred_key_check.h"
#include "pg_rdmacc/table/gathered_insert.h"
#include "pg_rdmacc/xact/exported_snapshot.h"
#include "pg_rdmacc/xact/running_query.h"
#include "pg_rdmacc/xact/xact.h"

extern "C" {
#include "access/parallel.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "executor/executor.h"
#include "nodes/execnodes.h"
#include "nodes/plannodes.h"
#include "parser/parsetree.h"
#include "tcop/pquery.h"
#include "utils/portal.h"
}

namespace {

ExecutorStart_hook_type previous_start;
ExecutorRun_hook_type previous_run;
ExecutorFinish_hook_type previous_finish;
ExecutorEnd_hook_type previous_end;

int modifying_depth;

bool modifies(const QueryDesc* query) {
  return query->operation != CMD_SELECT || query->plannedstmt->hasModifyingCTE;
}

bool changes(const ModifyTableState* modify, IndexAttrBitmapKind columns) {
  ResultRelInfo* result = modify->resultRelInfo;
  return bms_overlap(RelationGetIndexAttrBitmap(result->ri_RelationDesc, columns),
                     ExecGetAllUpdatedCols(result, modify->ps.state));
}

/* An UPDATE or DELETE of what one scan of one table returns: the scan sees no write of its own
 * command. One by an index might meet a row at two places, if that changed. Triggers and rows that
 * take others' keys ask for marks. */
bool meets_rows_once(const QueryDesc* query) {
  if (query->operation != CMD_UPDATE && query->operation != CMD_DELETE) return false;
  if (query->plannedstmt->hasModifyingCTE || !IsA(query->planstate, ModifyTableState)) return false;
  const auto* modify = reinterpret_cast<const ModifyTableState*>(query->planstate);
  const Plan* source = outerPlan(modify->ps.plan);
  const bool by_index = IsA(source, IndexScan);
  if (modify->mt_nrels != 1 || !(IsA(source, SeqScan) || by_index)) return false;
  const Relation relation = modify->resultRelInfo->ri_RelationDesc;
  const Index number = modify->resultRelInfo->ri_RangeTableIndex;
  if (reinterpret_cast<const Scan*>(source)->scanrelid != number) return false;
  if (relation->trigdesc != nullptr) return false;
  return query->operation == CMD_DELETE ||
         !changes(modify, by_index ? INDEX_ATTR_BITMAP_ALL : INDEX_ATTR_BITMAP_PRIMARY_KEY);
}

/* Another query may begin before this one's portal has ended, with the same command's number: of a
 * cursor, or of what a client may ask for a few rows of. Those of the simple protocol are not
 * visible, and are read to their end. */
bool may_be_left_open(const QueryDesc* query) {
  const PortalData* portal = ActivePortal;
  return query->plannedstmt->hasReturning && portal != nullptr && portal->visible &&
         list_member_ptr(portal->stmts, query->plannedstmt);
}

/* A query that starts to modify while no other does: marks of older commands are not needed any
 * more. Its own are, where something else of the transaction may come to its rows: a query around
 * it, a cursor that is older, or what comes behind it if it is left open. */
void begin_modifying(const QueryDesc* query, const QueryDesc* outer) {
  if (!modifies(query)) return;
  CHECK(modifying_depth >= 0);
  if (modifying_depth++ == 0) rdmacc_write_marks_forget_before(query->estate->es_output_cid);
  const bool alone = modifying_depth == 1 && outer == nullptr && !rdmacc_other_queries_open() &&
                     !may_be_left_open(query);
  rdmacc_write_marks_want(!alone || !meets_rows_once(query));
}

bool is_ours(const PlannedStmt* plan, Index number) {
  const RangeTblEntry* entry = rt_fetch(number, plan->rtable);
  return entry->rtekind == RTE_RELATION && rdmacc_relation_is_ours(entry->relid);
}

/* Before it reads what it writes, or it would wait with locks of the engine. */
void await_leave_to_write(const PlannedStmt* plan) {
  ListCell* cell;
  foreach (cell, plan->resultRelations) {
    if (is_ours(plan, static_cast<Index>(lfirst_int(cell)))) return rdmacc_await_leave_to_write();
  }
  foreach (cell, plan->rowMarks) {
    const auto* mark = static_cast<const PlanRowMark*>(lfirst(cell));
    const bool writes =
        mark->markType == ROW_MARK_EXCLUSIVE || mark->markType == ROW_MARK_NOKEYEXCLUSIVE;
    /* What is read as it is stored cannot be locked. */
    const bool locks = RowMarkRequiresRowShareLock(mark->markType) && rdmacc_reads_as_stored();
    if ((writes || locks) && is_ours(plan, mark->rti)) return rdmacc_await_leave_to_write();
  }
}

/* Other servers have commits of their own, which may fail. */
void note_foreign_servers(const PlannedStmt* plan) {
  ListCell* cell;
  foreach (cell, plan->rtable) {
    const auto* entry = static_cast<const RangeTblEntry*>(lfirst(cell));
    if (entry->relkind == RELKIND_FOREIGN_TABLE) rdmacc_note_foreign_server();
  }
}

/* A plan for parallel workers runs without them where they could not read our tables. The plan may
 * be a cached one: it is what it was when it has run. */
void run_plan(QueryDesc* query, ScanDirection direction, uint64 count, bool execute_once) {
  PlannedStmt* plan = query->plannedstmt;
  const bool parallel = plan->parallelModeNeeded;
  PG_TRY();
  {
    if (parallel && !rdmacc_may_share_scans(plan)) plan->parallelModeNeeded = false;
    if (previous_run != nullptr) {
      previous_run(query, direction, count, execute_once);
    } else {
      standard_ExecutorRun(query, direction, count, execute_once);
    }
  }
  PG_FINALLY();
  { plan->parallelModeNeeded = parallel; }
  PG_END_TRY();
}

/* What was before a query runs or is finished, and is so again behind that. */
struct Frame {
  RdmaccRunningQuery outer;
  int depth;
  bool marks;
};

Frame enter(const QueryDesc* query) {
  const int depth = modifying_depth;
  const bool marks = rdmacc_write_marks_want(true);
  return {rdmacc_begin_running(query), depth, marks};
}

void leave(const Frame* frame) {
  rdmacc_end_running(frame->outer);
  modifying_depth = frame->depth;
  rdmacc_write_marks_want(frame->marks);
}

/* In a PG_CATCH. What a function or a trigger around the query catches is based on the same reads,
 * which are validated where the error leaves that, or at the commit. */
[[noreturn]] void leave_with_error(const Frame* frame, MemoryContext context) {
  leave(frame);
  const bool outermost =
      frame->outer.query == nullptr && !rdmacc_in_utility() && !rdmacc_fires_deferred_triggers();
  if (outermost) rdmacc_validate_error(context);
  PG_RE_THROW();
}

void run(QueryDesc* query, ScanDirection direction, uint64 count, bool execute_once) {
  const MemoryContext context = CurrentMemoryContext;
  const Frame frame = enter(query);
  PG_TRY();
  {
    begin_modifying(query, frame.outer.query);
    note_foreign_servers(query->plannedstmt);
    await_leave_to_write(query->plannedstmt);
    rdmacc_gather_begin(query);
    run_plan(query, direction, count, execute_once);
    rdmacc_gather_end(query);
  }
  PG_CATCH();
  {
    rdmacc_gather_give_up(query);
    leave_with_error(&frame, context);
  }
  PG_END_TRY();
  leave(&frame);
}

void check_uniqueness(const QueryDesc* query) {
  rdmacc_check_deferred_keys(query);
  rdmacc_check_unique(query);
}

/* As ExecutorFinish would: behind that they have nothing left to do. */
void run_modifying_ctes(const QueryDesc* query) {
  EState* state = query->estate;
  CHECK(!state->es_finished);
  if (state->es_auxmodifytables == NIL) return;
  if (query->totaltime != nullptr) InstrStartNode(query->totaltime);
  const MemoryContext previous = MemoryContextSwitchTo(state->es_query_cxt);
  state->es_direction = ForwardScanDirection;
  ListCell* cell;
  foreach (cell, state->es_auxmodifytables) {
    TupleTableSlot* slot = nullptr;
    do {
      ResetPerTupleExprContext(state);
      slot = ExecProcNode(static_cast<PlanState*>(lfirst(cell)));
    } while (!TupIsNull(slot));
  }
  MemoryContextSwitchTo(previous);
  if (query->totaltime != nullptr) InstrStopNode(query->totaltime, 0);
}

void finish(QueryDesc* query) {
  CHECK(query->estate != nullptr && query->plannedstmt != nullptr);
  const MemoryContext context = CurrentMemoryContext;
  const Frame frame = enter(query);
  PG_TRY();
  {
    /* Marks of the run just ended still count for the rest of the query. */
    modifying_depth++;
    if (modifies(query)) rdmacc_note_gone_parents(query);
    run_modifying_ctes(query);
    check_uniqueness(query); /* before triggers rely on it */
    if (previous_finish != nullptr) {
      previous_finish(query);
    } else {
      standard_ExecutorFinish(query);
    }
    check_uniqueness(query); /* of what triggers have written without a query of their own */
  }
  PG_CATCH();
  { leave_with_error(&frame, context); }
  PG_END_TRY();
  leave(&frame);
}

void note_if_foreign(const ResultRelInfo* result) {
  Relation relation = result->ri_RelationDesc;
  if (relation == nullptr) return;
  if (relation->rd_rel->relkind == RELKIND_FOREIGN_TABLE) rdmacc_note_foreign_server();
  if (relation->rd_rel->relkind != RELKIND_RELATION) return;
  if (relation->rd_rel->relpersistence == RELPERSISTENCE_TEMP) return;
  if (!rdmacc_is_ours(relation)) rdmacc_note_foreign_write();
}

void note_foreign_writes(const QueryDesc* query) {
  const EState* state = query->estate;
  /* Rows are counted only for the statement that the client sent, not for what rules add. */
  if (state == nullptr || !modifies(query) ||
      (state->es_processed == 0 && query->plannedstmt->canSetTag &&
       !query->plannedstmt->hasModifyingCTE)) {
    return;
  }
  ListCell* cell;
  foreach (cell, state->es_opened_result_relations) {
    note_if_foreign(static_cast<const ResultRelInfo*>(lfirst(cell)));
  }
  foreach (cell, state->es_tuple_routing_result_relations) {
    note_if_foreign(static_cast<const ResultRelInfo*>(lfirst(cell)));
  }
}

void run_to_end(QueryDesc* query) {
  run(query, ForwardScanDirection, 0, true);
  finish(query);
  note_foreign_writes(query);
}

void executor_start(QueryDesc* query, int flags) {
  rdmacc_query_opened(query);
  if (rdmacc_take_kept_executor(query, flags)) return;
  rdmacc_consider_keeping(query, flags);
  if (previous_start != nullptr) {
    previous_start(query, flags);
  } else {
    standard_ExecutorStart(query, flags);
  }
}

/* False: it is none of the client's, or not all of a statement. */
bool run_again_if_it_loses(QueryDesc* query, ScanDirection direction, uint64 count) {
  if (rdmacc_running_query() != nullptr || rdmacc_replaying() || IsParallelWorker()) return false;
  if (!rdmacc_is_whole_statement(query, direction, count)) {
    rdmacc_note_partial_query(query);
    return false;
  }
  rdmacc_note_client_query();
  if (rdmacc_journal_is_open()) {
    rdmacc_run_in_block(query, run_to_end);
    return true;
  }
  if (!rdmacc_may_run_again(query)) return false;
  rdmacc_run_with_retries(query, run_to_end);
  return true;
}

void executor_run(QueryDesc* query, ScanDirection direction, uint64 count, bool execute_once) {
  if (run_again_if_it_loses(query, direction, count)) return;
  run(query, direction, count, execute_once);
}

void executor_finish(QueryDesc* query) {
  /* One that may be run again has been finished along with its run. */
  if (!query->estate->es_finished) finish(query);
}

void executor_end(QueryDesc* query) {
  CHECK(rdmacc_running_query() != query); /* its memory goes */
  note_foreign_writes(query);
  rdmacc_query_closed(query);
  if (rdmacc_keep_executor(query)) return;
  if (previous_end != nullptr) {
    previous_end(query);
  } else {
    standard_ExecutorEnd(query);
  }
}

}  // namespace

void rdmacc_executor_init(void) {
  previous_start = ExecutorStart_hook;
  ExecutorStart_hook = executor_start;
  previous_run = ExecutorRun_hook;
  ExecutorRun_hook = executor_run;
  previous_finish = ExecutorFinish_hook;
  ExecutorFinish_hook = executor_finish;
  previous_end = ExecutorEnd_hook;
  ExecutorEnd_hook = executor_end;
  rdmacc_retry_init();
  rdmacc_client_statements_init();
  rdmacc_lasting_effects_init();
  rdmacc_draw_plans_init();
}
