#include "pg_rdmacc/recovery/loader.h"

#include "pg_rdmacc/server/attach.h"
#include "pg_rdmacc/server/error.h"
#include "pg_rdmacc/server/guc.h"
#include "pg_rdmacc/server/standby.h"
#include "pg_rdmacc/xact/xact.h"

extern "C" {
#include "miscadmin.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
}

namespace {

constexpr Size kWritesMax = 1024; /* of a batch, or as many as its last transaction has */
constexpr Size kBytesMax = 2 * 1024 * 1024;
constexpr int kTriesMax = 200;
constexpr int kSpaceTriesMax = 6000; /* a minute */
constexpr int kTriesAtOnce = 10;     /* readers that were in the way are not for long */
constexpr long kPauseUs = 10'000, kShortPauseUs = 200;
constexpr int kCreateTriesMax = 3000; /* a table that was dropped leaves its entry a little later */

BridgeWrite* batch; /* with room for batch_room, in TopMemoryContext */
Size batch_count, batch_room;
Size batch_bytes;
MemoryContext batch_context; /* what the batch's writes point into */
bool has_readers;
HTAB* tables; /* ids of those that are there */

HTAB* known_tables(void) {
  if (tables != nullptr) return tables;
  HASHCTL control = {};
  control.keysize = sizeof(uint32);
  control.entrysize = sizeof(uint32);
  control.hcxt = TopMemoryContext;
  tables = hash_create("rdmacc tables", 256, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
  return tables;
}

char* copy(BridgeBytes bytes) {
  auto* to = static_cast<char*>(MemoryContextAlloc(batch_context, bytes.size + 1));
  memcpy(to, bytes.data, bytes.size);
  return to;
}

bool runs(void) {
  rdmacc_pump();
  return bridge_error()->code == rdmacc::Code::kOk;
}

/* One transaction. */
bool write_batch(BridgeError* error) {
  const char* protocol = rdmacc_has_followed() ? RDMACC_STANDBY_PROTOCOL : "occ";
  const BridgeTxnOptions options = {.protocol = bridge_parse_protocol(protocol),
                                    .stages = rdmacc_stages_code,
                                    .auto_stages = false,
                                    .lock_mode = rdmacc::LockMode::kExclusive,
                                    .gate_timeout_us = 10'000'000,
                                    .exclusive_gate = false};
  bridge_begin(&options);
  bridge_start_apply(batch, batch_count);
  bool done = runs();
  if (done) {
    bridge_start_commit();
    done = runs();
  }
  *error = *bridge_error();
  if (bridge_txn_active()) {
    bridge_start_abort();
    rdmacc_pump();
  }
  return done;
}

bool is_full(void) { return batch_count >= kWritesMax || batch_bytes > kBytesMax; }

void make_room(void) {
  if (batch_context == nullptr) {
    batch_context = AllocSetContextCreate(TopMemoryContext, "rdmacc batch", ALLOCSET_DEFAULT_SIZES);
  }
  if (batch_count < batch_room) return;
  batch_room = Max(kWritesMax, 2 * batch_room);
  const Size bytes = batch_room * sizeof(BridgeWrite);
  batch = static_cast<BridgeWrite*>(
      batch == nullptr ? MemoryContextAllocExtended(TopMemoryContext, bytes, MCXT_ALLOC_HUGE)
                       : repalloc_huge(batch, bytes));
}

/* A node was lost, and is started again with what it had. False: only the end of this process ends
 * the attempt. */
bool attach_anew(void) {
  if (bridge_left_to_resolution()) return false;
  rdmacc_leave_cluster();
  rdmacc_ensure_attached();
  return true;
}

/* Beside readers a transaction that has lost to them is tried again for as long as it takes; and
 * the versions that are kept for them go some seconds later than they came. */
bool may_try_again(const BridgeError* error, int tries) {
  const bool beside_readers = rdmacc_has_followed();
  switch (error->code) {
    case rdmacc::Code::kTimeout: /* one reads alone */
      return beside_readers;
    case rdmacc::Code::kAborted:
      return beside_readers || tries < kTriesMax;
    case rdmacc::Code::kNoSpace: /* dropped rows are on their way */
      return tries < (beside_readers ? kSpaceTriesMax : kTriesMax);
    default:
      return false;
  }
}

}  // namespace

void rdmacc_loader_has_readers(void) {
  rdmacc_loader_flush();
  has_readers = true;
}

void rdmacc_loader_add_table(uint32 table) {
  CHECK(table != rdmacc::kNoTable);
  hash_search(known_tables(), &table, HASH_ENTER, nullptr);
}

void rdmacc_loader_drop_table(uint32 table) {
  if (hash_search(known_tables(), &table, HASH_REMOVE, nullptr) == nullptr) return;
  rdmacc_loader_flush();
  bridge_start_drop_table(table);
  rdmacc_pump();
  if (bridge_error()->code != rdmacc::Code::kNotFound) {
    rdmacc_check("could not drop a table in the rdmacc nodes", nullptr);
  }
}

void rdmacc_loader_create_table(const rdmacc::ListedTable* table) {
  if (hash_search(known_tables(), &table->id, HASH_FIND, nullptr) != nullptr) return;
  rdmacc_loader_flush();
  for (int tries = 0;; tries++) {
    bridge_start_create_again(table);
    rdmacc_pump();
    const rdmacc::Code code = bridge_error()->code;
    if (code == rdmacc::Code::kOk) break;
    const bool there = code == rdmacc::Code::kDuplicateKey;
    uint32 id = rdmacc::kNoTable; /* as the attempt before this one may have made it */
    const bool held = there && rdmacc_loader_find_table(table, &id) == rdmacc::Code::kOk;
    if (held && id == table->id) break;
    /* By the attempt before this one, which may have come to another table of the same identity
     * already. That is still to come in the WAL, too, and readers may keep it from going for
     * long. */
    const bool dropped = code == rdmacc::Code::kNotFound || held;
    if (dropped && rdmacc_has_followed()) return;
    const bool may_pass = there || dropped || code == rdmacc::Code::kNoSpace;
    if (!may_pass || tries == kCreateTriesMax) {
      rdmacc_check("could not make a table again in the rdmacc nodes", nullptr);
    }
    if (ShutdownRequestPending) proc_exit(1);
    pg_usleep(kPauseUs);
  }
  rdmacc_loader_add_table(table->id);
}

rdmacc::Code rdmacc_loader_find_table(const rdmacc::ListedTable* table, uint32* id) {
  const rdmacc::TableSpec identity = {.system_id = table->system_id,
                                      .database = table->database,
                                      .relfilenode = table->relfilenode};
  bridge_start_find_table(&identity, id, nullptr);
  rdmacc_pump();
  return bridge_error()->code;
}

bool rdmacc_loader_add(const BridgeWrite* write) {
  if (hash_search(known_tables(), &write->table, HASH_FIND, nullptr) == nullptr) return false;
  make_room();
  BridgeWrite* last = &batch[batch_count++];
  *last = *write;
  last->key.data = copy(write->key);
  if (!write->deleted) last->row.data = copy(write->row);
  batch_bytes += write->key.size + (write->deleted ? 0 : write->row.size);
  if (!has_readers && is_full()) rdmacc_loader_flush();
  return true;
}

void rdmacc_loader_end_transaction(void) {
  if (is_full()) rdmacc_loader_flush();
}

void rdmacc_loader_flush(void) {
  if (batch_count == 0) return;
  if (ShutdownRequestPending && !has_readers) proc_exit(1); /* the next start begins again */
  BridgeError error = {};
  for (int tries = 0; !write_batch(&error); tries++) {
    const bool lost = error.code == rdmacc::Code::kUnavailable;
    if (lost && tries < kTriesMax && attach_anew()) continue;
    if (!may_try_again(&error, tries)) {
      rdmacc_raise(&error, 0, "could not give the rdmacc nodes their rows back", nullptr);
    }
    if (ShutdownRequestPending) proc_exit(1);
    pg_usleep(tries < kTriesAtOnce ? kShortPauseUs : kPauseUs);
  }
  batch_count = batch_bytes = 0;
  MemoryContextReset(batch_context);
}

void rdmacc_loader_end(void) {
  rdmacc_loader_flush();
  if (batch_context != nullptr) MemoryContextDelete(batch_context);
  batch_context = nullptr;
  if (batch != nullptr) pfree(batch);
  batch = nullptr;
  batch_room = 0;
  has_readers = false;
  if (tables != nullptr) hash_destroy(tables);
  tables = nullptr;
}
