#include "pg_rdmacc/index/index_build.h"

#include "pg_rdmacc/index/index_entries.h"
#include "pg_rdmacc/index/secondary_indexes.h"
#include "pg_rdmacc/index/sorted_entries.h"
#include "pg_rdmacc/index/unique_check.h"
#include "pg_rdmacc/relation/engine_table.h"
#include "pg_rdmacc/relation/key_layout.h"
#include "pg_rdmacc/relation/pending_tables.h"
#include "pg_rdmacc/server/error.h"
#include "pg_rdmacc/xact/xact.h"

extern "C" {
#include "access/xact.h"
#include "catalog/index.h"
#include "commands/defrem.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/lsyscache.h"
}

namespace {

void insert_entry(Relation relation, const RdmaccIndex* index, BridgeBytes entry, bool may_exist) {
  CHECK(index->id != RDMACC_NO_TABLE && entry.size > 0);
  rdmacc_enter_write(GetCurrentCommandId(true));
  bridge_start_index_insert(index->id, entry);
  rdmacc_pump();
  if (may_exist && bridge_error()->code == rdmacc::Code::kDuplicateKey) return;
  rdmacc_check("could not build an index", RelationGetRelationName(relation));
}

/* The sorted entries, each compared with the one before. */
void insert_sorted(RdmaccSortedEntries* sorted, Relation relation, const RdmaccIndex* index,
                   bool may_exist) {
  StringInfoData before;
  initStringInfo(&before);
  int32 columns_before = -1;
  RdmaccSortedEntry next;
  while (rdmacc_next_sorted_entry(sorted, &next)) {
    CHECK_FOR_INTERRUPTS();
    const BridgeBytes entry = next.entry;
    if (index->unique && (index->nulls_not_distinct || !next.has_null)) {
      CHECK(next.columns_size > 0 && static_cast<size_t>(next.columns_size) <= entry.size);
      if (next.columns_size == columns_before &&
          memcmp(before.data, entry.data, static_cast<size_t>(columns_before)) == 0) {
        rdmacc_raise_index_duplicate(
            relation, index, rdmacc_entry_key(entry),
            rdmacc_entry_key({before.data, static_cast<size_t>(before.len)}), true);
      }
      resetStringInfo(&before);
      appendBinaryStringInfo(&before, entry.data, static_cast<int>(entry.size));
      columns_before = next.columns_size;
    }
    insert_entry(relation, index, entry, may_exist);
  }
  pfree(before.data);
}

double fill(Relation relation, const RdmaccIndex* index, bool may_exist) {
  RdmaccSortedEntries sorted;
  rdmacc_sort_entries(relation, index, &sorted);
  insert_sorted(&sorted, relation, index, may_exist);
  rdmacc_sorted_entries_end(&sorted);
  return sorted.rows;
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
