#include "pg_rdmacc/recovery/checkpoint.h"

#include "pg_rdmacc/recovery/loader.h"
#include "pg_rdmacc/recovery/status.h"
#include "pg_rdmacc/recovery/table_file.h"
#include "pg_rdmacc/server/error.h"
#include "pg_rdmacc/server/guc.h"
#include "pg_rdmacc/server/standby.h"
#include "pg_rdmacc/wal/commit_log.h"
#include "pg_rdmacc/xact/xact.h"

extern "C" {
#include <unistd.h>

#include "access/xlog.h"
#include "access/xlogrecovery.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
}

namespace {

constexpr long kPauseUs = 2'000;
constexpr int kFlightTriesMax = 15'000; /* half a minute */
constexpr int kScanTriesMax = 20;
constexpr long kScanPauseUs = 100'000;

char scan_owner; /* names the scans of this process */
bool of_standby; /* what is being made */

/* Sessions wait for what is still to be applied. */
bool is_promoted(void) { return of_standby && !RecoveryInProgress(); }

/* All rows of records that begin before the result are in memory. */
bool choose_redo(XLogRecPtr* redo) {
  *redo = GetXLogInsertRecPtr();
  for (int tries = 0; rdmacc_log_in_flight_before(*redo); tries++) {
    if (tries == kFlightTriesMax) return false;
    CHECK_FOR_INTERRUPTS();
    pg_usleep(kPauseUs);
  }
  return true;
}

bool same_identity(const rdmacc::ListedTable* one, const rdmacc::ListedTable* other) {
  return one->id == other->id && one->system_id == other->system_id &&
         one->database == other->database && one->relfilenode == other->relfilenode;
}

const ManifestTable* find_table(const Manifest* manifest, const rdmacc::ListedTable* table) {
  for (uint32 i = 0; i < manifest->count; i++) {
    if (same_identity(&manifest->tables[i].table, table)) return &manifest->tables[i];
  }
  return nullptr;
}

bool runs(void) {
  rdmacc_pump();
  return bridge_error()->code == rdmacc::Code::kOk;
}

void end_reading(void) {
  if (!bridge_txn_active()) return;
  bridge_start_abort();
  rdmacc_pump();
}

/* One attempt, in a transaction of its own, which locks nothing. */
bool try_to_dump(uint32 table, const char* path, TableFileSize* size, BridgeError* error) {
  const int protocol = of_standby ? bridge_parse_protocol(RDMACC_STANDBY_PROTOCOL) : -1;
  const BridgeTxnOptions options = {.protocol = protocol,
                                    .stages = rdmacc_stages_code,
                                    .auto_stages = false,
                                    .lock_mode = rdmacc::LockMode::kExclusive,
                                    .gate_timeout_us = 10'000'000,
                                    .exclusive_gate = false};
  TableFile* file = table_file_create(path, table);
  bridge_begin(&options);
  BridgeScan* scan = bridge_scan_create(&scan_owner);
  if (scan == nullptr) return false;
  bridge_start_scan(scan, table, RDMACC_EVERY_COMMAND, rdmacc::ScanMode::kAsStored,
                    rdmacc::ScanWants{}, nullptr);
  bool good = runs();
  size_t count = 1;
  while (good && count > 0) {
    bridge_start_scan_next(scan);
    good = runs();
    const BridgeRow* rows = nullptr;
    good = good && !is_promoted();
    count = good ? bridge_scan_rows(scan, &rows) : 0;
    for (size_t i = 0; i < count; i++) table_file_add(file, rows[i].key, rows[i].row);
  }
  if (good) {
    *size = table_file_finish(file);
  } else {
    table_file_close(file);
  }
  *error = *bridge_error();
  bridge_scan_free(scan);
  end_reading();
  if (!good && error->code == rdmacc::Code::kUnavailable) {
    rdmacc_raise(error, 0, "could not make a checkpoint of rows", nullptr);
  }
  return good;
}

/* What cannot be asked for now is not gone: a checkpoint without it would lose its rows. */
bool table_is_gone(const rdmacc::ListedTable* table) {
  uint32 id = rdmacc::kNoTable;
  const rdmacc::Code found = rdmacc_loader_find_table(table, &id);
  return found == rdmacc::Code::kNotFound || (found == rdmacc::Code::kOk && id != table->id);
}

typedef enum DumpResult { DUMPED, GONE, FAILED } DumpResult;

DumpResult dump(ManifestTable* entry, XLogRecPtr redo) {
  char path[MAXPGPATH];
  rdmacc_table_file_path(path, entry->table.id, redo);
  for (int tries = 0; tries < kScanTriesMax; tries++) {
    TableFileSize size = {};
    BridgeError error = {};
    if (try_to_dump(entry->table.id, path, &size, &error)) {
      entry->file = redo;
      entry->rows = size.rows;
      entry->bytes = size.bytes;
      return DUMPED;
    }
    if (table_is_gone(&entry->table)) {
      unlink(path);
      return GONE;
    }
    ereport(DEBUG1,
            (errmsg_internal("rdmacc checkpoint: table %u: %s", entry->table.id, error.message)));
    if (is_promoted()) break;
    CHECK_FOR_INTERRUPTS();
    pg_usleep(kScanPauseUs);
  }
  unlink(path);
  return FAILED;
}

/* The list, in memory of its own. */
ManifestTable* list_tables(uint32* count) {
  bridge_start_list_tables(rdmacc::TableList::kWhole);
  rdmacc_pump();
  rdmacc_check("could not make a checkpoint of rows", nullptr);
  const rdmacc::ListedTable* listed = nullptr;
  const size_t listed_count = bridge_tables(&listed);
  auto* tables = static_cast<ManifestTable*>(
      MemoryContextAllocZero(TopMemoryContext, sizeof(ManifestTable) * (listed_count + 1)));
  for (size_t i = 0; i < listed_count; i++) tables[i].table = listed[i];
  *count = static_cast<uint32>(listed_count);
  return tables;
}

bool fill(Manifest* made, const Manifest* last, uint32 changed_since, uint64* written_bytes,
          const RdmaccStandbyCheckpoint* at) {
  uint32 kept = 0;
  for (uint32 i = 0; i < made->count; i++) {
    if (at != nullptr && at->apply_more != nullptr) {
      at->note_pause(false);
      at->apply_more();
      at->note_pause(true);
    }
    ManifestTable* entry = &made->tables[i];
    const ManifestTable* before = find_table(last, &entry->table);
    if (before != nullptr && !rdmacc_log_changed_since(entry->table.id, changed_since)) {
      made->tables[kept++] = *before;
      continue;
    }
    const DumpResult result = dump(entry, made->redo);
    if (result == FAILED) return false;
    if (result == GONE) continue;
    *written_bytes += entry->bytes;
    made->tables[kept++] = *entry;
  }
  made->count = kept;
  return true;
}

void tell(const Manifest* made, uint64 written_bytes, TimestampTz begin) {
  RdmaccDurabilityStatus* status = rdmacc_durability_status;
  uint64 rows = 0;
  uint64 bytes = 0;
  for (uint32 i = 0; i < made->count; i++) {
    rows += made->tables[i].rows;
    bytes += made->tables[i].bytes;
  }
  pg_atomic_write_u64(&status->redo, made->redo);
  pg_atomic_write_u64(&status->tables, made->count);
  pg_atomic_write_u64(&status->rows, rows);
  pg_atomic_write_u64(&status->bytes, bytes);
  pg_atomic_write_u64(&status->written_bytes, written_bytes);
  const TimestampTz now = GetCurrentTimestamp();
  pg_atomic_write_u64(&status->duration_us, static_cast<uint64>(now - begin));
  pg_atomic_write_u64(&status->made_at, static_cast<uint64>(now));
  pg_atomic_fetch_add_u64(&status->checkpoints, 1);
}

/* WAL before data: no row is in a file whose record may get lost. */
void end_in_own_wal(Manifest* made) {
  made->end = rdmacc_redo_insert_mark();
  XLogFlush(made->end);
  made->timeline = GetWALInsertionTimeLine();
}

/* The same where it comes from elsewhere: PostgreSQL's next start shows nothing that is older. */
void end_in_replayed_wal(Manifest* made) {
  made->end = GetXLogReplayRecPtr(&made->timeline);
  XLogFlush(made->end);
}

/* `made` has the redo. */
bool try_to_make(Manifest* made, Manifest* last, uint32* changed_since, uint32 generation,
                 TimestampTz begin, const RdmaccStandbyCheckpoint* at) {
  made->system_id = GetSystemIdentifier();
  made->tables = list_tables(&made->count);
  uint64 written_bytes = 0;
  of_standby = at != nullptr;
  if (at != nullptr) at->note_pause(true);
  const bool filled = fill(made, last, *changed_since, &written_bytes, at);
  if (at != nullptr) at->note_pause(false);
  if (!filled) {
    ereport(LOG,
            (is_promoted()
                 ? errmsg("no checkpoint of rdmacc rows: the standby is promoted")
                 : errmsg("no checkpoint of rdmacc rows: a table could not be read for long")));
    pfree(made->tables);
    return false;
  }
  if (at != nullptr) {
    end_in_replayed_wal(made);
  } else {
    end_in_own_wal(made);
  }
  rdmacc_manifest_write(made);
  tell(made, written_bytes, begin);
  if (last->tables != nullptr) pfree(last->tables);
  *last = *made;
  *changed_since = generation;
  return true;
}

/* A disk that is full has room again when it fails. */
bool make(Manifest* made, Manifest* last, uint32* changed_since, uint32 generation,
          TimestampTz begin, const RdmaccStandbyCheckpoint* at) {
  volatile bool done = false;
  rdmacc_manifest_remove_unfinished(); /* of a process that was killed */
  PG_TRY();
  { done = try_to_make(made, last, changed_since, generation, begin, at); }
  PG_FINALLY();
  {
    if (!done) rdmacc_manifest_remove_unfinished();
  }
  PG_END_TRY();
  return done;
}

}  // namespace

bool rdmacc_checkpoint(Manifest* last, uint32* changed_since) {
  CHECK(bridge_attached() && !bridge_txn_active() && rdmacc_durability_status != nullptr);
  const TimestampTz begin = GetCurrentTimestamp();
  const uint32 generation = rdmacc_log_begin_generation();
  Manifest made = {};
  if (!choose_redo(&made.redo)) {
    ereport(LOG, (errmsg("no checkpoint of rdmacc rows: a commit has been under way for long")));
    return false;
  }
  if (made.redo == last->redo) return true; /* nothing has been logged */
  return make(&made, last, changed_since, generation, begin, nullptr);
}

bool rdmacc_checkpoint_of_standby(Manifest* last, uint32* changed_since,
                                  const RdmaccStandbyCheckpoint* at) {
  CHECK(bridge_attached() && !bridge_txn_active() && rdmacc_durability_status != nullptr);
  Manifest made = {};
  made.redo = at->redo;
  if (made.redo <= last->redo) return true;
  return make(&made, last, changed_since, rdmacc_log_begin_generation(), GetCurrentTimestamp(), at);
}
