#include "pg_rdmacc/recovery/loader.h"

#include "pg_rdmacc/server/error.h"
#include "pg_rdmacc/server/guc.h"
#include "pg_rdmacc/xact/xact.h"

extern "C" {
#include "miscadmin.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
}

namespace {

constexpr size_t kWritesMax = 1024; /* of a batch */
constexpr Size kBytesMax = 2 * 1024 * 1024;
constexpr int kTriesMax = 200;
constexpr long kPauseUs = 10'000;
constexpr int kCreateTriesMax = 3000; /* a table that was dropped leaves its entry a little later */

BridgeWrite batch[kWritesMax];
size_t batch_count;
Size batch_bytes;
MemoryContext batch_context; /* what the batch's writes point into */
HTAB* tables;                /* ids of those that are there */

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
  const BridgeTxnOptions options = {.protocol = bridge_parse_protocol("occ"),
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

}  // namespace

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
    if (code == rdmacc::Code::kOk || code == rdmacc::Code::kDuplicateKey) break;
    if (code != rdmacc::Code::kNoSpace || tries == kCreateTriesMax) {
      rdmacc_check("could not make a table again in the rdmacc nodes", nullptr);
    }
    pg_usleep(kPauseUs);
  }
  rdmacc_loader_add_table(table->id);
}

bool rdmacc_loader_add(const BridgeWrite* write) {
  if (hash_search(known_tables(), &write->table, HASH_FIND, nullptr) == nullptr) return false;
  if (batch_context == nullptr) {
    batch_context = AllocSetContextCreate(TopMemoryContext, "rdmacc batch", ALLOCSET_DEFAULT_SIZES);
  }
  BridgeWrite* last = &batch[batch_count++];
  *last = *write;
  last->key.data = copy(write->key);
  if (!write->deleted) last->row.data = copy(write->row);
  batch_bytes += write->key.size + (write->deleted ? 0 : write->row.size);
  if (batch_count == kWritesMax || batch_bytes > kBytesMax) rdmacc_loader_flush();
  return true;
}

void rdmacc_loader_flush(void) {
  if (batch_count == 0) return;
  if (ShutdownRequestPending) proc_exit(1); /* the next start begins again */
  BridgeError error = {};
  for (int tries = 0; !write_batch(&error); tries++) {
    const bool may_pass = error.code == rdmacc::Code::kAborted ||
                          error.code == rdmacc::Code::kNoSpace; /* dropped rows are on their way */
    if (!may_pass || tries == kTriesMax) {
      rdmacc_raise(&error, 0, "could not give the rdmacc nodes their rows back", nullptr);
    }
    pg_usleep(kPauseUs);
  }
  batch_count = batch_bytes = 0;
  MemoryContextReset(batch_context);
}

void rdmacc_loader_end(void) {
  rdmacc_loader_flush();
  if (batch_context != nullptr) MemoryContextDelete(batch_context);
  batch_context = nullptr;
  if (tables != nullptr) hash_destroy(tables);
  tables = nullptr;
}
