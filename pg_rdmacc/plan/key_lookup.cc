#include "pg_rdmacc/plan/key_lookup.h"

#include "pg_rdmacc/codec/key_codec.h"
#include "pg_rdmacc/index/shadow_index.h"
#include "pg_rdmacc/row/fetch.h"
#include "pg_rdmacc/row/row_lock.h"
#include "pg_rdmacc/row/slot.h"
#include "pg_rdmacc/server/error.h"
#include "pg_rdmacc/xact/exported_snapshot.h"
#include "pg_rdmacc/xact/lock_holder.h"
#include "pg_rdmacc/xact/running_query.h"
#include "pg_rdmacc/xact/xact.h"

extern "C" {
#include "executor/executor.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
}

namespace {

constexpr size_t kKeysPerExchange = 256;

RdmaccKeyLookup* lookup_of(CustomScanState* node) {
  return reinterpret_cast<RdmaccKeyLookup*>(node);
}

Oid value_type(const RdmaccKeyLookup* lookup, const RdmaccKeyLayout* layout, int column) {
  const Oid type = list_nth_oid(lookup->types, column);
  return OidIsValid(type) ? type : layout->columns[column].type;
}

/* ---- The keys that are looked up */

void make_key(RdmaccKeyLookup* lookup, const RdmaccKeyLayout* layout) {
  resetStringInfo(&lookup->key);
  if (!rdmacc_lookup_make_key(lookup, layout, lookup->values, lookup->custom.ss.ps.ps_ExprContext,
                              &lookup->key)) {
    return;
  }
  lookup->keys = static_cast<BridgeBytes*>(palloc(sizeof(BridgeBytes)));
  lookup->keys[0] = {lookup->key.data, static_cast<size_t>(lookup->key.len)};
  lookup->count = lookup->key.len <= RDMACC_KEY_BYTES_MAX ? 1 : 0; /* no row has a longer one */
}

int compare_keys(const void* left, const void* right) {
  const auto* one = static_cast<const BridgeBytes*>(left);
  const auto* other = static_cast<const BridgeBytes*>(right);
  const int order = memcmp(one->data, other->data, Min(one->size, other->size));
  if (order != 0) return order;
  return one->size < other->size ? -1 : one->size > other->size;
}

/* A value that the array has twice finds its row once. */
void sort_keys_unique(RdmaccKeyLookup* lookup) {
  if (lookup->count < 2) return;
  qsort(lookup->keys, lookup->count, sizeof(BridgeBytes), compare_keys);
  size_t kept = 1;
  for (size_t i = 1; i < lookup->count; i++) {
    if (compare_keys(&lookup->keys[i], &lookup->keys[kept - 1]) != 0) {
      lookup->keys[kept++] = lookup->keys[i];
    }
  }
  lookup->count = kept;
}

void make_array_keys(RdmaccKeyLookup* lookup, const RdmaccKeyLayout* layout) {
  bool is_null = false;
  const Datum value = ExecEvalExprSwitchContext(static_cast<ExprState*>(linitial(lookup->values)),
                                                lookup->custom.ss.ps.ps_ExprContext, &is_null);
  if (is_null) return;
  Datum* elements = nullptr;
  bool* nulls = nullptr;
  const int count = rdmacc_array_elements(value, &elements, &nulls);
  lookup->keys =
      static_cast<BridgeBytes*>(palloc(sizeof(BridgeBytes) * static_cast<Size>(Max(count, 1))));
  for (int i = 0; i < count; i++) {
    if (nulls[i]) continue;
    StringInfoData key;
    initStringInfo(&key);
    rdmacc_append_key_column(layout, 0, value_type(lookup, layout, 0), elements[i], &key);
    if (key.len > RDMACC_KEY_BYTES_MAX) continue;
    lookup->keys[lookup->count++] = {key.data, static_cast<size_t>(key.len)};
  }
  sort_keys_unique(lookup);
}

/* ---- Fetching */

/* True when the row was looked up beforehand. */
bool take_prefetched(RdmaccKeyLookup* lookup) {
  const RdmaccPrefetchedRow* prefetched = &lookup->prefetched;
  if (lookup->count != 1 || prefetched->table == 0 || prefetched->table != lookup->table)
    return false;
  if (!rdmacc_same_bytes(prefetched->key, lookup->keys[0])) return false;
  lookup->rows[0] = prefetched->row;
  return true;
}

void exchange(RdmaccKeyLookup* lookup) {
  rdmacc_lookup_count_scans(lookup, 1);
  lookup->round_trips +=
      rdmacc_lookup_many(lookup, lookup->table, lookup->keys, lookup->count, lookup->rows);
}

void fetch(RdmaccKeyLookup* lookup) {
  const RdmaccTable table = rdmacc_lookup_table(lookup);
  const MemoryContext previous = MemoryContextSwitchTo(lookup->memory);
  lookup->table = table.id;
  if (lookup->is_array) {
    make_array_keys(lookup, &table.key);
  } else {
    make_key(lookup, &table.key);
  }
  lookup->rows = static_cast<BridgeRow*>(palloc0(sizeof(BridgeRow) * Max(lookup->count, 1)));
  MemoryContextSwitchTo(previous);
  lookup->fetched = true;
  if (!take_prefetched(lookup)) exchange(lookup);
}

void note_node(RdmaccKeyLookup* lookup, int node) {
  if (bms_is_member(node, lookup->nodes)) return;
  const MemoryContext previous = MemoryContextSwitchTo(lookup->custom.ss.ps.state->es_query_cxt);
  lookup->nodes = bms_add_member(lookup->nodes, node);
  MemoryContextSwitchTo(previous);
}

TupleTableSlot* access_next(ScanState* state) {
  auto* lookup = reinterpret_cast<RdmaccKeyLookup*>(state);
  TupleTableSlot* slot = state->ss_ScanTupleSlot;
  ExprContext* context = state->ps.ps_ExprContext;
  if (!lookup->fetched) fetch(lookup);
  const int64 count = static_cast<int64>(lookup->count);
  const bool back = ScanDirectionIsBackward(state->ps.state->es_direction);
  while (lookup->place != (back ? -1 : count)) {
    lookup->place += back ? -1 : 1;
    if (lookup->place < 0 || lookup->place == count) break;
    const auto at = static_cast<size_t>(lookup->place);
    const BridgeRow* row = &lookup->rows[at];
    if (!row->found) continue;
    note_node(lookup, row->node);
    const RdmaccHandle handle = {.relation = RelationGetRelid(state->ss_currentRelation),
                                 .table = lookup->table,
                                 .visible_before = state->ps.state->es_snapshot->curcid,
                                 .key = lookup->keys[at],
                                 .row = *row};
    ItemPointerData tid;
    rdmacc_handle_assign(&lookup->handles, &handle, &tid);
    rdmacc_slot_store(slot, state->ss_currentRelation, row, &tid);
    pgstat_count_heap_fetch(state->ss_currentRelation);
    context->ecxt_scantuple = slot;
    if (!lookup->compares || ExecQual(lookup->recheck, context)) return slot;
  }
  return ExecClearTuple(slot);
}

bool access_recheck(ScanState* state, TupleTableSlot* slot) {
  auto* lookup = reinterpret_cast<RdmaccKeyLookup*>(state);
  CHECK(lookup->compares);
  state->ps.ps_ExprContext->ecxt_scantuple = slot;
  return ExecQual(lookup->recheck, state->ps.ps_ExprContext);
}

/* Where a RdmaccKeyPrefetch will look for this node. */
void leave_state(RdmaccKeyLookup* lookup, EState* estate, Oid state_param) {
  if (!OidIsValid(state_param)) return;
  estate->es_param_exec_vals[state_param - 1].value = PointerGetDatum(lookup);
  estate->es_param_exec_vals[state_param - 1].isnull = false;
}

}  // namespace

RdmaccTable rdmacc_lookup_table(const RdmaccKeyLookup* lookup) {
  Relation relation = lookup->custom.ss.ss_currentRelation;
  const RdmaccTable table = *rdmacc_table(relation);
  if (table.key.number == 0 ||
      (!lookup->is_array && table.key.column_count != list_length(lookup->values))) {
    elog(ERROR, "table \"%s\" is not keyed by its primary key", RelationGetRelationName(relation));
  }
  return table;
}

bool rdmacc_lookup_make_key(const RdmaccKeyLookup* lookup, const RdmaccKeyLayout* layout,
                            const List* values, ExprContext* context, StringInfo key) {
  for (int i = 0; i < layout->column_count; i++) {
    bool is_null = false;
    const Datum value =
        ExecEvalExprSwitchContext(static_cast<ExprState*>(list_nth(values, i)), context, &is_null);
    if (is_null) return false;
    rdmacc_append_key_column(layout, i, value_type(lookup, layout, i), value, key);
  }
  return true;
}

void rdmacc_lookup_count_scans(const RdmaccKeyLookup* lookup, size_t count) {
  Relation index = RelationIdGetRelation(lookup->index);
  if (!RelationIsValid(index)) return;
  for (size_t i = 0; i < count; i++) pgstat_count_index_scan(index);
  RelationClose(index);
}

namespace {

/* What is looked up for nothing but to be locked, or written, is locked in the same step: read
 * first, it might be another's before it is. */
bool locks_at_once(const RdmaccKeyLookup* lookup) {
  const ScanState* scan = &lookup->custom.ss;
  const PlannedStmt* statement = scan->ps.state->es_plannedstmt;
  const Plan* plan = scan->ps.plan;
  if (lookup->is_array || plan->qual != NIL || outerPlan(statement->planTree) != plan) return false;
  if (IsA(statement->planTree, LockRows)) {
    return lookup->mark.exclusive || (lookup->mark.locks && rdmacc_shares_rows());
  }
  return IsA(statement->planTree, ModifyTable) && rdmacc_locks_at_write();
}

CommandId lock_command_of(const RdmaccKeyLookup* lookup) {
  return locks_at_once(lookup) ? lookup->custom.ss.ps.state->es_output_cid : InvalidCommandId;
}

}  // namespace

uint64 rdmacc_lookup_many(const RdmaccKeyLookup* lookup, uint32 table, const BridgeBytes* keys,
                          size_t count, BridgeRow* rows) {
  const RdmaccRead read = {.relation = lookup->custom.ss.ss_currentRelation,
                           .table = table,
                           .visible_before = lookup->custom.ss.ps.state->es_snapshot->curcid,
                           .mark = lookup->mark,
                           .to_write = lookup->to_write,
                           .lock_command = lock_command_of(lookup),
                           .batch = nullptr};
  const uint64 before = bridge_counters().round_trips;
  rdmacc_check_reads_by_key();
  for (size_t at = 0; at < count; at += kKeysPerExchange) {
    rdmacc_read_rows(&read, keys + at, Min(count - at, kKeysPerExchange), rows + at);
  }
  return bridge_counters().round_trips - before;
}

void rdmacc_lookup_begin(CustomScanState* node, EState* estate, int) {
  RdmaccKeyLookup* lookup = lookup_of(node);
  const auto* plan = reinterpret_cast<const CustomScan*>(node->ss.ps.plan);
  auto* flags = static_cast<List*>(lsecond(plan->custom_private));
  /* PostgreSQL 15 gives custom scans virtual slots, which have no system columns. */
  ExecInitScanTupleSlot(estate, &node->ss, RelationGetDescr(node->ss.ss_currentRelation),
                        &TTSOpsHeapTuple);
  ExecAssignScanProjectionInfo(&node->ss);
  node->ss.ps.qual = ExecInitQual(plan->scan.plan.qual, &node->ss.ps);
  lookup->values = ExecInitExprList(static_cast<List*>(linitial(plan->custom_exprs)), &node->ss.ps);
  /* A row that comes from elsewhere (EvalPlanQual) was not found by the present values. */
  lookup->compares = lfourth_oid(flags) != 0 || estate->es_epq_active != nullptr;
  auto* clauses = static_cast<List*>(lsecond(plan->custom_exprs));
  lookup->recheck = lookup->compares ? ExecInitQual(clauses, &node->ss.ps) : nullptr;
  lookup->types = static_cast<List*>(linitial(plan->custom_private));
  lookup->index = linitial_oid(flags);
  lookup->is_array = lsecond_oid(flags) != 0;
  lookup->mark = rdmacc_row_mark_of(estate->es_plannedstmt, plan->scan.scanrelid);
  lookup->to_write = rdmacc_writes_rows_of(estate->es_plannedstmt, plan->scan.scanrelid);
  lookup->memory =
      AllocSetContextCreate(estate->es_query_cxt, "rdmacc key lookup", ALLOCSET_SMALL_SIZES);
  initStringInfo(&lookup->key);
  lookup->place = -1;
  leave_state(lookup, estate, lthird_oid(flags));
  rdmacc_override_all_indexes(node->ss.ss_currentRelation);
}

TupleTableSlot* rdmacc_lookup_exec(CustomScanState* node) {
  RdmaccKeyLookup* lookup = lookup_of(node);
  if (!lookup->started) {
    lookup->started = true;
    rdmacc_handle_stream_begin(&lookup->handles,
                               rdmacc_query_keeps_handles(node->ss.ss_currentRelation));
  }
  return ExecScan(&node->ss, access_next, access_recheck);
}

void rdmacc_lookup_end(CustomScanState* node) {
  RdmaccKeyLookup* lookup = lookup_of(node);
  rdmacc_handle_stream_end(&lookup->handles);
  MemoryContextDelete(lookup->memory);
  ExecClearTuple(node->ss.ss_ScanTupleSlot);
}

void rdmacc_lookup_rescan(CustomScanState* node) {
  RdmaccKeyLookup* lookup = lookup_of(node);
  MemoryContextReset(lookup->memory);
  lookup->rows = nullptr;
  lookup->keys = nullptr;
  lookup->count = 0;
  lookup->place = -1;
  lookup->fetched = false;
  ExecScanReScan(&node->ss);
}

void rdmacc_lookup_pause(RdmaccKeyLookup* lookup) {
  rdmacc_lookup_rescan(&lookup->custom);
  rdmacc_handle_stream_end(&lookup->handles);
  lookup->started = false;
  lookup->prefetched.table = 0;
  lookup->round_trips = 0;
}
