#include "pg_rdmacc/plan/key_prefetch.h"

#include "pg_rdmacc/codec/key_codec.h"
#include "pg_rdmacc/plan/custom_node.h"
#include "pg_rdmacc/plan/explain.h"

extern "C" {
#include "executor/executor.h"
#include "nodes/extensible.h"
#include "nodes/makefuncs.h"
#include "optimizer/appendinfo.h"
#include "optimizer/optimizer.h"
#include "utils/memutils.h"
}

namespace {

constexpr size_t kRowsMax = 256;
constexpr size_t kRowsGrowth = 2;
constexpr size_t kBytesMax = 1024 * 1024; /* of a batch's outer rows, but for its last one */

RdmaccKeyPrefetch* prefetch_of(CustomScanState* node) {
  return reinterpret_cast<RdmaccKeyPrefetch*>(node);
}

PlanState* outer_of(CustomScanState* node) {
  return static_cast<PlanState*>(linitial(node->custom_ps));
}

/* ---- One batch */

void forget_batch(RdmaccKeyPrefetch* prefetch) {
  ExecClearTuple(prefetch->custom.ss.ss_ScanTupleSlot);
  if (prefetch->lookup != nullptr) prefetch->lookup->prefetched.table = 0;
  MemoryContextReset(prefetch->memory);
  prefetch->count = prefetch->next = 0;
}

/* The keys' bytes while there may be more of them: `ends` by key. */
struct KeyBytes {
  StringInfoData bytes;
  StringInfoData key; /* the one that is made */
  int* ends;
  int count;
};

/* Number of the outer row's key; -1 when no row of the table has it. The row is in the slot. */
int append_key(RdmaccKeyPrefetch* prefetch, const RdmaccKeyLayout* layout, KeyBytes* keys) {
  ExprContext* context = prefetch->custom.ss.ps.ps_ExprContext;
  ResetExprContext(context);
  context->ecxt_scantuple = prefetch->custom.ss.ss_ScanTupleSlot;
  resetStringInfo(&keys->key);
  if (!rdmacc_lookup_make_key(prefetch->lookup, layout, prefetch->values, context, &keys->key) ||
      keys->key.len > RDMACC_KEY_BYTES_MAX) {
    return -1;
  }
  appendBinaryStringInfo(&keys->bytes, keys->key.data, keys->key.len);
  keys->ends[keys->count] = keys->bytes.len;
  return keys->count++;
}

/* Reads outer rows and makes their keys; what is allocated is the batch's. */
void read_outer_rows(RdmaccKeyPrefetch* prefetch, const RdmaccKeyLayout* layout, KeyBytes* keys) {
  CustomScanState* node = &prefetch->custom;
  size_t bytes = 0;
  while (prefetch->count < prefetch->wanted && bytes < kBytesMax) {
    TupleTableSlot* slot = ExecProcNode(outer_of(node));
    prefetch->ended = TupIsNull(slot);
    if (prefetch->ended) break;
    const MemoryContext previous = MemoryContextSwitchTo(prefetch->memory);
    MinimalTuple row = ExecCopySlotMinimalTuple(slot);
    ExecStoreMinimalTuple(row, node->ss.ss_ScanTupleSlot, false);
    bytes += row->t_len;
    prefetch->key_numbers[prefetch->count] = append_key(prefetch, layout, keys);
    prefetch->outer_rows[prefetch->count++] = row;
    MemoryContextSwitchTo(previous);
  }
}

void look_up(RdmaccKeyPrefetch* prefetch, const KeyBytes* keys) {
  if (keys->count == 0) return;
  const auto count = static_cast<size_t>(keys->count);
  prefetch->keys =
      static_cast<BridgeBytes*>(MemoryContextAlloc(prefetch->memory, count * sizeof(BridgeBytes)));
  prefetch->rows =
      static_cast<BridgeRow*>(MemoryContextAllocZero(prefetch->memory, count * sizeof(BridgeRow)));
  int begin = 0;
  for (size_t i = 0; i < count; i++) {
    prefetch->keys[i] = {keys->bytes.data + begin, static_cast<size_t>(keys->ends[i] - begin)};
    begin = keys->ends[i];
  }
  prefetch->round_trips +=
      rdmacc_lookup_many(prefetch->lookup, prefetch->table, prefetch->keys, count, prefetch->rows);
  rdmacc_lookup_count_scans(prefetch->lookup, count);
  prefetch->batches++;
  prefetch->lookups += count;
}

void read_batch(RdmaccKeyPrefetch* prefetch) {
  forget_batch(prefetch);
  if (prefetch->ended) return;
  const RdmaccTable table = rdmacc_lookup_table(prefetch->lookup);
  prefetch->table = table.id;
  KeyBytes keys = {};
  const MemoryContext previous = MemoryContextSwitchTo(prefetch->memory);
  initStringInfo(&keys.bytes);
  initStringInfo(&keys.key);
  keys.ends = static_cast<int*>(palloc(prefetch->wanted * sizeof(int)));
  prefetch->key_numbers = static_cast<int*>(palloc(prefetch->wanted * sizeof(int)));
  prefetch->outer_rows =
      static_cast<MinimalTuple*>(palloc(prefetch->wanted * sizeof(MinimalTuple)));
  MemoryContextSwitchTo(previous);
  read_outer_rows(prefetch, &table.key, &keys);
  look_up(prefetch, &keys);
  prefetch->wanted = Min(prefetch->wanted * kRowsGrowth, kRowsMax);
}

/* ---- The node */

void begin(CustomScanState* node, EState* estate, int eflags) {
  RdmaccKeyPrefetch* prefetch = prefetch_of(node);
  const auto* plan = reinterpret_cast<const CustomScan*>(node->ss.ps.plan);
  PlanState* outer = ExecInitNode(static_cast<Plan*>(linitial(plan->custom_plans)), estate, eflags);
  node->custom_ps = list_make1(outer);
  ExecInitScanTupleSlot(estate, &node->ss, ExecGetResultType(outer), &TTSOpsMinimalTuple);
  ExecAssignScanProjectionInfoWithVarno(&node->ss, INDEX_VAR);
  prefetch->values = ExecInitExprList(plan->custom_exprs, &node->ss.ps);
  prefetch->state_param = linitial_int(plan->custom_private);
  prefetch->memory =
      AllocSetContextCreate(estate->es_query_cxt, "rdmacc key prefetch", ALLOCSET_DEFAULT_SIZES);
  prefetch->wanted = 1;
}

TupleTableSlot* project(CustomScanState* node) {
  if (node->ss.ps.ps_ProjInfo == nullptr) return node->ss.ss_ScanTupleSlot;
  ExprContext* context = node->ss.ps.ps_ExprContext;
  ResetExprContext(context);
  context->ecxt_scantuple = node->ss.ss_ScanTupleSlot;
  return ExecProject(node->ss.ps.ps_ProjInfo);
}

TupleTableSlot* pass_row(RdmaccKeyPrefetch* prefetch) {
  CustomScanState* node = &prefetch->custom;
  TupleTableSlot* slot = ExecProcNode(outer_of(node));
  if (TupIsNull(slot)) return ExecClearTuple(node->ss.ss_ScanTupleSlot);
  ExecCopySlot(node->ss.ss_ScanTupleSlot, slot);
  return project(node);
}

TupleTableSlot* exec(CustomScanState* node) {
  RdmaccKeyPrefetch* prefetch = prefetch_of(node);
  EState* estate = node->ss.ps.state;
  if (estate->es_epq_active != nullptr) return pass_row(prefetch);
  if (prefetch->lookup == nullptr) {
    const ParamExecData* param = &estate->es_param_exec_vals[prefetch->state_param];
    prefetch->lookup =
        static_cast<RdmaccKeyLookup*>(static_cast<void*>(DatumGetPointer(param->value)));
    if (prefetch->lookup == nullptr) elog(ERROR, "a prefetch of keys lacks its lookup");
  }
  if (prefetch->next == prefetch->count) read_batch(prefetch);
  if (prefetch->count == 0) return ExecClearTuple(node->ss.ss_ScanTupleSlot);
  const size_t at = prefetch->next++;
  const int key = prefetch->key_numbers[at];
  RdmaccPrefetchedRow* prefetched = &prefetch->lookup->prefetched;
  prefetched->table = key < 0 ? 0 : prefetch->table;
  if (key >= 0) {
    prefetched->key = prefetch->keys[key];
    prefetched->row = prefetch->rows[key];
  }
  ExecStoreMinimalTuple(prefetch->outer_rows[at], node->ss.ss_ScanTupleSlot, false);
  return project(node);
}

void end(CustomScanState* node) {
  RdmaccKeyPrefetch* prefetch = prefetch_of(node);
  ExecClearTuple(node->ss.ss_ScanTupleSlot);
  MemoryContextDelete(prefetch->memory);
  ExecEndNode(outer_of(node));
}

void rescan(CustomScanState* node) {
  RdmaccKeyPrefetch* prefetch = prefetch_of(node);
  PlanState* outer = outer_of(node);
  forget_batch(prefetch);
  prefetch->wanted = 1;
  prefetch->ended = false;
  if (node->ss.ps.chgParam != nullptr) UpdateChangedParamSet(outer, node->ss.ps.chgParam);
  if (outer->chgParam == nullptr) ExecReScan(outer);
}

const CustomExecMethods state_methods =
    rdmacc_node_methods("RdmaccKeyPrefetch", {.begin = begin,
                                              .exec = exec,
                                              .end = end,
                                              .rescan = rescan,
                                              .explain = rdmacc_explain_prefetch});

Node* create_state(CustomScan*) {
  return rdmacc_make_node_state<RdmaccKeyPrefetch>(&state_methods);
}

const CustomScanMethods plan_methods = {
    .CustomName = "RdmaccKeyPrefetch",
    .CreateCustomScanState = create_state,
};

/* ---- Path and plan. custom_private: the values (a path's alone), then the parameter. */

Plan* plan_path(PlannerInfo*, RelOptInfo*, CustomPath* best_path, List* tlist, List*,
                List* custom_plans) {
  CustomScan* scan = makeNode(CustomScan);
  scan->scan.plan.targetlist = tlist;
  scan->custom_plans = custom_plans;
  scan->custom_exprs = static_cast<List*>(copyObjectImpl(linitial(best_path->custom_private)));
  scan->custom_private = static_cast<List*>(lsecond(best_path->custom_private));
  scan->custom_scan_tlist =
      static_cast<List*>(copyObjectImpl(static_cast<Plan*>(linitial(custom_plans))->targetlist));
  scan->methods = &plan_methods;
  return &scan->scan.plan;
}

List* reparameterize(PlannerInfo* root, List* custom_private, RelOptInfo* child_rel) {
  Node* values =
      adjust_appendrel_attrs_multilevel(root, static_cast<Node*>(linitial(custom_private)),
                                        child_rel->relids, child_rel->top_parent_relids);
  return list_make2(values, lsecond(custom_private));
}

const CustomPathMethods path_methods = {
    .CustomName = "RdmaccKeyPrefetch",
    .PlanCustomPath = plan_path,
    .ReparameterizeCustomPathByChild = reparameterize,
};

}  // namespace

Path* rdmacc_key_prefetch_path(Path* outer, const RdmaccLookupParts* parts) {
  CustomPath* prefetch = makeNode(CustomPath);
  prefetch->path = *outer;
  prefetch->path.type = T_CustomPath;
  prefetch->path.pathtype = T_CustomScan;
  prefetch->path.parallel_aware = false;
  prefetch->path.parallel_safe = false;
  prefetch->path.parallel_workers = 0;
  prefetch->path.total_cost += outer->rows * cpu_operator_cost;
  prefetch->custom_paths = list_make1(outer);
  prefetch->custom_private = list_make2(parts->values, list_make1_int(parts->state_param));
  prefetch->methods = &path_methods;
  return &prefetch->path;
}

void rdmacc_key_prefetch_init(void) { RegisterCustomScanMethods(&plan_methods); }
