#include "pg_rdmacc/index/secondary_indexes.h"

#include "pg_rdmacc/index/index_row.h"
#include "pg_rdmacc/index/shadow_index.h"
#include "pg_rdmacc/relation/engine_table.h"
#include "pg_rdmacc/relation/pending_tables.h"
#include "pg_rdmacc/relation/table_options.h"
#include "pg_rdmacc/server/attach.h"
#include "pg_rdmacc/server/error.h"
#include "pg_rdmacc/server/standby.h"
#include "pg_rdmacc/xact/newer_tables.h"
#include "pg_rdmacc/xact/xact.h"

extern "C" {
#include "access/xact.h"
#include "catalog/pg_am.h"
#include "miscadmin.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
}

namespace {

struct CachedSet {
  Oid relation; /* the hash table's key */
  uint64 index_epoch;
  uint32 attach_epoch;
  int count;
  RdmaccIndex* indexes; /* in CacheMemoryContext; NULL without any */
  uint64 option_epoch;  /* of the following */
  bool ordered_key;
};

constexpr long kSetsMin = 64;

HTAB* sets;               /* by table */
long sets_max = kSetsMin; /* then those of tables that may be gone are forgotten */

const RdmaccIndex* find_in(const CachedSet* set, Oid index) {
  for (int i = 0; i < set->count; i++) {
    if (set->indexes[i].oid == index) return &set->indexes[i];
  }
  return nullptr;
}

void index_spec(Relation index, rdmacc::TableSpec* spec) {
  rdmacc_index_spec(index->rd_rel->reltablespace, index->rd_node.relNode, spec);
}

/* False for an index that is not maintained. What was known of the same file is still true. */
bool describe(Relation relation, Relation index, const CachedSet* known, RdmaccIndex* out) {
  if (!rdmacc_should_have_entries(relation, index) || !index->rd_index->indisready) return false;
  rdmacc_describe_index(relation, index, out);
  const RdmaccIndex* before = find_in(known, out->oid);
  if (before != nullptr && before->relfilenode == out->relfilenode &&
      known->attach_epoch == rdmacc_attach_epoch()) {
    out->id = before->id;
    return true;
  }
  rdmacc::TableSpec spec;
  index_spec(index, &spec);
  out->id = rdmacc_find_to_use(index, &spec);
  if (out->id != RDMACC_NO_TABLE) return true;
  /* One of the two primary keys while REINDEX CONCURRENTLY swaps them. */
  if (!out->valid) return false;
  rdmacc_raise_no_entries(RelationGetRelationName(index));
}

CachedSet* entry_of(Oid relation) {
  if (sets == nullptr) {
    HASHCTL control = {};
    control.keysize = sizeof(Oid);
    control.entrysize = sizeof(CachedSet);
    control.hcxt = CacheMemoryContext;
    sets = hash_create("rdmacc secondary indexes", kSetsMin, &control,
                       HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
  }
  bool found = false;
  auto* set = static_cast<CachedSet*>(hash_search(sets, &relation, HASH_ENTER, &found));
  if (!found) {
    set->index_epoch = 0;
    set->count = 0;
    set->indexes = nullptr;
    set->option_epoch = 0;
  }
  return set;
}

/* Nothing of the set is changed before all is known: an error may come from anywhere. */
void look_up(Relation relation, CachedSet* set) {
  CHECK(set->relation == RelationGetRelid(relation));
  const uint64 epoch = rdmacc_index_epoch();
  List* list = RelationGetIndexList(relation);
  auto* indexes = static_cast<RdmaccIndex*>(
      palloc(sizeof(RdmaccIndex) * static_cast<Size>(Max(list_length(list), 1))));
  int count = 0;
  ListCell* cell;
  foreach (cell, list) {
    Relation index = RelationIdGetRelation(lfirst_oid(cell));
    if (!RelationIsValid(index)) continue;
    if (describe(relation, index, set, &indexes[count])) count++;
    RelationClose(index);
  }
  RdmaccIndex* kept = nullptr;
  if (count > 0) {
    const Size size = sizeof(RdmaccIndex) * static_cast<Size>(count);
    kept = static_cast<RdmaccIndex*>(MemoryContextAlloc(CacheMemoryContext, size));
    memcpy(kept, indexes, size);
  }
  /* While columns of a row are being computed, their caller still has it: seldom, and small. */
  if (set->indexes != nullptr && !rdmacc_index_row_is_computed()) pfree(set->indexes);
  set->indexes = kept;
  set->count = count;
  set->index_epoch = epoch;
  set->attach_epoch = rdmacc_attach_epoch();
  pfree(indexes);
  list_free(list);
}

const CachedSet* present_set(Relation relation) {
  CachedSet* set = entry_of(RelationGetRelid(relation));
  if (set->index_epoch != rdmacc_index_epoch() ||
      (set->count > 0 && set->attach_epoch != rdmacc_attach_epoch())) {
    look_up(relation, set);
  }
  return set;
}

/* Tables come and go. What has not been looked up since a table has changed is found again. */
void forget_old_sets(void) {
  if (sets == nullptr || hash_get_num_entries(sets) <= sets_max) return;
  const uint64 epoch = rdmacc_index_epoch();
  HASH_SEQ_STATUS all;
  hash_seq_init(&all, sets);
  for (auto* set = static_cast<CachedSet*>(hash_seq_search(&all)); set != nullptr;
       set = static_cast<CachedSet*>(hash_seq_search(&all))) {
    if (set->index_epoch == epoch || set->option_epoch == epoch) continue;
    if (set->indexes != nullptr) pfree(set->indexes);
    hash_search(sets, &set->relation, HASH_REMOVE, nullptr);
  }
  sets_max = Max(kSetsMin, 2 * hash_get_num_entries(sets));
}

/* Copies the batch: it has to outlive the removals. */
size_t copy_batch(BridgeIndexScan* scan, BridgeBytes** copies) {
  const BridgeBytes* entries = nullptr;
  const size_t count = bridge_index_entries(scan, &entries);
  *copies = static_cast<BridgeBytes*>(palloc(sizeof(BridgeBytes) * Max(count, 1)));
  for (size_t i = 0; i < count; i++) {
    auto* bytes = static_cast<char*>(palloc(Max(entries[i].size, 1)));
    memcpy(bytes, entries[i].data, entries[i].size);
    (*copies)[i] = {bytes, entries[i].size};
  }
  return count;
}

}  // namespace

RdmaccIndexSet rdmacc_secondary_indexes(Relation relation) {
  if (!relation->rd_rel->relhasindex) return {0, nullptr};
  const CachedSet* set = present_set(relation);
  return {set->count, set->indexes};
}

const RdmaccIndex* rdmacc_secondary_index(Relation relation, Relation index) {
  CHECK(index->rd_index->indrelid == RelationGetRelid(relation));
  return find_in(present_set(relation), RelationGetRelid(index));
}

/* A change of the option makes the table's files anew, and so the relcache's entries. */
bool rdmacc_has_ordered_key(Relation relation) {
  const Oid table = RelationGetRelid(relation);
  const uint64 epoch = rdmacc_index_epoch();
  CachedSet* set = entry_of(table);
  if (set->option_epoch != epoch) {
    RdmaccTableOptions options;
    rdmacc_table_options(relation, &options);
    set = entry_of(table); /* an invalidation may have been served */
    set->ordered_key = options.ordered_key == 1;
    set->option_epoch = epoch;
  }
  return set->ordered_key;
}

bool rdmacc_should_have_entries(Relation relation, Relation index) {
  const Oid kind = index->rd_rel->relam;
  if (kind != BTREE_AM_OID && kind != HASH_AM_OID) return false;
  return !index->rd_index->indisprimary || rdmacc_has_ordered_key(relation);
}

bool rdmacc_has_entries(Relation index) {
  Relation relation = RelationIdGetRelation(index->rd_index->indrelid);
  if (!RelationIsValid(relation)) return false;
  const bool has = rdmacc_should_have_entries(relation, index);
  RelationClose(relation);
  return has;
}

void rdmacc_raise_no_entries(const char* name) {
  if (rdmacc_on_standby()) rdmacc_raise_not_applied(name);
  ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                  errmsg("the rdmacc nodes do not have the entries of index \"%s\"", name),
                  errhint("REINDEX it to use its table again.")));
}

uint32 rdmacc_find_index(Relation index) {
  rdmacc::TableSpec spec;
  index_spec(index, &spec);
  return rdmacc_find_engine_table(&spec);
}

uint32 rdmacc_new_index(Relation index, bool* fresh) {
  const uint32 present = rdmacc_find_index(index);
  *fresh = present == RDMACC_NO_TABLE || !rdmacc_created_by_transaction(present);
  if (!*fresh) {
    rdmacc_clear_index(present, RelationGetRelationName(index), GetCurrentCommandId(true));
    return present;
  }
  rdmacc::TableSpec spec;
  index_spec(index, &spec);
  return rdmacc_create_engine_table(&spec);
}

void rdmacc_clear_index(uint32 id, const char* name, CommandId command) {
  CHECK(id != RDMACC_NO_TABLE && name != nullptr && bridge_txn_active());
  MemoryContext workspace =
      AllocSetContextCreate(CurrentMemoryContext, "rdmacc index removal", ALLOCSET_DEFAULT_SIZES);
  const MemoryContext previous = MemoryContextSwitchTo(workspace);
  StringInfoData low;
  initStringInfo(&low);
  BridgeIndexScan* scan = bridge_index_scan_create(CurrentResourceOwner);
  for (;;) {
    CHECK_FOR_INTERRUPTS();
    const BridgeRange range = {.low = {low.data, static_cast<size_t>(low.len)},
                               .high = {},
                               .low_bounded = true,
                               .high_bounded = false};
    bridge_start_index_seek(scan, id, &range, false, RDMACC_EVERY_COMMAND);
    rdmacc_pump();
    rdmacc_check("could not scan an index", name);
    BridgeBytes* entries = nullptr;
    const size_t count = copy_batch(scan, &entries);
    if (count == 0) break;
    rdmacc_enter_write(command);
    bool many = false;
    for (size_t i = 0; i < count; i++) {
      many = bridge_index_remove_late(id, entries[i], false);
      rdmacc_check("could not empty an index", name);
    }
    if (many) bridge_start_flush_indexes();
    if (many) rdmacc_pump();
    rdmacc_check("could not empty an index", name);
    resetStringInfo(&low);
    appendBinaryStringInfo(&low, entries[count - 1].data,
                           static_cast<int>(entries[count - 1].size));
  }
  bridge_index_scan_free(scan);
  MemoryContextSwitchTo(previous);
  MemoryContextDelete(workspace);
}

void rdmacc_create_lost_indexes(Relation relation) {
  ListCell* cell;
  foreach (cell, RelationGetIndexList(relation)) {
    Relation index = RelationIdGetRelation(lfirst_oid(cell));
    if (!RelationIsValid(index)) continue;
    if (rdmacc_should_have_entries(relation, index) && index->rd_index->indisready) {
      rdmacc::TableSpec spec;
      index_spec(index, &spec);
      rdmacc_create_lost_engine_table(&spec);
    }
    RelationClose(index);
  }
}

const RdmaccTransactionPart rdmacc_secondary_indexes_part = {.forget = forget_old_sets};
