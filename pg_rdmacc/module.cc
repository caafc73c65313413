/* What happens when PostgreSQL loads the library. Nothing is started here: the postmaster must
 * have no threads and no engine, so everything is registered and done later, after fork.
 *
 * Preloaded, the server has a supervisor that runs the nodes. Loaded later by one backend (its
 * server lacks the library in shared_preload_libraries), only the session's settings exist, and
 * the first use of the engine fails with a hint (rdmacc_require_preload). */
#include "pg_rdmacc/access_method.h"
#include "pg_rdmacc/bitmap_scan.h"
#include "pg_rdmacc/engine_table.h"
#include "pg_rdmacc/executor.h"
#include "pg_rdmacc/guc.h"
#include "pg_rdmacc/handle.h"
#include "pg_rdmacc/index_row.h"
#include "pg_rdmacc/key_moves.h"
#include "pg_rdmacc/key_prefetch.h"
#include "pg_rdmacc/pending_tables.h"
#include "pg_rdmacc/planner.h"
#include "pg_rdmacc/row_stream.h"
#include "pg_rdmacc/scan.h"
#include "pg_rdmacc/secondary_indexes.h"
#include "pg_rdmacc/shmem.h"
#include "pg_rdmacc/supervisor.h"
#include "pg_rdmacc/table_files.h"
#include "pg_rdmacc/table_options.h"
#include "pg_rdmacc/tableam.h"
#include "pg_rdmacc/transaction_part.h"
#include "pg_rdmacc/unique_check.h"
#include "pg_rdmacc/utility.h"
#include "pg_rdmacc/write_marks.h"
#include "pg_rdmacc/xact.h"

extern "C" {
#include "fmgr.h"
#include "miscadmin.h"

PG_MODULE_MAGIC;

PGDLLEXPORT void _PG_init(void);
}

namespace {

/* Everything that has steps around the end of a transaction. Uniqueness is checked before rows of
 * tables without their primary key get other keys; and what is forgotten is forgotten in this
 * order. */
const RdmaccTransactionPart* const kTransactionParts[] = {
    &rdmacc_unique_checks_part, &rdmacc_table_files_part, &rdmacc_pending_tables_part,
    &rdmacc_handles_part,       &rdmacc_write_marks_part, &rdmacc_displaced_part,
    &rdmacc_index_rows_part,    &rdmacc_bitmap_scans_part};

const RdmaccTableHooks kTableHooks = {.settle_layout = rdmacc_settle_layout,
                                      .create_lost_indexes = rdmacc_create_lost_indexes};

}  // namespace

void _PG_init(void) {
  rdmacc_preloaded = process_shared_preload_libraries_in_progress;
  rdmacc_guc_init(rdmacc_preloaded);
  /* First of all callbacks: PostgreSQL calls the newest registration first, and the engine's
   * commit has to be the last thing that can fail. Where several libraries are preloaded,
   * pg_rdmacc is to be named first for the same reason. */
  rdmacc_set_table_routine(&rdmacc_routine);
  rdmacc_set_table_hooks(&kTableHooks);
  rdmacc_set_transaction_parts(kTransactionParts, lengthof(kTransactionParts));
  rdmacc_xact_init();
  rdmacc_ddl_init();
  rdmacc_table_options_init();
  rdmacc_option_statements_init();
  rdmacc_planner_init();
  rdmacc_executor_init();
  rdmacc_scan_init();
  rdmacc_key_prefetch_init();
  rdmacc_row_stream_init();
  if (!rdmacc_preloaded) return;
  rdmacc_shmem_init();
  rdmacc_supervisor_register();
}
