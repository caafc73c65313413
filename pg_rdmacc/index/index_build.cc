#include "pg_rdmacc/index/index_build.h"

#include "pg_rdmacc/index/index_entries.h"
#include "pg_rdmacc/index/secondary_indexes.h"
#include "pg_rdmacc/index/sorted_entries.h"
#include "pg_rdmacc/index/unique_check.h"
#include "pg_rdmacc/relation/engine_table.h"
#include "pg_rdmacc/relation/key_layout.h"
#include "pg_rdmacc/relation/pending_tables.h"
#include "pg_rdmacc/row/row_load.h"
#include "pg_rdmacc/server/error.h"
#include "pg_rdmacc/xact/xact.h"

extern "C" {
#include "access/xact.h"
#include "catalog/index.h"
#include "commands/defrem.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/lsyscache.h"
#include "utils/resowner.h"
}

namespace {

constexpr int kEntriesAtOnce = 2048;
constexpr int kBytesAtOnce = 256 * 1024;

/* Sorted entries on their way into an index: one by one where some may be there, else in parts. */
struct Filling {
  Relation relation;
  const RdmaccIndex* index;
  CommandId command;
  BridgeIndexLoad* load; /* NULL: one by one */
  StringInfoData bytes;  /* of the part that is being gathered */
  int ends[kEntriesAtOnce];
  int count;
};

void insert_entry(const Filling* filling, BridgeBytes entry) {
  rdmacc_enter_write(filling->command);
  bridge_start_index_insert(filling->index->id, entry);
  rdmacc_pump();
  if (bridge_error()->code == rdmacc::Code::kDuplicateKey) return;
  rdmacc_check("could not build an index", RelationGetRelationName(filling->relation));
}

void load_part(Filling* filling, bool last) {
  BridgeBytes entries[kEntriesAtOnce];
  int begin = 0;
  for (int i = 0; i < filling->count; i++) {
    entries[i] = {filling->bytes.data + begin, static_cast<size_t>(filling->ends[i] - begin)};
    begin = filling->ends[i];
  }
  rdmacc_enter_write(filling->command);
  bridge_start_index_load(filling->load, entries, static_cast<size_t>(filling->count), last);
  rdmacc_pump();
  rdmacc_check("could not build an index", RelationGetRelationName(filling->relation));
  const BridgeWrite* loaded = nullptr;
  const size_t nodes = bridge_index_loaded(filling->load, &loaded);
  rdmacc_log_load(loaded, nodes);
  if (nodes > 0) rdmacc_expect_more_rows(filling->index->id, nodes);
  resetStringInfo(&filling->bytes);
  filling->count = 0;
}

void add_entry(Filling* filling, BridgeBytes entry) {
  CHECK(entry.size > 0 && filling->count < kEntriesAtOnce);
  if (filling->load == nullptr) return insert_entry(filling, entry);
  appendBinaryStringInfo(&filling->bytes, entry.data, static_cast<int>(entry.size));
  filling->ends[filling->count++] = filling->bytes.len;
  if (filling->count == kEntriesAtOnce || filling->bytes.len >= kBytesAtOnce) {
    load_part(filling, false);
  }
}

bool same_columns(BridgeBytes one, BridgeBytes other) {
  const char* one_end = rdmacc_entry_key(one).data;
  const char* other_end = rdmacc_entry_key(other).data;
  const auto size = static_cast<size_t>(one_end - one.data);
  return static_cast<size_t>(other_end - other.data) == size &&
         memcmp(one.data, other.data, size) == 0;
}

/* The sorted entries, each compared with the one before. */
void add_sorted(RdmaccEntrySort* sorted, Filling* filling) {
  const RdmaccIndex* index = filling->index;
  StringInfoData bytes_before;
  initStringInfo(&bytes_before);
  RdmaccSortedEntry next;
  while (rdmacc_entry_sort_next(sorted, &next)) {
    CHECK_FOR_INTERRUPTS();
    const BridgeBytes entry = next.entry;
    if (index->unique && (index->nulls_not_distinct || !next.has_null)) {
      const BridgeBytes before = {bytes_before.data, static_cast<size_t>(bytes_before.len)};
      if (before.size > 0 && same_columns(before, entry)) {
        rdmacc_raise_index_duplicate(filling->relation, index, rdmacc_entry_key(entry),
                                     rdmacc_entry_key(before), true);
      }
      resetStringInfo(&bytes_before);
      appendBinaryStringInfo(&bytes_before, entry.data, static_cast<int>(entry.size));
    }
    add_entry(filling, entry);
  }
  pfree(bytes_before.data);
}

/* `fresh`: nothing has ever been in it. */
double fill(Relation relation, const RdmaccIndex* index, CommandId command, bool fresh) {
  CHECK(index->id != RDMACC_NO_TABLE);
  double rows = 0;
  RdmaccEntrySort* sorted = rdmacc_sort_entries(relation, index, &rows);
  Filling filling = {.relation = relation,
                     .index = index,
                     .command = command,
                     .load = nullptr,
                     .bytes = {},
                     .ends = {},
                     .count = 0};
  initStringInfo(&filling.bytes);
  bool in_place = false;
  if (fresh) {
    rdmacc_enter();
    in_place = rdmacc_may_load_in_place(index->id);
    filling.load = bridge_index_load_create(CurrentResourceOwner, index->id, in_place);
  }
  add_sorted(sorted, &filling);
  if (filling.load != nullptr) {
    load_part(&filling, true);
    if (in_place) rdmacc_settle_load(index->id);
    bridge_index_load_free(filling.load);
  }
  pfree(filling.bytes.data);
  rdmacc_entry_sort_end(sorted);
  return rows;
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
  bool fresh = false;
  index.id = rdmacc_new_index(index_relation, &fresh);
  if (info->ii_Concurrent) return unchanged;
  return fill(relation, &index, GetCurrentCommandId(true), fresh);
}

void rdmacc_complete_index(Relation relation, Relation index_relation) {
  CHECK(index_relation->rd_index->indrelid == RelationGetRelid(relation));
  if (IsBinaryUpgrade || index_relation->rd_index->indisprimary) return;
  LockRelation(relation, ShareLock);
  const RdmaccIndex* found = rdmacc_secondary_index(relation, index_relation);
  if (found == nullptr) return; /* the primary key's twin */
  const RdmaccIndex index = *found;
  fill(relation, &index, GetCurrentCommandId(true), false);
}

void rdmacc_rebuild_indexes(Relation relation, CommandId command) {
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
        rdmacc_clear_index(index.id, RelationGetRelationName(index_relation), command);
        fill(relation, &index, command, false);
      }
    }
    RelationClose(index_relation);
  }
  list_free(list);
}
