#include "pg_rdmacc/index/index_write.h"

#include "pg_rdmacc/codec/row_codec.h"
#include "pg_rdmacc/index/index_entries.h"
#include "pg_rdmacc/index/index_row.h"
#include "pg_rdmacc/index/secondary_indexes.h"
#include "pg_rdmacc/index/unique_check.h"
#include "pg_rdmacc/row/fetch.h"
#include "pg_rdmacc/row/write_marks.h"
#include "pg_rdmacc/server/error.h"
#include "pg_rdmacc/xact/running_query.h"
#include "pg_rdmacc/xact/xact.h"

extern "C" {
#include "access/htup_details.h"
#include "utils/memutils.h"
}

namespace {

/* Bytes of one row's entries, thrown away with the next row's. */
MemoryContext workspace;

MemoryContext enter_workspace(void) {
  if (workspace == nullptr) {
    workspace =
        AllocSetContextCreate(TopMemoryContext, "rdmacc index write", ALLOCSET_DEFAULT_SIZES);
  }
  if (rdmacc_index_row_is_computed()) return CurrentMemoryContext;
  CHECK(CurrentMemoryContext != workspace); /* what the caller has there would be gone */
  MemoryContextReset(workspace);
  return MemoryContextSwitchTo(workspace);
}

/* One index's columns of one row. */
struct Columns {
  bool taken; /* else a partial index leaves the row out, and the rest means nothing */
  StringInfoData bytes;
  bool has_null;
};

BridgeBytes bytes_of(const Columns* columns) {
  return {columns->bytes.data, static_cast<size_t>(columns->bytes.len)};
}

Columns columns_of_slot(Relation relation, const RdmaccIndex* index, TupleTableSlot* slot) {
  Datum values[INDEX_MAX_KEYS];
  bool nulls[INDEX_MAX_KEYS];
  Columns columns;
  initStringInfo(&columns.bytes);
  columns.taken = rdmacc_index_row(index, relation, slot, values, nulls);
  columns.has_null =
      columns.taken && rdmacc_append_index_columns(&columns.bytes, relation, index, values, nulls);
  return columns;
}

Columns columns_of_tuple(Relation relation, const RdmaccIndex* index, HeapTuple tuple) {
  Datum values[INDEX_MAX_KEYS];
  bool nulls[INDEX_MAX_KEYS];
  Columns columns;
  initStringInfo(&columns.bytes);
  columns.taken = rdmacc_index_row_of_tuple(index, relation, tuple, values, nulls);
  columns.has_null =
      columns.taken && rdmacc_append_index_columns(&columns.bytes, relation, index, values, nulls);
  return columns;
}

/* Rows and entries are read and written in one transaction: where they disagree, it has read what
 * others have changed meanwhile. */
[[noreturn]] void raise_conflict(const char* reason, Relation relation) {
  BridgeError error = {};
  error.code = rdmacc::Code::kAborted;
  strlcpy(error.reason, reason, sizeof(error.reason));
  rdmacc_raise(&error, bridge_txn_protocol(), "", RelationGetRelationName(relation));
}

/* Of changes that wait. */
void make_if_many(bool many, const char* change, Relation relation) {
  rdmacc_check(change, RelationGetRelationName(relation));
  if (!many) return;
  bridge_start_flush_indexes();
  rdmacc_pump();
  rdmacc_check("could not change an index", RelationGetRelationName(relation));
}

void insert_entry(Relation relation, const RdmaccIndex* index, const Columns* columns,
                  BridgeBytes key, CommandId cid) {
  rdmacc_enter_write(cid);
  CHECK(columns->taken);
  const BridgeBytes entry = rdmacc_index_entry(&columns->bytes, key);
  const bool many = bridge_index_insert_late(index->id, entry);
  make_if_many(many, "could not insert an index entry", relation);
}

void remove_entry(Relation relation, const RdmaccIndex* index, const Columns* columns,
                  BridgeBytes key, CommandId cid) {
  rdmacc_enter_write(cid);
  CHECK(columns->taken);
  const BridgeBytes entry = rdmacc_index_entry(&columns->bytes, key);
  const bool many = bridge_index_remove_late(index->id, entry, !index->valid);
  make_if_many(many, "could not remove an index entry", relation);
}

/* The row that the command has found: it is written by the same command once at most. */
HeapTuple row_before(Relation relation, const RdmaccHandle* handle, CommandId cid) {
  CHECK(handle->relation == RelationGetRelid(relation) && cid != InvalidCommandId);
  if (handle->row.found && handle->visible_before == cid) return rdmacc_row_decode(handle->row.row);
  BridgeRow row = {};
  rdmacc_enter();
  bridge_start_get(handle->table, handle->key, cid, &row);
  rdmacc_pump();
  rdmacc_check("could not read a row", RelationGetRelationName(relation));
  if (!row.found) raise_conflict("row_deleted", relation);
  return rdmacc_row_decode(row.row);
}

bool must_be_unique(const RdmaccIndex* index, const Columns* columns) {
  return index->unique && (index->nulls_not_distinct || !columns->has_null);
}

/* Of a row that an UPDATE writes: whether it is unique shows when the statement ends. */
void note_if_not_unique(Relation relation, const RdmaccIndex* index, const Columns* columns,
                        BridgeBytes key) {
  BridgeBytes other = {};
  if (!index->deferrable && must_be_unique(index, columns) &&
      rdmacc_find_other_entry(relation, index, bytes_of(columns), key, &other)) {
    rdmacc_check_columns_later(relation, index, bytes_of(columns), rdmacc_running_query());
  }
}

void change_entry(Relation relation, const RdmaccIndex* index, const RdmaccHandle* handle,
                  HeapTuple before, TupleTableSlot* slot, CommandId cid) {
  const Columns from = columns_of_tuple(relation, index, before);
  const Columns to = columns_of_slot(relation, index, slot);
  if (from.taken == to.taken && rdmacc_same_bytes(bytes_of(&from), bytes_of(&to))) return;
  if (from.taken) remove_entry(relation, index, &from, handle->key, cid);
  if (!to.taken) return;
  note_if_not_unique(relation, index, &to, handle->key);
  insert_entry(relation, index, &to, handle->key, cid);
}

/* All of a row's. Whether those of an INSERT are unique is asked for by aminsert. */
void add_entries(Relation relation, TupleTableSlot* slot, BridgeBytes key, CommandId cid,
                 bool note_unique) {
  const RdmaccIndexSet set = rdmacc_secondary_indexes(relation);
  if (set.count == 0) return;
  const MemoryContext previous = enter_workspace();
  for (int i = 0; i < set.count; i++) {
    const Columns columns = columns_of_slot(relation, &set.indexes[i], slot);
    if (!columns.taken) continue;
    if (note_unique) note_if_not_unique(relation, &set.indexes[i], &columns, key);
    insert_entry(relation, &set.indexes[i], &columns, key, cid);
  }
  MemoryContextSwitchTo(previous);
}

}  // namespace

void rdmacc_index_row_inserted(Relation relation, TupleTableSlot* slot, BridgeBytes key,
                               CommandId cid) {
  add_entries(relation, slot, key, cid, false);
}

void rdmacc_index_row_deleted(Relation relation, const RdmaccHandle* handle, CommandId cid) {
  const RdmaccIndexSet set = rdmacc_secondary_indexes(relation);
  if (set.count == 0) return;
  const MemoryContext previous = enter_workspace();
  HeapTuple row = row_before(relation, handle, cid);
  for (int i = 0; i < set.count; i++) {
    const Columns columns = columns_of_tuple(relation, &set.indexes[i], row);
    if (columns.taken) remove_entry(relation, &set.indexes[i], &columns, handle->key, cid);
  }
  MemoryContextSwitchTo(previous);
}

void rdmacc_index_row_updated(Relation relation, const RdmaccHandle* handle, TupleTableSlot* slot,
                              CommandId cid) {
  const RdmaccIndexSet set = rdmacc_secondary_indexes(relation);
  if (set.count == 0) return;
  const MemoryContext previous = enter_workspace();
  HeapTuple before = row_before(relation, handle, cid);
  for (int i = 0; i < set.count; i++) {
    change_entry(relation, &set.indexes[i], handle, before, slot, cid);
  }
  MemoryContextSwitchTo(previous);
}

void rdmacc_index_row_moved(Relation relation, TupleTableSlot* slot, BridgeBytes key,
                            CommandId cid) {
  add_entries(relation, slot, key, cid, true);
}

bool rdmacc_has_deferrable_index(Relation relation) {
  const RdmaccIndexSet set = rdmacc_secondary_indexes(relation);
  for (int i = 0; i < set.count; i++) {
    if (set.indexes[i].deferrable) return true;
  }
  return false;
}

bool rdmacc_index_check_inserted(Relation index_relation, const Datum* values, const bool* nulls,
                                 ItemPointer tid, Relation relation,
                                 IndexUniqueCheck check_unique) {
  CHECK(index_relation->rd_index->indrelid == RelationGetRelid(relation));
  if (check_unique == UNIQUE_CHECK_NO || index_relation->rd_index->indisprimary) return true;
  /* PostgreSQL asks for all indexes of an updated row where one of them is deferrable. */
  const RdmaccHandle* handle = rdmacc_handle_get(tid, relation);
  if (check_unique == UNIQUE_CHECK_YES && rdmacc_wrote_by_update(relation, handle->key))
    return true;
  const RdmaccIndex* index = rdmacc_secondary_index(relation, index_relation);
  if (index == nullptr) return true;
  const MemoryContext previous = enter_workspace();
  Columns columns;
  initStringInfo(&columns.bytes);
  columns.has_null = rdmacc_append_index_columns(&columns.bytes, relation, index, values, nulls);
  BridgeBytes other = {};
  const bool found =
      must_be_unique(index, &columns) &&
      rdmacc_find_other_entry(relation, index, bytes_of(&columns), handle->key, &other);
  if (found && check_unique != UNIQUE_CHECK_PARTIAL) {
    rdmacc_raise_index_duplicate(relation, index, handle->key, other, false);
  }
  if (found && index->deferrable) {
    rdmacc_check_columns_later(relation, index, bytes_of(&columns), nullptr);
  }
  MemoryContextSwitchTo(previous);
  return !found;
}
