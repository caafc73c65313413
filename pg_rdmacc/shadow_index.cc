#include "pg_rdmacc/shadow_index.h"

#include "pg_rdmacc/fetch.h"
#include "pg_rdmacc/index_scan.h"
#include "pg_rdmacc/index_write.h"
#include "pg_rdmacc/key_codec.h"
#include "pg_rdmacc/scan_rows.h"
#include "pg_rdmacc/unique_check.h"
#include "pg_rdmacc/xact.h"

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
bool have_btree;
IndexAmRoutine btree; /* as PostgreSQL made it */

bool aminsert(Relation index, Datum* values, bool* isnull, ItemPointer heap_tid, Relation heap,
              IndexUniqueCheck check_unique, bool unchanged, IndexInfo* info);
IndexScanDesc ambeginscan(Relation index, int nkeys, int norderbys);

/* True, and the index has its own routine again, when its table has left us. */
bool give_back(Relation index) {
  if (rdmacc_relation_is_ours(index->rd_index->indrelid)) return false;
  *index->rd_indam = btree;
  return true;
}

/* Rows bring their keys and entries with them: what is left is to say whether a row is unique. */
bool aminsert(Relation index, Datum* values, bool* isnull, ItemPointer heap_tid, Relation heap,
              IndexUniqueCheck check_unique, bool unchanged, IndexInfo* info) {
  if (!rdmacc_is_ours(heap) && give_back(index)) {
    return btree.aminsert(index, values, isnull, heap_tid, heap, check_unique, unchanged, info);
  }
  return rdmacc_index_check_inserted(index, values, isnull, heap_tid, heap, check_unique);
}

bool is_primary_key(IndexScanDesc scan) { return scan->indexRelation->rd_index->indisprimary; }

IndexScanDesc ambeginscan(Relation index, int nkeys, int norderbys) {
  if (give_back(index)) return btree.ambeginscan(index, nkeys, norderbys);
  IndexScanDesc scan = RelationGetIndexScan(index, nkeys, norderbys);
  if (is_primary_key(scan)) {
    scan->opaque = palloc0(sizeof(RdmaccLookup));
  } else {
    rdmacc_index_scan_begin(scan);
  }
  return scan;
}

void amrescan(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey, int) {
  if (keys != nullptr && scan->numberOfKeys > 0) {
    memmove(scan->keyData, keys, static_cast<size_t>(nkeys) * sizeof(ScanKeyData));
  }
  if (is_primary_key(scan)) {
    static_cast<RdmaccLookup*>(scan->opaque)->done = false;
  } else {
    rdmacc_index_scan_rescan(scan);
  }
}

/* ---- The primary key: whole keys alone */

/* One value of each key column, in order. */
void append_scan_keys(IndexScanDesc scan, const RdmaccKeyLayout* layout, StringInfo key) {
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
  auto* lookup = static_cast<RdmaccLookup*>(scan->opaque);
  if (lookup->done) return false;
  lookup->done = true;
  const RdmaccTable table = *rdmacc_table(scan->heapRelation);
  StringInfoData key;
  initStringInfo(&key);
  append_scan_keys(scan, &table.key, &key);
  pgstat_count_index_scan(scan->indexRelation);
  lookup->row.found = false;
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
  return is_primary_key(scan) ? look_up(scan) : rdmacc_index_scan_next(scan, direction);
}

void amendscan(IndexScanDesc scan) {
  if (is_primary_key(scan)) {
    pfree(scan->opaque);
  } else {
    rdmacc_index_scan_end(scan);
  }
}

void override_routine(Relation index) {
  IndexAmRoutine* routine = index->rd_indam;
  if (index->rd_rel->relam != BTREE_AM_OID || routine->aminsert == aminsert) return;
  if (!have_btree) {
    btree = *routine;
    have_btree = true;
  }
  routine->aminsert = aminsert;
  routine->ambeginscan = ambeginscan;
  routine->amrescan = amrescan;
  routine->amgettuple = amgettuple;
  routine->amendscan = amendscan;
  routine->amgetbitmap = nullptr;
  routine->ammarkpos = nullptr;
  routine->amrestrpos = nullptr;
  routine->amcanreturn = nullptr;
  routine->amcanparallel = false;
  routine->ampredlocks = true;
}

void relcache_changed(Datum, Oid) { index_epoch++; }

/* PostgreSQL opens the index of an IndexScan after it has asked for the table's slots. Here it is
 * open, and not yet used. */
bool override_scans(PlanState* state, void* context) {
  if (state == nullptr) return false;
  if (IsA(state, IndexScanState)) {
    const auto* scan = reinterpret_cast<const IndexScanState*>(state);
    Relation relation = scan->ss.ss_currentRelation;
    if (relation != nullptr && scan->iss_RelationDesc != nullptr && rdmacc_is_ours(relation)) {
      override_routine(scan->iss_RelationDesc);
      rdmacc_override_all_indexes(relation);
    }
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
  if ((flags & EXEC_FLAG_EXPLAIN_ONLY) == 0) override_scans(query->planstate, nullptr);
}

}  // namespace

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
    found = found || (index->rd_refcnt > 1 && index->rd_rel->relam == BTREE_AM_OID &&
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
  rdmacc_unique_check_init();
}
