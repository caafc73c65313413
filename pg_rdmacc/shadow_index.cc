#include "pg_rdmacc/shadow_index.h"

#include "pg_rdmacc/fetch.h"
#include "pg_rdmacc/key_codec.h"
#include "pg_rdmacc/scan_rows.h"
#include "pg_rdmacc/xact.h"

extern "C" {
#include "access/amapi.h"
#include "access/genam.h"
#include "access/relscan.h"
#include "access/skey.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "catalog/pg_am.h"
#include "commands/defrem.h"
#include "nodes/execnodes.h"
#include "pgstat.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/pg_locale.h"
#include "utils/snapmgr.h"
}

namespace {

uint64 index_epoch = 1; /* rises with every change in the relcache */
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

/* The engine has enforced the key with the row. */
bool aminsert(Relation index, Datum* values, bool* isnull, ItemPointer heap_tid, Relation heap,
              IndexUniqueCheck check_unique, bool unchanged, IndexInfo* info) {
  if (!rdmacc_is_ours(heap) && give_back(index)) {
    return btree.aminsert(index, values, isnull, heap_tid, heap, check_unique, unchanged, info);
  }
  return true;
}

IndexScanDesc ambeginscan(Relation index, int nkeys, int norderbys) {
  if (give_back(index)) return btree.ambeginscan(index, nkeys, norderbys);
  IndexScanDesc scan = RelationGetIndexScan(index, nkeys, norderbys);
  scan->opaque = palloc0(sizeof(RdmaccLookup));
  return scan;
}

void amrescan(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey, int) {
  static_cast<RdmaccLookup*>(scan->opaque)->done = false;
  if (keys != nullptr && scan->numberOfKeys > 0) {
    memmove(scan->keyData, keys, static_cast<size_t>(nkeys) * sizeof(ScanKeyData));
  }
}

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
      rdmacc_key_append(key, layout->columns[i].type, layout->columns[i].collation,
                        wanted->sk_argument);
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

bool amgettuple(IndexScanDesc scan, ScanDirection) {
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
  pfree(key.data);
  return lookup->row.found;
}

void amendscan(IndexScanDesc scan) { pfree(scan->opaque); }

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

[[noreturn]] void refuse(Relation relation, Relation index, const char* what, const char* hint) {
  ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                  errmsg("cannot create %s \"%s\" on rdmacc table \"%s\"", what,
                         RelationGetRelationName(index), RelationGetRelationName(relation)),
                  errhint("%s", hint)));
}

void check_key_columns(Relation relation, Relation index) {
  RdmaccKeyLayout layout = {};
  rdmacc_index_layout(relation, index, &layout);
  for (int i = 0; i < layout.column_count; i++) {
    const RdmaccKeyColumn* column = &layout.columns[i];
    if (rdmacc_key_kind(column->type) == RDMACC_KEY_NONE) {
      ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                      errmsg("type %s cannot be part of the primary key of an rdmacc table",
                             format_type_be(column->type)),
                      errhint("Use a data type that can be hashed.")));
    }
    if (OidIsValid(column->collation) && !get_collation_isdeterministic(column->collation)) {
      refuse(relation, index, "primary key with a nondeterministic collation",
             "Use a deterministic collation for the key's columns.");
    }
  }
}

/* REINDEX CONCURRENTLY builds a twin of the primary key and swaps the two. */
bool is_twin_of_primary_key(Relation relation, Relation index) {
  RdmaccKeyLayout present;
  rdmacc_catalog_layout(relation, &present);
  if (present.number == 0 || !index->rd_index->indisunique) return false;
  RdmaccKeyLayout twin = {};
  rdmacc_index_layout(relation, index, &twin);
  return twin.number == present.number;
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

void rdmacc_check_index(Relation relation, Relation index) {
  const Form_pg_index form = index->rd_index;
  const char* hint = "Only the primary key can be indexed for now.";
  if (index->rd_rel->relam != BTREE_AM_OID) refuse(relation, index, "a non-btree index", hint);
  if (form->indisexclusion) refuse(relation, index, "exclusion constraint", hint);
  if (RelationGetIndexExpressions(index) != NIL) refuse(relation, index, "expression index", hint);
  if (RelationGetIndexPredicate(index) != NIL) refuse(relation, index, "partial index", hint);
  if (!form->indimmediate) {
    refuse(relation, index, "deferrable constraint", "Leave out DEFERRABLE.");
  }
  if (!form->indisprimary && !is_twin_of_primary_key(relation, index)) {
    if (form->indisunique) refuse(relation, index, "unique index", hint);
    refuse(relation, index, "secondary index", hint);
  }
  check_key_columns(relation, index);
}

void rdmacc_shadow_index_init(void) { CacheRegisterRelcacheCallback(relcache_changed, 0); }
