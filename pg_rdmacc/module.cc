/* What happens when PostgreSQL loads the library. Nothing is started here: the postmaster must
 * have no threads and no engine, so everything is registered and done later, after fork.
 *
 * Preloaded, the server has a supervisor that runs the nodes. Loaded later by one backend (its
 * server lacks the library in shared_preload_libraries), only the session's settings exist, and
 * the first use of the engine fails with a hint (rdmacc_require_preload). */
#include "pg_rdmacc/key_prefetch.h"
#include "pg_rdmacc/row_stream.h"
#include "pg_rdmacc/supervisor.h"
#include "pg_rdmacc/table_options.h"

extern "C" {
#include "fmgr.h"
#include "miscadmin.h"

PG_MODULE_MAGIC;

PGDLLEXPORT void _PG_init(void);
}

bool rdmacc_preloaded = false;

void _PG_init(void) {
  rdmacc_preloaded = process_shared_preload_libraries_in_progress;
  rdmacc_guc_init(rdmacc_preloaded);
  /* First of all callbacks: PostgreSQL calls the newest registration first, and the engine's
   * commit has to be the last thing that can fail. Where several libraries are preloaded,
   * pg_rdmacc is to be named first for the same reason. */
  rdmacc_xact_init();
  rdmacc_ddl_init();
  rdmacc_table_options_init();
  rdmacc_planner_init();
  rdmacc_scan_init();
  rdmacc_key_prefetch_init();
  rdmacc_row_stream_init();
  if (!rdmacc_preloaded) return;
  rdmacc_shmem_init();
  rdmacc_supervisor_register();
}

void rdmacc_require_preload(void) {
  if (rdmacc_preloaded) return;
  ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                  errmsg("pg_rdmacc was not loaded at server start"),
                  errhint("Add the line\nshared_preload_libraries = 'pg_rdmacc'\nto "
                          "postgresql.conf and restart the server.")));
}
