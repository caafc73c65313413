#include "pg_rdmacc/index/shadow_index.h"

#include "pg_rdmacc/index/bitmap_scan.h"
#include "pg_rdmacc/index/index_scan.h"
#include "pg_rdmacc/index/index_write.h"
#include "pg_rdmacc/index/secondary_indexes.h"
#include "pg_rdmacc/relation/access_method.h"
#include "pg_rdmacc/row/handle.h"
#include "pg_rdmacc/server/error.h"
#include "pg_rdmacc/xact/exported_snapshot.h"
#include "pg_rdmacc/xact/xact.h"

extern "C" {
#include "access/amapi.h"
#include "access/genam.h"
#include "access/relscan.h"
#include "access/skey.h"
#include "access/xact.h"
#include "catalog/pg_am.h"
#include "executor/executor.h"
#include "nodes/execnodes.h"
#include "nodes/nodeFuncs.h"
#include "pgstat.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
}

namespace {

ExecutorStart_hook_type previous_start;
uint64 index_epoch = 1; /* rises with every change in the relcache */
/* What ON CONFLICT has looked for last and not found, in which command. */
StringInfoData absent_key;
uint32 absent_table;
uint32 absent_transaction;
CommandId absent_command;
/* As PostgreSQL made them. */
bool have_btree;
IndexAmRoutine btree;
bool have_hash;
IndexAmRoutine hash;

/* What a scan of the primary key keeps. */
struct Lookup {
  BridgeRow row;
  bool done;
};

bool aminsert(Relation index, Datum* values, bool* isnull, ItemPointer heap_tid, Relation heap,
              IndexUniqueCheck check_unique, bool unchanged, IndexInfo* info);
IndexScanDesc ambeginscan(Relation index, int nkeys, int norderbys);

/* PostgreSQL's routine of an index's kind. */
const IndexAmRoutine* stock_routine(Relation index) {
  CHECK(index->rd_rel->relam == HASH_AM_OID ? have_hash : have_btree);
  return index->rd_rel->relam == HASH_AM_OID ? &hash : &btree;
}

/* True, and the index has its own routine again, when its table has left us. */
bool give_back(Relation index) {
  CHECK(index->rd_indam != nullptr && index->rd_indam->aminsert == aminsert);
  if (rdmacc_relation_is_ours(index->rd_index->indrelid)) return false;
  *index->rd_indam = *stock_routine(index);
  return true;
}

/* Rows bring their keys and entries with them: what is left is to say whether a row is unique. */
bool aminsert(Relation index, Datum* values, bool* isnull, ItemPointer heap_tid, Relation heap,
              IndexUniqueCheck check_unique, bool unchanged, IndexInfo* info) {
  if (!rdmacc_is_ours(heap) && give_back(index)) {
    return index->rd_indam->aminsert(index, values, isnull, heap_tid, heap, check_unique, unchanged,
                                     info);
  }
  return rdmacc_index_check_inserted(index, values, isnull, heap_tid, heap, check_unique);
}

/* Of a primary key that finds whole keys alone. */
bool looks_up(IndexScanDesc scan) { return !rdmacc_index_scan_is_ours(scan); }

IndexScanDesc ambeginscan(Relation index, int nkeys, int norderbys) {
  if (give_back(index)) return index->rd_indam->ambeginscan(index, nkeys, norderbys);
  IndexScanDesc scan = RelationGetIndexScan(index, nkeys, norderbys);
  if (index->rd_index->indisprimary && !rdmacc_has_entries(index)) {
    scan->opaque = palloc0(sizeof(Lookup));
  } else {
    rdmacc_index_scan_begin(scan);
  }
  return scan;
}

void amrescan(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey, int) {
  if (keys != nullptr && scan->numberOfKeys > 0) {
    memmove(scan->keyData, keys, static_cast<size_t>(nkeys) * sizeof(ScanKeyData));
  }
  if (looks_up(scan)) {
    static_cast<Lookup*>(scan->opaque)->done = false;
  } else {
    rdmacc_index_scan_rescan(scan);
  }
}

/* ---- The primary key: whole keys alone */

/* One value of each key column, in order. */
void append_scan_keys(IndexScanDesc scan, const RdmaccKeyLayout* layout, StringInfo key) {
  CHECK(key->len == 0);
  bool usable = scan->numberOfKeys == layout->column_count && scan->numberOfOrderBys == 0;
  for (int i = 0; usable && i < scan->numberOfKeys; i++) {
    const ScanKeyData* wanted = &scan->keyData[i];
    usable = wanted->sk_attno == i + 1 && wanted->sk_strategy == BTEqualStrategyNumber &&
             wanted->sk_flags == 0 &&
             (wanted->sk_subtype == InvalidOid ||
              wanted->sk_subtype == scan->indexRelation->rd_opcintype[i]);
    if (usable) {
      rdmacc_append_key_column(layout, i, layout->columns[i].type, wanted->sk_argument, key);
    }
  }
  if (usable) return;
  ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                  errmsg("index \"%s\" of an rdmacc table can only be searched for whole keys",
                         RelationGetRelationName(scan->indexRelation))));
}

uint32 visible_before(Snapshot snapshot) {
  return IsMVCCSnapshot(snapshot) ? snapshot->curcid : RDMACC_EVERY_COMMAND;
}

void note_absent(uint32 table, BridgeBytes key) {
  CHECK(key.size > 0);
  if (absent_key.data == nullptr) {
    const MemoryContext previous = MemoryContextSwitchTo(TopMemoryContext);
    initStringInfo(&absent_key);
    MemoryContextSwitchTo(previous);
  }
  absent_table = table;
  absent_transaction = rdmacc_transaction_number();
  absent_command = GetCurrentCommandId(false);
  resetStringInfo(&absent_key);
  appendBinaryStringInfo(&absent_key, key.data, static_cast<int>(key.size));
}

bool look_up(IndexScanDesc scan) {
  auto* lookup = static_cast<Lookup*>(scan->opaque);
  if (lookup->done) return false;
  lookup->done = true;
  CHECK(RelationIsValid(scan->heapRelation) && scan->xs_snapshot != nullptr);
  const RdmaccTable table = *rdmacc_table(scan->heapRelation);
  StringInfoData key;
  initStringInfo(&key);
  append_scan_keys(scan, &table.key, &key);
  pgstat_count_index_scan(scan->indexRelation);
  lookup->row.found = false;
  rdmacc_check_reads_by_key();
  const BridgeBytes bytes = {key.data, static_cast<size_t>(key.len)};
  bridge_start_get(table.id, bytes, visible_before(scan->xs_snapshot), &lookup->row);
  rdmacc_pump();
  rdmacc_check("could not look up a key", RelationGetRelationName(scan->heapRelation));
  scan->xs_recheck = true; /* the key's bytes may be a hash */
  scan->xs_recheckorderby = false;
  if (lookup->row.found) {
    const RdmaccHandle handle = {.relation = RelationGetRelid(scan->heapRelation),
                                 .table = table.id,
                                 .visible_before = visible_before(scan->xs_snapshot),
                                 .key = bytes,
                                 .row = lookup->row};
    rdmacc_handle_assign(rdmacc_handle_write_stream(false), &handle, &scan->xs_heaptid);
  }
  if (!lookup->row.found && scan->xs_snapshot->snapshot_type == SNAPSHOT_DIRTY) {
    note_absent(table.id, bytes);
  }
  pfree(key.data);
  return lookup->row.found;
}

/* ---- All indexes */

bool amgettuple(IndexScanDesc scan, ScanDirection direction) {
  return looks_up(scan) ? look_up(scan) : rdmacc_index_scan_next(scan, direction);
}

int64 amgetbitmap(IndexScanDesc scan, TIDBitmap* bitmap) {
  if (looks_up(scan)) elog(ERROR, "the primary key of an rdmacc table makes no bitmaps");
  return rdmacc_index_bitmap(scan, bitmap);
}

void amendscan(IndexScanDesc scan) {
  CHECK(scan->opaque != nullptr);
  if (looks_up(scan)) {
    pfree(scan->opaque);
  } else {
    rdmacc_index_scan_end(scan);
  }
}

bool is_offered(Relation index) {
  return index->rd_rel->relam == BTREE_AM_OID || index->rd_rel->relam == HASH_AM_OID;
}

void keep_stock(const IndexAmRoutine* routine, IndexAmRoutine* stock, bool* have) {
  if (!*have) *stock = *routine;
  *have = true;
}

void override_routine(Relation index) {
  CHECK(index->rd_rel->relkind == RELKIND_INDEX && index->rd_indam != nullptr);
  IndexAmRoutine* routine = index->rd_indam;
  if (!is_offered(index) || routine->aminsert == aminsert) return;
  if (index->rd_rel->relam == HASH_AM_OID) {
    keep_stock(routine, &hash, &have_hash);
  } else {
    keep_stock(routine, &btree, &have_btree);
  }
  routine->aminsert = aminsert;
  routine->ambeginscan = ambeginscan;
  routine->amrescan = amrescan;
  routine->amgettuple = amgettuple;
  routine->amendscan = amendscan;
  routine->amgetbitmap = amgetbitmap;
  routine->ammarkpos = nullptr;
  routine->amrestrpos = nullptr;
  routine->amcanreturn = nullptr;
  routine->amcanparallel = false;
  routine->ampredlocks = true;
}

void relcache_changed(Datum, Oid) { index_epoch++; }

void override_scan(Relation relation, Relation index) {
  if (relation == nullptr || index == nullptr || !rdmacc_is_ours(relation)) return;
  override_routine(index);
  rdmacc_override_all_indexes(relation);
}

/* The scan of an index that makes a bitmap has begun already: it is begun anew if that was a scan
 * of the empty file. */
void override_bitmap_scan(BitmapIndexScanState* state) {
  Relation index = state->biss_RelationDesc;
  if (index == nullptr || !rdmacc_relation_is_ours(index->rd_index->indrelid)) return;
  override_routine(index);
  if (rdmacc_index_scan_is_ours(state->biss_ScanDesc)) return;
  const MemoryContext previous = MemoryContextSwitchTo(state->ss.ps.state->es_query_cxt);
  *index->rd_indam = *stock_routine(index);
  index_endscan(state->biss_ScanDesc);
  override_routine(index);
  state->biss_ScanDesc =
      index_beginscan_bitmap(index, state->ss.ps.state->es_snapshot, state->biss_NumScanKeys);
  if (state->biss_NumRuntimeKeys == 0 && state->biss_NumArrayKeys == 0) {
    index_rescan(state->biss_ScanDesc, state->biss_ScanKeys, state->biss_NumScanKeys, nullptr, 0);
  }
  MemoryContextSwitchTo(previous);
}

/* PostgreSQL opens the index of an IndexScan after it has asked for the table's slots. Here it is
 * open, and not yet used. */
bool override_scans(PlanState* state, void* context) {
  if (state == nullptr) return false;
  if (IsA(state, IndexScanState)) {
    const auto* scan = reinterpret_cast<const IndexScanState*>(state);
    override_scan(scan->ss.ss_currentRelation, scan->iss_RelationDesc);
  } else if (IsA(state, IndexOnlyScanState)) {
    const auto* scan = reinterpret_cast<const IndexOnlyScanState*>(state);
    override_scan(scan->ss.ss_currentRelation, scan->ioss_RelationDesc);
  } else if (IsA(state, BitmapIndexScanState)) {
    override_bitmap_scan(reinterpret_cast<BitmapIndexScanState*>(state));
  }
  return planstate_tree_walker(
      state, reinterpret_cast<bool (*)()>(reinterpret_cast<void (*)()>(override_scans)), context);
}

void executor_start(QueryDesc* query, int flags) {
  if (previous_start != nullptr) {
    previous_start(query, flags);
  } else {
    standard_ExecutorStart(query, flags);
  }
  if ((flags & EXEC_FLAG_EXPLAIN_ONLY) == 0) rdmacc_override_scans(query);
}

}  // namespace

void rdmacc_override_scans(QueryDesc* query) {
  CHECK(query->estate != nullptr);
  override_scans(query->planstate, nullptr);
  /* Not every one of them hangs in the tree of the plan. */
  ListCell* cell;
  foreach (cell, query->estate->es_subplanstates) {
    override_scans(static_cast<PlanState*>(lfirst(cell)), nullptr);
  }
}

void rdmacc_override_all_indexes(Relation relation) {
  if (!relation->rd_rel->relhasindex || !IsTransactionState()) return;
  List* indexes = RelationGetIndexList(relation);
  ListCell* cell;
  foreach (cell, indexes) {
    Relation index = RelationIdGetRelation(lfirst_oid(cell));
    if (!RelationIsValid(index)) continue;
    override_routine(index);
    RelationClose(index);
  }
  list_free(indexes);
}

void rdmacc_override_indexes(Relation relation, RdmaccTable* table) {
  if (table->index_epoch == index_epoch) return;
  const uint64 epoch = index_epoch;
  rdmacc_override_all_indexes(relation);
  /* Opening indexes may have rebuilt the table's cache entry. */
  if (relation->rd_amcache == table) table->index_epoch = epoch;
}

uint64 rdmacc_index_epoch(void) { return index_epoch; }

bool rdmacc_key_was_absent(uint32 table, BridgeBytes key, CommandId command) {
  return absent_key.data != nullptr && absent_table == table &&
         absent_transaction == rdmacc_transaction_number() && absent_command == command &&
         static_cast<size_t>(absent_key.len) == key.size &&
         memcmp(absent_key.data, key.data, key.size) == 0;
}

bool rdmacc_has_foreign_index_open(Relation relation) {
  bool found = false;
  List* indexes = RelationGetIndexList(relation);
  ListCell* cell;
  foreach (cell, indexes) {
    Relation index = RelationIdGetRelation(lfirst_oid(cell));
    if (!RelationIsValid(index)) continue;
    /* One reference is ours. */
    found = found || (index->rd_refcnt > 1 && is_offered(index) &&
                      index->rd_indam->ambeginscan != ambeginscan);
    RelationClose(index);
  }
  list_free(indexes);
  return found;
}

void rdmacc_shadow_index_init(void) {
  CacheRegisterRelcacheCallback(relcache_changed, 0);
  previous_start = ExecutorStart_hook;
  ExecutorStart_hook = executor_start;
}
