#include "pg_rdmacc/wal/commit_log.h"

#include "pg_rdmacc/server/shared_piece.h"

extern "C" {
#include "access/xact.h"
#include "access/xlog.h"
#include "miscadmin.h"
#include "replication/slot.h"
#include "replication/syncrep.h"
#include "storage/backendid.h"
#include "storage/shmem.h"
}

namespace {

/* Tables share a word; two that do are dumped when one of them has changed. */
constexpr uint32 kChangedWords = 8192;

struct CommitLog {
  pg_atomic_uint64 transactions; /* counts them */
  /* Where the last record ends whose rows others may have seen before it is on disk. */
  pg_atomic_uint64 seen_until;
  pg_atomic_uint32 generation;
  pg_atomic_uint32 changed[kChangedWords];           /* generation of the table's last change */
  pg_atomic_uint64 in_flight[FLEXIBLE_ARRAY_MEMBER]; /* by BackendId; 0: none */
};

CommitLog* commit_log;

/* Of this session. */
XLogRecPtr logged_until = InvalidXLogRecPtr;
bool in_flight;

Size commit_log_bytes(void) {
  if (!rdmacc_rows_are_durable()) return 0;
  return add_size(offsetof(CommitLog, in_flight),
                  mul_size(sizeof(pg_atomic_uint64), static_cast<Size>(MaxBackends) + 1));
}

[[noreturn]] void refuse(const char* what, const char* hint) {
  ereport(
      FATAL,
      (errcode(ERRCODE_CONFIG_FILE_ERROR), errmsg("rdmacc.durability = disk needs %s", what),
       errhint("%s, or set rdmacc.durability = memory: rows are gone after a stop then.", hint)));
}

void check_settings(void) {
  if (!rdmacc_rows_are_durable()) return;
  if (wal_level < WAL_LEVEL_REPLICA) {
    refuse("wal_level = replica or logical", "Set wal_level = replica");
  }
  if (max_slot_wal_keep_size_mb >= 0) {
    refuse("all WAL since the last checkpoint of rows", "Set max_slot_wal_keep_size = -1");
  }
  if (max_replication_slots < 1) {
    refuse("a replication slot, which keeps WAL", "Set max_replication_slots to 1 more");
  }
}

void attach_log(void* memory, bool found) {
  commit_log = static_cast<CommitLog*>(memory);
  if (found) return;
  pg_atomic_init_u64(&commit_log->transactions, 0);
  pg_atomic_init_u64(&commit_log->seen_until, 0);
  pg_atomic_init_u32(&commit_log->generation, RDMACC_FIRST_GENERATION);
  for (pg_atomic_uint32& word : commit_log->changed) pg_atomic_init_u32(&word, 0);
  for (int i = 0; i <= MaxBackends; i++) pg_atomic_init_u64(&commit_log->in_flight[i], 0);
}

const RdmaccSharedPiece piece = {"rdmacc commit log", check_settings, commit_log_bytes, attach_log};

pg_atomic_uint64* own_flight(void) {
  CHECK(commit_log != nullptr && MyBackendId > 0 && MyBackendId <= MaxBackends);
  return &commit_log->in_flight[MyBackendId];
}

/* A checkpoint sees it, or this session sees the checkpoint's generation. */
void announce_flight(void) {
  in_flight = true;
  pg_atomic_write_u64(own_flight(), GetXLogInsertRecPtr());
  pg_memory_barrier();
}

void raise_to(pg_atomic_uint64* word, uint64 value) {
  uint64 now = pg_atomic_read_u64(word);
  while (now < value && !pg_atomic_compare_exchange_u64(word, &now, value)) {
  }
}

}  // namespace

void rdmacc_commit_log_init(void) {
  CHECK(commit_log == nullptr);
  rdmacc_add_shared_piece(&piece);
}

void rdmacc_log_note_changed(uint32 table) {
  const uint32 generation = pg_atomic_read_u32(&commit_log->generation);
  pg_atomic_uint32* word = &commit_log->changed[table % kChangedWords];
  uint32 now = pg_atomic_read_u32(word);
  while (now < generation && !pg_atomic_compare_exchange_u32(word, &now, generation)) {
  }
}

void rdmacc_log_prepared(uint64 xid) {
  CHECK(bridge_prepared() && InterruptHoldoffCount > 0 && !in_flight);
  const BridgeWrite* writes = nullptr;
  const size_t count = bridge_prepared_writes(&writes);
  CHECK(count > 0);
  const uint64 number = pg_atomic_fetch_add_u64(&commit_log->transactions, 1);
  announce_flight();
  for (size_t i = 0; i < count; i++) rdmacc_log_note_changed(writes[i].table);
  logged_until = rdmacc_redo_insert_writes(RDMACC_REDO_WRITES, writes, count, number, xid);
  if (xid == 0 && synchronous_commit > SYNCHRONOUS_COMMIT_OFF) {
    raise_to(&commit_log->seen_until, logged_until);
  }
}

/* In place already: in flight for as long only as a checkpoint could begin between the note that
 * the table has changed and the record. */
void rdmacc_log_loaded(const BridgeWrite* writes, size_t count) {
  CHECK(count > 0 && commit_log != nullptr && !in_flight);
  const uint64 number = pg_atomic_fetch_add_u64(&commit_log->transactions, 1);
  HOLD_INTERRUPTS();
  announce_flight();
  rdmacc_log_note_changed(writes[0].table);
  rdmacc_redo_insert_writes(RDMACC_REDO_LOADED, writes, count, number, 0);
  rdmacc_log_installed();
  RESUME_INTERRUPTS();
}

void rdmacc_log_installed(void) {
  if (!in_flight) return;
  pg_memory_barrier();
  pg_atomic_write_u64(own_flight(), 0);
  in_flight = false;
}

void rdmacc_log_wait_durable(void) {
  CHECK(logged_until != InvalidXLogRecPtr && InterruptHoldoffCount > 0);
  if (synchronous_commit > SYNCHRONOUS_COMMIT_OFF) {
    XLogFlush(logged_until);
    SyncRepWaitForLSN(logged_until, true);
  } else {
    XLogSetAsyncXactLSN(logged_until);
  }
}

void rdmacc_log_wait_for_what_was_read(void) {
  if (commit_log == nullptr || synchronous_commit <= SYNCHRONOUS_COMMIT_OFF) return;
  const XLogRecPtr until = pg_atomic_read_u64(&commit_log->seen_until);
  if (until == InvalidXLogRecPtr) return;
  HOLD_INTERRUPTS();
  XLogFlush(until);
  SyncRepWaitForLSN(until, true);
  RESUME_INTERRUPTS();
}

void rdmacc_log_table(RdmaccRedoKind kind, const rdmacc::ListedTable* table) {
  if (commit_log == nullptr) return;
  rdmacc_log_note_changed(table->id);
  rdmacc_redo_insert_table(kind, table);
}

void rdmacc_log_mark_time(void) {
  static uint64 marked = 0;
  if (commit_log == nullptr) return;
  const uint64 logged = pg_atomic_read_u64(&commit_log->transactions);
  if (logged == marked) return;
  marked = logged;
  CHECK(!IsTransactionState());
  StartTransactionCommand();
  GetTopTransactionId();
  CommitTransactionCommand();
}

uint32 rdmacc_log_begin_generation(void) {
  return pg_atomic_add_fetch_u32(&commit_log->generation, 1);
}

bool rdmacc_log_changed_since(uint32 table, uint32 generation) {
  return pg_atomic_read_u32(&commit_log->changed[table % kChangedWords]) >= generation;
}

bool rdmacc_log_any_changed_since(uint32 generation) {
  for (pg_atomic_uint32& word : commit_log->changed) {
    if (pg_atomic_read_u32(&word) >= generation) return true;
  }
  return false;
}

bool rdmacc_log_in_flight_before(XLogRecPtr position) {
  pg_memory_barrier();
  for (int i = 1; i <= MaxBackends; i++) {
    const uint64 begin = pg_atomic_read_u64(&commit_log->in_flight[i]);
    if (begin != 0 && begin <= position) return true;
  }
  return false;
}
