/* With rdmacc.durability = memory every rdmacc table is empty after a stop. A query
 * should not be the first to say so: at the first start after a stop the server log has a warning
 * per database. Only a process that is connected to a database can see its tables, hence a
 * short-lived worker for one database after the other. */
#include "pg_rdmacc/server/short_worker.h"
#include "pg_rdmacc/server/supervisor.h"

extern "C" {
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_database.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

PGDLLEXPORT void rdmacc_empty_tables_main(Datum database);
}

namespace {

List* databases_left;                  /* Oids, in TopMemoryContext */
BackgroundWorkerHandle* worker_handle; /* of the database being looked at */

void launch_for(Oid database) {
  CHECK(worker_handle == nullptr && OidIsValid(database)); /* one at a time */
  worker_handle = rdmacc_launch_worker("rdmacc_empty_tables_main", "rdmacc empty tables check",
                                       ObjectIdGetDatum(database));
}

uint64 count_tables(void) {
  SPI_connect();
  const int result = SPI_execute(
      "SELECT 1 FROM pg_catalog.pg_class c"
      " WHERE c.relkind OPERATOR(pg_catalog.=) ANY (ARRAY['r', 'm']::pg_catalog.\"char\"[])"
      " AND c.relam OPERATOR(pg_catalog.=)"
      " (SELECT a.oid FROM pg_catalog.pg_am a WHERE a.amname OPERATOR(pg_catalog.=) 'rdmacc')",
      true, 0);
  const uint64 count = result == SPI_OK_SELECT ? SPI_processed : 0;
  SPI_finish();
  return count;
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

void rdmacc_empty_tables_main(Datum database) {
  BackgroundWorkerUnblockSignals();
  BackgroundWorkerInitializeConnectionByOid(DatumGetObjectId(database), InvalidOid, 0);
  StartTransactionCommand();
  PushActiveSnapshot(GetTransactionSnapshot());
  const uint64 count = count_tables();
  PopActiveSnapshot();
  CommitTransactionCommand();
  if (count > 0) {
    ereport(WARNING, (errmsg("rdmacc tables are empty after a stop: rows are kept in memory only"),
                      errdetail("Database with OID %u has " UINT64_FORMAT " such tables.",
                                DatumGetObjectId(database), count)));
  }
}
