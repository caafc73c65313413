#include "pg_rdmacc/table/modify.h"

#include "pg_rdmacc/codec/row_codec.h"
#include "pg_rdmacc/index/index_row.h"
#include "pg_rdmacc/index/index_write.h"
#include "pg_rdmacc/index/shadow_index.h"
#include "pg_rdmacc/index/unique_check.h"
#include "pg_rdmacc/relation/engine_table.h"
#include "pg_rdmacc/relation/foreign_keys.h"
#include "pg_rdmacc/relation/key_layout.h"
#include "pg_rdmacc/row/duplicate_key.h"
#include "pg_rdmacc/row/fetch.h"
#include "pg_rdmacc/row/row_lock.h"
#include "pg_rdmacc/row/scan_rows.h"
#include "pg_rdmacc/row/slot.h"
#include "pg_rdmacc/row/write_marks.h"
#include "pg_rdmacc/server/error.h"
#include "pg_rdmacc/table/bulk_insert.h"
#include "pg_rdmacc/table/deferred_key_check.h"
#include "pg_rdmacc/table/gathered_insert.h"
#include "pg_rdmacc/xact/lock_holder.h"
#include "pg_rdmacc/xact/running_query.h"
#include "pg_rdmacc/xact/xact.h"

extern "C" {
#include "access/xact.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
}

namespace {

/* What one write needs: its bytes are made here and thrown away with the next write. */
MemoryContext workspace;

MemoryContext enter_workspace(void) {
  if (workspace == nullptr) {
    workspace = AllocSetContextCreate(TopMemoryContext, "rdmacc write", ALLOCSET_DEFAULT_SIZES);
  }
  if (rdmacc_index_row_is_computed()) return CurrentMemoryContext;
  CHECK(CurrentMemoryContext != workspace); /* what the caller has there would be gone */
  MemoryContextReset(workspace);
  return MemoryContextSwitchTo(workspace);
}

BridgeBytes key_of(const RdmaccTable* table, TupleTableSlot* slot) {
  StringInfoData key;
  initStringInfo(&key);
  rdmacc_table_key(&table->key, slot, &key);
  return {key.data, static_cast<size_t>(key.len)};
}

[[noreturn]] void raise_conflict(const char* reason, Relation rel) {
  BridgeError error = {};
  error.code = rdmacc::Code::kAborted;
  strlcpy(error.reason, reason, sizeof(error.reason));
  rdmacc_raise(&error, bridge_txn_protocol(), "", RelationGetRelationName(rel));
}

/* The slot's row is stored under a TID of its own. */
void name_written_row(Relation rel, const RdmaccTable* table, BridgeBytes key, CommandId cid,
                      TupleTableSlot* slot, bool in_conflict) {
  const RdmaccHandle handle = {.relation = RelationGetRelid(rel),
                               .table = table->id,
                               .visible_before = cid + 1,
                               .key = key,
                               .row = {}};
  ItemPointerData tid;
  rdmacc_handle_assign(rdmacc_handle_write_stream(rel->trigdesc != nullptr), &handle, &tid);
  rdmacc_slot_set_written(slot, rel, &tid, in_conflict);
}

/* False when the key exists. */
bool insert_row(Relation rel, const RdmaccTable* table, BridgeBytes key, TupleTableSlot* slot,
                CommandId cid) {
  const BridgeBytes row = rdmacc_row_encode(slot);
  rdmacc_enter_write(cid);
  bridge_start_insert(table->id, key, row, table->key.number != 0);
  rdmacc_pump();
  if (bridge_error()->code == rdmacc::Code::kDuplicateKey) return false;
  rdmacc_check("could not insert a row", RelationGetRelationName(rel));
  return true;
}

enum class Sought { kNot, kByArbiter, kAndAbsent }; /* the key, by the same command, before */

void insert(Relation rel, TupleTableSlot* slot, CommandId cid, Sought sought) {
  CHECK(!TTS_EMPTY(slot) && cid != InvalidCommandId);
  RdmaccTable* cached = rdmacc_table_to_write(rel);
  rdmacc_override_indexes(rel, cached);
  const RdmaccTable table = *rdmacc_table(rel);
  const MemoryContext previous = enter_workspace();
  const BridgeBytes key = key_of(&table, slot);
  if (!insert_row(rel, &table, key, slot, cid)) {
    MemoryContextSwitchTo(previous);
    if (sought == Sought::kAndAbsent ||
        (sought == Sought::kByArbiter && rdmacc_key_was_absent(table.id, key, cid))) {
      rdmacc_refuse_collision(rel, &table, key, slot);
      /* Just before, the key was found absent: another transaction's row has come since. */
      raise_conflict("key_inserted", rel);
    }
    rdmacc_raise_duplicate(rel, &table, key, slot);
  }
  rdmacc_row_was_inserted(rel, &table, key, slot, cid);
  MemoryContextSwitchTo(previous);
  pgstat_count_heap_insert(rel, 1);
}

/* False when the row that has the key will keep it. */
bool take_key(Relation rel, const RdmaccTable* table, BridgeBytes key, TupleTableSlot* slot,
              CommandId cid) {
  rdmacc_refuse_collision(rel, table, key, slot);
  if (!rdmacc_defer_key_check(rel, table, key, cid)) return false;
  const RdmaccHandle handle = {.relation = RelationGetRelid(rel),
                               .table = table->id,
                               .visible_before = cid + 1,
                               .key = key,
                               .row = {}};
  rdmacc_index_row_deleted(rel, &handle, cid);
  rdmacc_put_row(rel, &handle, rdmacc_row_encode(slot), cid);
  return true;
}

/* Before its index entries are written: other sessions may hold the row for long. */
void lock_to_write(Relation rel, const RdmaccHandle* handle, CommandId cid) {
  if (!rdmacc_locks_at_write()) return;
  const RdmaccRead read = {.relation = rel,
                           .table = handle->table,
                           .visible_before = RDMACC_EVERY_COMMAND,
                           .mark = {.wait_policy = LockWaitBlock, .locks = true, .exclusive = true},
                           .to_write = true,
                           .lock_command = cid,
                           .batch = nullptr};
  BridgeRow row;
  rdmacc_read_rows(&read, &handle->key, 1, &row);
}

void remove_row(Relation rel, const RdmaccHandle* handle, CommandId cid) {
  CHECK(handle->relation == RelationGetRelid(rel) && cid != InvalidCommandId);
  if (rdmacc_settle_taken_key(handle->table, handle->key, handle->visible_before)) {
    rdmacc_write_mark(handle->table, handle->key, cid);
    return; /* another row has its key by now, and its index entries are gone */
  }
  lock_to_write(rel, handle, cid);
  rdmacc_index_row_deleted(rel, handle, cid);
  rdmacc_enter_write(cid);
  bridge_start_remove(handle->table, handle->key);
  rdmacc_pump();
  if (bridge_error()->code == rdmacc::Code::kNotFound) raise_conflict("row_deleted", rel);
  rdmacc_check("could not delete a row", RelationGetRelationName(rel));
  rdmacc_write_mark(handle->table, handle->key, cid);
}

/* A handle is of the table's present layout unless rows were re-keyed since it was given out. */
void check_handle(Relation rel, const RdmaccHandle* handle, const RdmaccTable* table) {
  if (handle->table == table->id) return;
  ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                  errmsg("rows of table \"%s\" have been moved by this transaction",
                         RelationGetRelationName(rel))));
}

}  // namespace

bool rdmacc_modified_by_own_command(const RdmaccHandle* handle, ItemPointer tid, CommandId cid,
                                    TM_FailureData* tmfd) {
  CommandId at = InvalidCommandId;
  if (!rdmacc_write_marked_since(handle->table, handle->key, cid, &at)) return false;
  CHECK(at >= cid);
  tmfd->ctid = *tid;
  /* MERGE must not meet a row twice, and tells that it has by an xmax that is our XID. */
  const QueryDesc* query = rdmacc_running_query();
  const bool merges = query != nullptr && query->operation == CMD_MERGE;
  tmfd->xmax = merges ? GetTopTransactionId() : InvalidTransactionId;
  tmfd->cmax = at;
  tmfd->traversed = false;
  return true;
}

void rdmacc_put_row(Relation rel, const RdmaccHandle* handle, BridgeBytes row, CommandId cid) {
  CHECK(handle->relation == RelationGetRelid(rel) && row.data != nullptr);
  rdmacc_enter_write(cid);
  bridge_start_put(handle->table, handle->key, row);
  rdmacc_pump();
  if (bridge_error()->code == rdmacc::Code::kNotFound) raise_conflict("row_deleted", rel);
  rdmacc_check("could not update a row", RelationGetRelationName(rel));
}

void rdmacc_rewrite_row(Relation rel, const RdmaccHandle* handle, TupleTableSlot* slot,
                        CommandId cid) {
  lock_to_write(rel, handle, cid);
  rdmacc_index_row_updated(rel, handle, slot, cid);
  rdmacc_put_row(rel, handle, rdmacc_row_encode(slot), cid);
  rdmacc_write_mark(handle->table, handle->key, cid);
}

void rdmacc_row_was_inserted(Relation rel, const RdmaccTable* table, BridgeBytes key,
                             TupleTableSlot* slot, CommandId cid) {
  rdmacc_index_row_inserted(rel, slot, key, cid);
  rdmacc_note_inserted();
  name_written_row(rel, table, key, cid, slot, false);
}

void rdmacc_tuple_insert(Relation rel, TupleTableSlot* slot, CommandId cid, int,
                         struct BulkInsertStateData* bistate) {
  if (rdmacc_gather_insert(rel, slot, cid)) return;
  if (!rdmacc_gather_row(rel, slot, cid, bistate)) insert(rel, slot, cid, Sought::kNot);
}

void rdmacc_tuple_insert_speculative(Relation rel, TupleTableSlot* slot, CommandId cid, int,
                                     struct BulkInsertStateData*, uint32) {
  insert(rel, slot, cid, Sought::kByArbiter);
}

void rdmacc_insert_absent_row(Relation rel, TupleTableSlot* slot, CommandId cid) {
  insert(rel, slot, cid, Sought::kAndAbsent);
}

void rdmacc_tuple_complete_speculative(Relation rel, TupleTableSlot*, uint32, bool succeeded) {
  /* The insertion itself has found out, so the executor never takes it back. */
  if (!succeeded) raise_conflict("key_inserted", rel);
}

TM_Result rdmacc_tuple_delete(Relation rel, ItemPointer tid, CommandId cid, Snapshot, Snapshot,
                              bool, TM_FailureData* tmfd, bool) {
  const RdmaccHandle handle = *rdmacc_handle_get(tid, rel);
  if (rdmacc_modified_by_own_command(&handle, tid, cid, tmfd)) return TM_SelfModified;
  const RdmaccTable table = *rdmacc_table_to_write(rel);
  check_handle(rel, &handle, &table);
  remove_row(rel, &handle, cid);
  pgstat_count_heap_delete(rel);
  return TM_Ok;
}

TM_Result rdmacc_tuple_update(Relation rel, ItemPointer otid, TupleTableSlot* slot, CommandId cid,
                              Snapshot, Snapshot, bool, TM_FailureData* tmfd,
                              LockTupleMode* lockmode, bool* update_indexes) {
  /* The engine keeps keys and entries with the row, so no index needs to know, but for the trigger
   * of a deferrable one. */
  *update_indexes = rdmacc_has_deferrable_index(rel);
  *lockmode = LockTupleNoKeyExclusive;
  const RdmaccHandle handle = *rdmacc_handle_get(otid, rel);
  if (rdmacc_modified_by_own_command(&handle, otid, cid, tmfd)) return TM_SelfModified;
  rdmacc_override_indexes(rel, rdmacc_table_to_write(rel));
  const RdmaccTable table = *rdmacc_table(rel);
  check_handle(rel, &handle, &table);
  const bool in_conflict = rdmacc_handle_is_of_conflict(&handle);
  if (in_conflict) rdmacc_refuse_taken_key(handle.table, handle.key, cid);
  const uint64 noted = rdmacc_unique_checks_noted();
  const MemoryContext previous = enter_workspace();
  const BridgeBytes key = table.key.number != 0 ? key_of(&table, slot) : handle.key;
  if (rdmacc_same_bytes(key, handle.key)) {
    if (rdmacc_key_was_taken(handle.table, handle.key, handle.visible_before)) {
      MemoryContextSwitchTo(previous);
      rdmacc_raise_duplicate(rel, &table, key, slot);
    }
    rdmacc_rewrite_row(rel, &handle, slot, cid);
  } else {
    *lockmode = LockTupleExclusive;
    remove_row(rel, &handle, cid);
    if (!insert_row(rel, &table, key, slot, cid) &&
        (in_conflict || !take_key(rel, &table, key, slot, cid))) {
      MemoryContextSwitchTo(previous);
      rdmacc_raise_duplicate(rel, &table, key, slot);
    }
    rdmacc_index_row_moved(rel, slot, key, cid);
  }
  rdmacc_note_updated(rel, key);
  name_written_row(rel, &table, key, cid, slot, in_conflict);
  MemoryContextSwitchTo(previous);
  /* Whether its other columns are unique shows when the statement ends, but where something follows
   * the row at once, or the next row goes by what is there. */
  if (in_conflict || rdmacc_children_follow(rel)) rdmacc_check_noted_since(noted);
  pgstat_count_heap_update(rel, false);
  return TM_Ok;
}

void rdmacc_remove_all_rows(Relation rel, CommandId cid) {
  CHECK(cid != InvalidCommandId);
  const RdmaccTable table = *rdmacc_table(rel);
  RdmaccRows rows;
  rdmacc_rows_begin(&rows, table.id, RDMACC_EVERY_COMMAND);
  for (const BridgeRow* row = rdmacc_rows_next(&rows, rel); row != nullptr;
       row = rdmacc_rows_next(&rows, rel)) {
    CHECK_FOR_INTERRUPTS();
    const RdmaccHandle handle = {.relation = RelationGetRelid(rel),
                                 .table = table.id,
                                 .visible_before = RDMACC_EVERY_COMMAND,
                                 .key = row->key,
                                 .row = {}};
    remove_row(rel, &handle, cid);
  }
  rdmacc_rows_end(&rows);
}
