#include "pg_rdmacc/recovery/recover.h"

#include "pg_rdmacc/recovery/loader.h"
#include "pg_rdmacc/recovery/replay.h"
#include "pg_rdmacc/recovery/status.h"
#include "pg_rdmacc/recovery/table_file.h"
#include "pg_rdmacc/recovery/wal_slot.h"
#include "pg_rdmacc/server/shmem.h"
#include "pg_rdmacc/server/short_worker.h"
#include "pg_rdmacc/wal/redo_record.h"

extern "C" {
#include "access/xlog.h"
#include "access/xlogrecovery.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
}

namespace {

constexpr uint64 kRowsPerReport = 1'000'000;

/* Of the recovery that goes on. */
TimestampTz begin;
uint64 loaded_rows;
uint32 loaded_tables;
XLogRecPtr loaded_redo;

void load_table(const ManifestTable* entry, uint64* rows) {
  char path[MAXPGPATH];
  rdmacc_table_file_path(path, entry->table.id, entry->file);
  rdmacc_loader_create_table(&entry->table);
  TableFile* file = table_file_open(path, entry->table.id);
  BridgeWrite row;
  uint64 count = 0;
  while (table_file_next(file, &row)) {
    rdmacc_loader_add(&row);
    count++;
    if (++*rows % kRowsPerReport == 0) {
      ereport(LOG, (errmsg("recovering rdmacc tables: " UINT64_FORMAT " rows loaded", *rows)));
    }
    pg_atomic_write_u64(&rdmacc_durability_status->loaded_rows, *rows);
  }
  table_file_close(file);
  if (count != entry->rows) {
    ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
                    errmsg("file \"%s\" has " UINT64_FORMAT " rows instead of " UINT64_FORMAT, path,
                           count, entry->rows)));
  }
}

uint64 load(const Manifest* manifest) {
  uint64 rows = 0;
  for (uint32 i = 0; i < manifest->count; i++) load_table(&manifest->tables[i], &rows);
  rdmacc_loader_flush();
  return rows;
}

/* The slot is made after the first checkpoint, and what the supervisor keeps says so as well, in
 * copies, too: a server without any of them has never had rows on disk. */
void check_never_durable(void) {
  if (rdmacc_wal_slot_position() == InvalidXLogRecPtr &&
      pg_atomic_read_u32(&rdmacc_control->was_on_disk) == 0) {
    return;
  }
  ereport(
      ERROR,
      (errcode(ERRCODE_DATA_CORRUPTED),
       errmsg("there is no whole checkpoint of rdmacc rows in \"%s\"", RDMACC_CHECKPOINT_FOLDER),
       errhint("Restore a backup. To give the rows up, empty the folder, start once with "
               "rdmacc.durability = memory, and drop the replication slot \"%s\".",
               RDMACC_SLOT)));
}

double note_time_s(void) {
  const TimestampTz took_us = GetCurrentTimestamp() - begin;
  pg_atomic_write_u64(&rdmacc_durability_status->recovery_us, static_cast<uint64>(took_us));
  return static_cast<double>(took_us) / 1e6;
}

}  // namespace

bool rdmacc_recover_begin(Manifest* manifest) {
  begin = GetCurrentTimestamp();
  const MemoryContext previous = MemoryContextSwitchTo(TopMemoryContext);
  const XLogRecPtr end =
      RecoveryInProgress() ? GetXLogReplayRecPtr(nullptr) : GetXLogInsertRecPtr();
  pg_atomic_write_u64(&rdmacc_durability_status->replay_end, end);
  pgstat_report_activity(STATE_RUNNING, "gives the nodes their rows back");
  const bool found = rdmacc_manifest_read(end, manifest);
  if (found) {
    rdmacc_wal_slot_hold(manifest->redo);
    loaded_rows = load(manifest);
    loaded_tables = manifest->count;
    loaded_redo = manifest->redo;
    rdmacc_replay_begin(manifest->redo);
    rdmacc_replay_rest();
  } else {
    check_never_durable();
  }
  MemoryContextSwitchTo(previous);
  return found;
}

void rdmacc_recover_to_follow(void) {
  pg_atomic_write_u32(&rdmacc_control->fresh, 0); /* no table is without its rows */
  ereport(LOG, (errmsg("rdmacc tables follow the WAL of this standby: " UINT64_FORMAT
                       " rows of %u tables loaded in %.2f s",
                       loaded_rows, loaded_tables, note_time_s())));
}

void rdmacc_recover_goes_on(void) { begin = GetCurrentTimestamp(); }

void rdmacc_recover_end(void) {
  const MemoryContext previous = MemoryContextSwitchTo(TopMemoryContext);
  ReplayResult replayed;
  rdmacc_replay_end(&replayed);
  rdmacc_loader_end();
  /* Whatever an earlier life in memory lost has been said then. */
  pg_atomic_write_u32(&rdmacc_control->fresh, 0);
  rdmacc_note_doubt(); /* tables whose transaction did not commit go */
  ereport(
      LOG,
      (errmsg("rdmacc tables are recovered: " UINT64_FORMAT
              " rows of %u tables loaded, " UINT64_FORMAT " writes of " UINT64_FORMAT
              " transactions replayed in %.2f s",
              loaded_rows, loaded_tables, replayed.writes, replayed.transactions, note_time_s()),
       errdetail("The checkpoint's redo is %X/%X, the WAL was read to %X/%X; " UINT64_FORMAT
                 " transactions had not committed.",
                 RDMACC_LSN(loaded_redo), RDMACC_LSN(replayed.end), replayed.undecided)));
  MemoryContextSwitchTo(previous);
}
