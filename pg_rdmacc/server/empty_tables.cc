/* Tables whose rows are in memory alone are empty after a stop. A query should not be the first to
 * say so: the server log has a warning per database. Only a process that is connected to a database
 * can see its tables, hence a short-lived worker for one database after the other
 * (xact/empty_tables_check.cc). */
#include "pg_rdmacc/server/short_worker.h"
#include "pg_rdmacc/server/supervisor.h"

extern "C" {
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_database.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "utils/memutils.h"
}

namespace {

List* databases_left;                  /* Oids, in TopMemoryContext */
BackgroundWorkerHandle* worker_handle; /* of the database being looked at */

void launch_for(Oid database) {
  CHECK(worker_handle == nullptr && OidIsValid(database)); /* one at a time */
  worker_handle = rdmacc_launch_worker("rdmacc_empty_tables_main", "rdmacc empty tables check",
                                       ObjectIdGetDatum(database));
}

}  // namespace

void rdmacc_empty_tables_start(void) {
  CHECK(!IsTransactionState());
  StartTransactionCommand();
  Relation catalog = table_open(DatabaseRelationId, AccessShareLock);
  TableScanDesc scan = table_beginscan_catalog(catalog, 0, nullptr);
  HeapTuple tuple = nullptr;
  while ((tuple = heap_getnext(scan, ForwardScanDirection)) != nullptr) {
    const auto* database = reinterpret_cast<Form_pg_database>(GETSTRUCT(tuple));
    if (!database->datallowconn) continue;
    const MemoryContext previous = MemoryContextSwitchTo(TopMemoryContext);
    databases_left = lappend_oid(databases_left, database->oid);
    MemoryContextSwitchTo(previous);
  }
  table_endscan(scan);
  table_close(catalog, AccessShareLock);
  CommitTransactionCommand();
}

void rdmacc_empty_tables_step(void) {
  if (worker_handle != nullptr) {
    pid_t pid = 0;
    if (GetBackgroundWorkerPid(worker_handle, &pid) != BGWH_STOPPED) return;
    pfree(worker_handle);
    worker_handle = nullptr;
  }
  if (databases_left == NIL) return;
  launch_for(linitial_oid(databases_left));
  /* No free worker now: this database's turn comes with the supervisor's next round. */
  if (worker_handle != nullptr) databases_left = list_delete_first(databases_left);
}
