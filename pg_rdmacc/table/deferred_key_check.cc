#include "pg_rdmacc/table/deferred_key_check.h"

#include "pg_rdmacc/codec/key_id.h"
#include "pg_rdmacc/relation/foreign_keys.h"
#include "pg_rdmacc/row/duplicate_key.h"
#include "pg_rdmacc/row/slot.h"
#include "pg_rdmacc/row/write_marks.h"
#include "pg_rdmacc/server/error.h"
#include "pg_rdmacc/xact/running_query.h"
#include "pg_rdmacc/xact/savepoint.h"
#include "pg_rdmacc/xact/xact.h"

extern "C" {
#include "access/table.h"
#include "access/xact.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
}

namespace {

struct DeferredCheck {
  RdmaccKeyId id;
  uint64 number; /* rises: the first that has stayed is told of */
  const QueryDesc* query;
  Oid relation;
  uint32 table;
  CommandId command;
  SubTransactionId by;      /* the key was taken under it */
  SubTransactionId settled; /* moved away under it; InvalidSubTransactionId: not yet */
  BridgeBytes key;
};

constexpr int64 kInitial = 128;

HTAB* deferred;
uint64 last_number;
MemoryContext memory; /* of the table and the keys */

void create(void) {
  CHECK(deferred == nullptr && TopTransactionContext != nullptr);
  memory = AllocSetContextCreate(TopTransactionContext, "rdmacc deferred key checks",
                                 ALLOCSET_DEFAULT_SIZES);
  HASHCTL control = {};
  control.keysize = sizeof(RdmaccKeyId);
  control.entrysize = sizeof(DeferredCheck);
  control.hcxt = memory;
  deferred = hash_create("rdmacc deferred key checks", kInitial, &control,
                         HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

bool is_live(const DeferredCheck* row) {
  return row->query != nullptr && !rdmacc_subtransaction_aborted(row->by);
}

bool is_settled(const DeferredCheck* row) {
  return row->settled != InvalidSubTransactionId && !rdmacc_subtransaction_aborted(row->settled);
}

/* The check of a row that has not been moved yet. */
DeferredCheck* find(uint32 table, BridgeBytes key, uint32 visible_before) {
  if (deferred == nullptr) return nullptr;
  const RdmaccKeyId id = rdmacc_key_id(table, key);
  auto* row = static_cast<DeferredCheck*>(hash_search(deferred, &id, HASH_FIND, nullptr));
  if (row == nullptr || !is_live(row) || is_settled(row)) return nullptr;
  return visible_before <= row->command ? row : nullptr;
}

BridgeRow read_row(Relation relation, uint32 table, BridgeBytes key, uint32 visible_before) {
  BridgeRow row = {};
  rdmacc_enter();
  bridge_start_get(table, key, visible_before, &row);
  rdmacc_pump();
  rdmacc_check("could not read the row with the same key", RelationGetRelationName(relation));
  return row;
}

void raise_stayed(const DeferredCheck* check) {
  CHECK(OidIsValid(check->relation) && check->key.size > 0);
  Relation relation = table_open(check->relation, NoLock);
  const RdmaccTable table = *rdmacc_table(relation);
  TupleTableSlot* slot = MakeSingleTupleTableSlot(RelationGetDescr(relation), &TTSOpsHeapTuple);
  BridgeRow row = read_row(relation, check->table, check->key, RDMACC_EVERY_COMMAND);
  /* A trigger may have moved or deleted the row that took the key. The one that had it is there,
   * as the command found it. */
  if (!row.found) row = read_row(relation, check->table, check->key, check->command);
  CHECK(row.found);
  rdmacc_slot_store(slot, relation, &row, nullptr);
  rdmacc_raise_duplicate(relation, &table, check->key, slot);
}

void forget(void) {
  if (deferred != nullptr) MemoryContextDelete(memory);
  deferred = nullptr;
}

}  // namespace

bool rdmacc_defer_key_check(Relation relation, const RdmaccTable* table, BridgeBytes key,
                            CommandId cid) {
  CHECK(table->key.number != 0 && key.size > 0); /* hidden row ids are never taken */
  const QueryDesc* query = rdmacc_running_query();
  CommandId at = InvalidCommandId;
  /* A row that this command has written already stays where it is. */
  if (query == nullptr || rdmacc_children_follow(relation) ||
      rdmacc_write_marked_since(table->id, key, cid, &at) ||
      !read_row(relation, table->id, key, cid).found) {
    return false;
  }
  if (deferred == nullptr) create();
  const RdmaccKeyId id = rdmacc_key_id(table->id, key);
  bool found = false;
  auto* row = static_cast<DeferredCheck*>(hash_search(deferred, &id, HASH_ENTER, &found));
  /* Another row has come first: of this command, or of one around it, whose own row is to leave. */
  if (found && is_live(row) && (row->command == cid || !is_settled(row))) return false;
  row->number = ++last_number;
  row->query = query;
  row->relation = RelationGetRelid(relation);
  row->table = table->id;
  row->command = cid;
  row->by = GetCurrentSubTransactionId();
  row->settled = InvalidSubTransactionId;
  auto* bytes = static_cast<char*>(MemoryContextAlloc(memory, Max(key.size, 1)));
  memcpy(bytes, key.data, key.size);
  row->key = {bytes, key.size};
  return true;
}

bool rdmacc_key_was_taken(uint32 table, BridgeBytes key, uint32 visible_before) {
  return find(table, key, visible_before) != nullptr;
}

void rdmacc_refuse_taken_key(uint32 table, BridgeBytes key, uint32 visible_before) {
  const DeferredCheck* row = find(table, key, visible_before);
  if (row != nullptr) raise_stayed(row);
}

bool rdmacc_settle_taken_key(uint32 table, BridgeBytes key, uint32 visible_before) {
  DeferredCheck* row = find(table, key, visible_before);
  if (row == nullptr) return false;
  row->settled = GetCurrentSubTransactionId();
  return true;
}

void rdmacc_check_deferred_keys(const QueryDesc* query) {
  CHECK(query != nullptr);
  if (deferred == nullptr) return;
  bool others = false;
  DeferredCheck stayed = {};
  HASH_SEQ_STATUS rows;
  hash_seq_init(&rows, deferred);
  for (auto* row = static_cast<DeferredCheck*>(hash_seq_search(&rows)); row != nullptr;
       row = static_cast<DeferredCheck*>(hash_seq_search(&rows))) {
    others = others || (row->query != nullptr && row->query != query);
    if (row->query != query) continue;
    const bool stays = is_live(row) && !is_settled(row);
    if (stays && (stayed.number == 0 || row->number < stayed.number)) stayed = *row;
    row->query = nullptr;
  }
  if (stayed.number != 0) raise_stayed(&stayed);
  if (!others) forget();
}

const RdmaccTransactionPart rdmacc_deferred_keys_part = {.forget = forget};
