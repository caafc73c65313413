/* What happens when PostgreSQL loads the library. Nothing is started here: the postmaster must
 * have no threads and no engine, so everything is registered and done later, after fork.
 *
 * Preloaded, the server has a supervisor that runs the nodes. Loaded later by one backend (its
 * server lacks the library in shared_preload_libraries), only the session's settings exist, and
 * the first use of the engine fails with a hint (rdmacc_require_preload). */
#include "pg_rdmacc/ddl/table_files.h"
#include "pg_rdmacc/ddl/utility.h"
#include "pg_rdmacc/index/bitmap_scan.h"
#include "pg_rdmacc/index/index_row.h"
#include "pg_rdmacc/index/secondary_indexes.h"
#include "pg_rdmacc/index/unique_check.h"
#include "pg_rdmacc/plan/key_prefetch.h"
#include "pg_rdmacc/plan/planner.h"
#include "pg_rdmacc/plan/row_stream.h"
#include "pg_rdmacc/plan/scan.h"
#include "pg_rdmacc/query/executor.h"
#include "pg_rdmacc/query/kept_executor.h"
#include "pg_rdmacc/recovery/backup_watch.h"
#include "pg_rdmacc/recovery/checkpointer.h"
#include "pg_rdmacc/recovery/status.h"
#include "pg_rdmacc/recovery/wal_slot.h"
#include "pg_rdmacc/relation/access_method.h"
#include "pg_rdmacc/relation/engine_table.h"
#include "pg_rdmacc/relation/foreign_keys.h"
#include "pg_rdmacc/relation/pending_tables.h"
#include "pg_rdmacc/relation/table_options.h"
#include "pg_rdmacc/row/handle.h"
#include "pg_rdmacc/row/row_load.h"
#include "pg_rdmacc/row/write_marks.h"
#include "pg_rdmacc/server/guc.h"
#include "pg_rdmacc/server/shmem.h"
#include "pg_rdmacc/server/supervisor.h"
#include "pg_rdmacc/table/bulk_insert.h"
#include "pg_rdmacc/table/deferred_key_check.h"
#include "pg_rdmacc/table/gathered_insert.h"
#include "pg_rdmacc/table/tableam.h"
#include "pg_rdmacc/wal/commit_log.h"
#include "pg_rdmacc/xact/exported_snapshot.h"
#include "pg_rdmacc/xact/guests.h"
#include "pg_rdmacc/xact/lock_holder.h"
#include "pg_rdmacc/xact/row_sharers.h"
#include "pg_rdmacc/xact/running_query.h"
#include "pg_rdmacc/xact/transaction_part.h"
#include "pg_rdmacc/xact/xact.h"

extern "C" {
#include "fmgr.h"
#include "miscadmin.h"

PG_MODULE_MAGIC;

PGDLLEXPORT void _PG_init(void);
}

namespace {

/* Everything that has steps around the end of a transaction, in the order in which each kind of
 * step runs. What it has to be: uniqueness is checked before rows of tables that have lost their
 * primary key get other keys, and before it is known which engine tables go. */
const RdmaccTransactionPart* const kTransactionParts[] = {
    &rdmacc_unique_checks_part,   &rdmacc_table_files_part,  &rdmacc_pending_tables_part,
    &rdmacc_handles_part,         &rdmacc_write_marks_part,  &rdmacc_deferred_keys_part,
    &rdmacc_index_rows_part,      &rdmacc_bitmap_scans_part, &rdmacc_bulk_insert_part,
    &rdmacc_gathered_insert_part, &rdmacc_row_load_part,     &rdmacc_running_query_part,
    &rdmacc_row_sharers_part,     &rdmacc_lock_holder_part,  &rdmacc_secondary_indexes_part};

const RdmaccTableHooks kTableHooks = {.settle_layout = rdmacc_settle_layout,
                                      .create_lost_indexes = rdmacc_create_lost_indexes};

}  // namespace

void _PG_init(void) {
  rdmacc_preloaded = process_shared_preload_libraries_in_progress;
  rdmacc_guc_init(rdmacc_preloaded);
  rdmacc_set_table_routine(&rdmacc_routine);
  rdmacc_set_table_hooks(&kTableHooks);
  rdmacc_set_transaction_parts(kTransactionParts, lengthof(kTransactionParts));
  /* First of all callbacks: PostgreSQL calls the newest registration first, and the engine's
   * commit has to be the last thing that can fail. Where several libraries are preloaded,
   * pg_rdmacc is to be named first for the same reason. */
  rdmacc_xact_init();
  rdmacc_kept_executor_init();
  rdmacc_ddl_init();
  rdmacc_table_options_init();
  rdmacc_foreign_keys_init();
  rdmacc_option_statements_init();
  rdmacc_planner_init();
  rdmacc_executor_init();
  rdmacc_scan_init();
  rdmacc_key_prefetch_init();
  rdmacc_row_stream_init();
  if (!rdmacc_preloaded) return;
  rdmacc_shmem_init();
  rdmacc_exported_snapshot_init();
  rdmacc_row_sharers_init();
  rdmacc_guests_init();
  rdmacc_commit_log_init();
  rdmacc_durability_status_init();
  rdmacc_wal_slot_init();
  rdmacc_backup_watch_init();
  rdmacc_supervisor_register();
  rdmacc_supervisor_at_each_round(rdmacc_log_mark_time);
  rdmacc_checkpointer_register();
}
