#include "pg_rdmacc/plan/row_stream.h"

#include "pg_rdmacc/codec/row_codec.h"
#include "pg_rdmacc/plan/custom_node.h"
#include "pg_rdmacc/plan/explain.h"
#include "pg_rdmacc/relation/engine_table.h"

extern "C" {
#include "access/sysattr.h"
#include "executor/executor.h"
#include "nodes/extensible.h"
#include "nodes/makefuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/restrictinfo.h"
#include "pgstat.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
}

namespace {

/* What a scan spends on its copies, of what PostgreSQL adds for its pages. */
constexpr double kShareOfCopies = 0.5;

RdmaccRowStream* stream_of(CustomScanState* node) {
  return reinterpret_cast<RdmaccRowStream*>(node);
}

/* Number of the last column that the plan looks at; -1 when it wants none of the row's bytes. */
int last_column(const Plan* plan, Index relation, const TupleDescData* descriptor) {
  if (plan->qual == NIL && plan->targetlist == NIL) return -1;
  Bitmapset* columns = nullptr;
  pull_varattnos(reinterpret_cast<Node*>(plan->targetlist), relation, &columns);
  pull_varattnos(reinterpret_cast<Node*>(plan->qual), relation, &columns);
  if (bms_is_member(-FirstLowInvalidHeapAttributeNumber, columns)) return descriptor->natts;
  int last = 0;
  for (int member = bms_next_member(columns, -1); member >= 0;
       member = bms_next_member(columns, member)) {
    last = Max(last, member + FirstLowInvalidHeapAttributeNumber);
  }
  return last;
}

/* ---- The node */

void begin(CustomScanState* node, EState* estate, int) {
  RdmaccRowStream* stream = stream_of(node);
  const Plan* plan = node->ss.ps.plan;
  /* PostgreSQL 15 gives custom scans virtual slots, which have no system columns. */
  ExecInitScanTupleSlot(estate, &node->ss, RelationGetDescr(node->ss.ss_currentRelation),
                        &TTSOpsHeapTuple);
  ExecAssignScanProjectionInfo(&node->ss);
  node->ss.ps.qual = ExecInitQual(plan->qual, &node->ss.ps);
  TupleDesc descriptor = RelationGetDescr(node->ss.ss_currentRelation);
  const int last = last_column(plan, reinterpret_cast<const Scan*>(plan)->scanrelid, descriptor);
  stream->counts_only = last < 0;
  stream->row_bytes = last < 0 ? 0 : rdmacc_row_bytes_of(descriptor, last);
  initStringInfo(&stream->bytes);
}

void start(RdmaccRowStream* stream) {
  const ScanState* scan = &stream->custom.ss;
  Relation relation = scan->ss_currentRelation;
  rdmacc_rows_begin_shared(&stream->rows, stream->shared, relation,
                           scan->ps.state->es_snapshot->curcid);
  stream->rows.wants.row_bytes_max = stream->row_bytes;
  stream->rows.wants.count_only = stream->counts_only;
  rdmacc_rows_remember(&stream->rows, &stream->passed, scan->ps.state->es_query_cxt);
  stream->started = true;
  pgstat_count_heap_scan(relation);
}

TupleTableSlot* access_next(ScanState* state) {
  auto* stream = reinterpret_cast<RdmaccRowStream*>(state);
  TupleTableSlot* slot = state->ss_ScanTupleSlot;
  Relation relation = state->ss_currentRelation;
  if (!stream->started) start(stream);
  if (stream->counts_only) {
    if (!rdmacc_rows_count_next(&stream->rows, relation)) return ExecClearTuple(slot);
    pgstat_count_heap_getnext(relation);
    return ExecStoreAllNullTuple(slot);
  }
  const BridgeRow* row = rdmacc_rows_next(&stream->rows, relation);
  if (row == nullptr) return ExecClearTuple(slot);
  pgstat_count_heap_getnext(relation);
  rdmacc_row_decode_into(row->row, &stream->bytes, &stream->tuple);
  stream->tuple.t_tableOid = RelationGetRelid(relation);
  return ExecStoreHeapTuple(&stream->tuple, slot, false);
}

/* Every row of the table is one that the scan gives. */
bool access_recheck(ScanState*, TupleTableSlot*) { return true; }

TupleTableSlot* exec(CustomScanState* node) {
  return ExecScan(&node->ss, access_next, access_recheck);
}

void stop(RdmaccRowStream* stream) {
  ExecClearTuple(stream->custom.ss.ss_ScanTupleSlot);
  if (!stream->started) return;
  rdmacc_rows_end(&stream->rows);
  stream->round_trips += stream->rows.round_trips;
  stream->rows.round_trips = 0;
  stream->started = false;
}

void end(CustomScanState* node) { stop(stream_of(node)); }

void rescan(CustomScanState* node) {
  stop(stream_of(node));
  ExecScanReScan(&node->ss);
}

void explain(CustomScanState* node, List*, ExplainState* es) {
  const RdmaccRowStream* stream = stream_of(node);
  rdmacc_explain_scan(stream->round_trips + stream->rows.round_trips, es);
}

/* ---- With parallel workers */

Size estimate_shared(CustomScanState*, ParallelContext*) { return sizeof(RdmaccSharedScan); }

void share(CustomScanState* node, ParallelContext*, void* shared) {
  stream_of(node)->shared = static_cast<RdmaccSharedScan*>(shared);
  rdmacc_share_scan(stream_of(node)->shared, node->ss.ss_currentRelation);
}

void share_again(CustomScanState* node, ParallelContext*, void*) {
  rdmacc_share_scan_again(stream_of(node)->shared);
}

void join_shared(CustomScanState* node, shm_toc*, void* shared) {
  stream_of(node)->shared = static_cast<RdmaccSharedScan*>(shared);
}

const CustomExecMethods state_methods =
    rdmacc_node_methods("RdmaccRowStream", {.begin = begin,
                                            .exec = exec,
                                            .end = end,
                                            .rescan = rescan,
                                            .explain = explain,
                                            .estimate_shared = estimate_shared,
                                            .share = share,
                                            .share_again = share_again,
                                            .join_shared = join_shared});

Node* create_state(CustomScan*) { return rdmacc_make_node_state<RdmaccRowStream>(&state_methods); }

const CustomScanMethods plan_methods = {
    .CustomName = "RdmaccRowStream",
    .CreateCustomScanState = create_state,
};

/* ---- Path and plan */

Plan* plan_path(PlannerInfo*, RelOptInfo* rel, CustomPath* best_path, List* tlist, List* clauses,
                List*) {
  CustomScan* scan = makeNode(CustomScan);
  scan->scan.plan.targetlist = tlist;
  scan->scan.plan.qual = extract_actual_clauses(clauses, false);
  scan->scan.scanrelid = rel->relid;
  scan->flags = best_path->flags;
  scan->methods = &plan_methods;
  return &scan->scan.plan;
}

const CustomPathMethods path_methods = {
    .CustomName = "RdmaccRowStream",
    .PlanCustomPath = plan_path,
    .ReparameterizeCustomPathByChild = nullptr, /* optional */
};

}  // namespace

Path* rdmacc_row_stream_path(const Path* scan) {
  CustomPath* stream = makeNode(CustomPath);
  stream->path = *scan;
  stream->path.type = T_CustomPath;
  stream->path.pathtype = T_CustomScan;
  stream->path.total_cost -= kShareOfCopies * scan->parent->pages * seq_page_cost;
  stream->flags = CUSTOMPATH_SUPPORT_PROJECTION;
  stream->methods = &path_methods;
  return &stream->path;
}

void rdmacc_row_stream_init(void) { RegisterCustomScanMethods(&plan_methods); }
