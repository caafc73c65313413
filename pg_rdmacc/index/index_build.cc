#include "pg_rdmacc/index/index_build.h"

#include "pg_rdmacc/codec/row_codec.h"
#include "pg_rdmacc/index/index_entries.h"
#include "pg_rdmacc/index/index_row.h"
#include "pg_rdmacc/index/secondary_indexes.h"
#include "pg_rdmacc/index/unique_check.h"
#include "pg_rdmacc/relation/engine_table.h"
#include "pg_rdmacc/relation/key_layout.h"
#include "pg_rdmacc/relation/pending_tables.h"
#include "pg_rdmacc/row/scan_rows.h"
#include "pg_rdmacc/server/error.h"
#include "pg_rdmacc/xact/xact.h"

extern "C" {
#include "access/xact.h"
#include "catalog/index.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/tuplesort.h"
#include "utils/typcache.h"
}

namespace {

/* What is sorted: an entry, then the size of its columns and whether one of them is NULL. It does
 * not change the order, since no entry is the beginning of another one. */
struct Trailer {
  int32 columns_size;
  bool has_null;
};

BridgeBytes sorted_entry(Datum value, Trailer* trailer) {
  struct varlena* bytes = PG_DETOAST_DATUM_PACKED(value);
  CHECK(VARSIZE_ANY_EXHDR(bytes) > sizeof(Trailer));
  const size_t size = VARSIZE_ANY_EXHDR(bytes) - sizeof(Trailer);
  memcpy(trailer, VARDATA_ANY(bytes) + size, sizeof(Trailer));
  return {VARDATA_ANY(bytes), size};
}

/* False for a row that a partial index leaves out. */
bool add_row(Tuplesortstate* sort, Relation relation, const RdmaccIndex* index,
             const BridgeRow* row) {
  Datum values[INDEX_MAX_KEYS];
  bool nulls[INDEX_MAX_KEYS];
  if (!rdmacc_index_row_of_tuple(index, relation, rdmacc_row_decode(row->row), values, nulls)) {
    return false;
  }
  StringInfoData columns;
  initStringInfo(&columns);
  Trailer trailer = {};
  trailer.has_null = rdmacc_append_index_columns(&columns, relation, index, values, nulls);
  trailer.columns_size = columns.len;
  const BridgeBytes entry = rdmacc_index_entry(&columns, row->key);
  const Size size = VARHDRSZ + entry.size + sizeof(Trailer);
  auto* bytes = static_cast<char*>(palloc(size));
  SET_VARSIZE(bytes, size);
  memcpy(bytes + VARHDRSZ, entry.data, entry.size);
  memcpy(bytes + VARHDRSZ + entry.size, &trailer, sizeof(Trailer));
  tuplesort_putdatum(sort, PointerGetDatum(bytes), false);
  return true;
}

double sort_rows(Tuplesortstate* sort, Relation relation, const RdmaccIndex* index) {
  double count = 0;
  MemoryContext workspace =
      AllocSetContextCreate(CurrentMemoryContext, "rdmacc index build", ALLOCSET_DEFAULT_SIZES);
  RdmaccRows rows;
  rdmacc_rows_begin(&rows, rdmacc_table(relation)->id, RDMACC_EVERY_COMMAND);
  for (const BridgeRow* row = rdmacc_rows_next(&rows, relation); row != nullptr;
       row = rdmacc_rows_next(&rows, relation)) {
    CHECK_FOR_INTERRUPTS();
    const MemoryContext previous = MemoryContextSwitchTo(workspace);
    add_row(sort, relation, index, row);
    MemoryContextSwitchTo(previous);
    MemoryContextReset(workspace);
    count += 1;
  }
  rdmacc_rows_end(&rows);
  MemoryContextDelete(workspace);
  return count;
}

void insert_entry(Relation relation, const RdmaccIndex* index, BridgeBytes entry, bool may_exist) {
  CHECK(index->id != RDMACC_NO_TABLE && entry.size > 0);
  rdmacc_enter_write(GetCurrentCommandId(true));
  bridge_start_index_insert(index->id, entry);
  rdmacc_pump();
  if (may_exist && bridge_error()->code == BRIDGE_DUPLICATE_KEY) return;
  rdmacc_check("could not build an index", RelationGetRelationName(relation));
}

/* The sorted entries, each compared with the one before. */
void insert_sorted(Tuplesortstate* sort, Relation relation, const RdmaccIndex* index,
                   bool may_exist) {
  StringInfoData before;
  initStringInfo(&before);
  int32 columns_before = -1;
  Datum value = 0;
  bool is_null = false;
  while (tuplesort_getdatum(sort, true, &value, &is_null, nullptr)) {
    CHECK_FOR_INTERRUPTS();
    Trailer trailer;
    const BridgeBytes entry = sorted_entry(value, &trailer);
    if (index->unique && (index->nulls_not_distinct || !trailer.has_null)) {
      CHECK(trailer.columns_size > 0 && static_cast<size_t>(trailer.columns_size) <= entry.size);
      if (trailer.columns_size == columns_before &&
          memcmp(before.data, entry.data, static_cast<size_t>(columns_before)) == 0) {
        rdmacc_raise_index_duplicate(
            relation, index, rdmacc_entry_key(entry),
            rdmacc_entry_key({before.data, static_cast<size_t>(before.len)}), true);
      }
      resetStringInfo(&before);
      appendBinaryStringInfo(&before, entry.data, static_cast<int>(entry.size));
      columns_before = trailer.columns_size;
    }
    insert_entry(relation, index, entry, may_exist);
    pfree(DatumGetPointer(value));
  }
  pfree(before.data);
}

double fill(Relation relation, const RdmaccIndex* index, bool may_exist) {
  const TypeCacheEntry* bytea = lookup_type_cache(BYTEAOID, TYPECACHE_LT_OPR);
  Tuplesortstate* sort = tuplesort_begin_datum(BYTEAOID, bytea->lt_opr, InvalidOid, false,
                                               maintenance_work_mem, nullptr, TUPLESORT_NONE);
  const double count = sort_rows(sort, relation, index);
  tuplesort_performsort(sort);
  insert_sorted(sort, relation, index, may_exist);
  tuplesort_end(sort);
  return count;
}

/* REINDEX CONCURRENTLY makes a twin of the primary key, named after it, and swaps the two: like the
 * primary key it needs no entries. */
bool is_twin_of_primary_key(Relation relation, Relation index, const IndexInfo* info) {
  if (!info->ii_Concurrent || !info->ii_Unique) return false;
  if (rdmacc_has_ordered_key(relation)) return false; /* it needs entries, too */
  RdmaccKeyLayout present;
  rdmacc_catalog_layout(relation, &present);
  if (present.number == 0) return false;
  RdmaccKeyLayout twin = {};
  rdmacc_index_layout(relation, index, &twin);
  const char* name = makeObjectName(get_rel_name(present.index), nullptr, "ccnew");
  return twin.number == present.number &&
         strncmp(RelationGetRelationName(index), name, strlen(name)) == 0;
}

}  // namespace

double rdmacc_build_index(Relation relation, Relation index_relation, const IndexInfo* info) {
  CHECK(index_relation->rd_index->indrelid == RelationGetRelid(relation));
  const double unchanged = Max(relation->rd_rel->reltuples, 0.0);
  if (IsBinaryUpgrade || is_twin_of_primary_key(relation, index_relation, info)) return unchanged;
  rdmacc_table(relation); /* enters, and makes it if the nodes have lost it */
  RdmaccIndex index;
  rdmacc_describe_index(relation, index_relation, &index);
  index.id = rdmacc_new_index(index_relation);
  return info->ii_Concurrent ? unchanged : fill(relation, &index, false);
}

void rdmacc_complete_index(Relation relation, Relation index_relation) {
  CHECK(index_relation->rd_index->indrelid == RelationGetRelid(relation));
  if (IsBinaryUpgrade || index_relation->rd_index->indisprimary) return;
  LockRelation(relation, ShareLock);
  const RdmaccIndex* found = rdmacc_secondary_index(relation, index_relation);
  if (found == nullptr) return; /* the primary key's twin */
  const RdmaccIndex index = *found;
  fill(relation, &index, true);
}

void rdmacc_rebuild_indexes(Relation relation) {
  List* list = RelationGetIndexList(relation);
  ListCell* cell;
  foreach (cell, list) {
    Relation index_relation = RelationIdGetRelation(lfirst_oid(cell));
    if (!RelationIsValid(index_relation)) continue;
    /* One that is to be built anew anyway still has the file, and the entries, of other rows. */
    if (rdmacc_should_have_entries(relation, index_relation) &&
        index_relation->rd_index->indisready &&
        !ReindexIsProcessingIndex(RelationGetRelid(index_relation))) {
      RdmaccIndex index;
      rdmacc_describe_index(relation, index_relation, &index);
      index.id = rdmacc_find_index(index_relation);
      if (index.id != RDMACC_NO_TABLE) {
        rdmacc_clear_index(index.id, RelationGetRelationName(index_relation));
        fill(relation, &index, false);
      }
    }
    RelationClose(index_relation);
  }
  list_free(list);
}
