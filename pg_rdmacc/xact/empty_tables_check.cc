/* A worker of one database (server/empty_tables.cc): which of its tables do the nodes not know?
 * Those are made anew, empty, when they are used. */
#include "pg_rdmacc/server/attach.h"
#include "pg_rdmacc/server/remote_nodes.h"
#include "pg_rdmacc/xact/own_tables.h"

extern "C" {
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "tcop/tcopprot.h"
#include "utils/snapmgr.h"

PGDLLEXPORT void rdmacc_empty_tables_main(Datum database);
}

namespace {

constexpr int kAskStepsMax = 600; /* of a tenth of a second: nodes that get rows from disk */

/* -1: the nodes do not say. */
int tables_of_nodes(rdmacc::ListedTable** tables) {
  for (int step = 0; step < kAskStepsMax; step++) {
    const int count = rdmacc_all_nodes_serve() ? rdmacc_own_tables(tables) : -1;
    if (count >= 0) return count;
    rdmacc_attach_again();
    pg_usleep(100 * 1000L);
    CHECK_FOR_INTERRUPTS();
  }
  return -1;
}

bool is_there(const rdmacc::ListedTable* tables, int count, Oid relfilenode) {
  for (int i = 0; i < count; i++) {
    if (tables[i].database == MyDatabaseId && tables[i].relfilenode == relfilenode) return true;
  }
  return false;
}

uint64 count_missing(const rdmacc::ListedTable* tables, int count) {
  uint64 missing = 0;
  SPI_connect();
  const int result = SPI_execute(
      "SELECT c.relfilenode FROM pg_catalog.pg_class c"
      " WHERE c.relkind OPERATOR(pg_catalog.=) ANY (ARRAY['r', 'm']::pg_catalog.\"char\"[])"
      " AND c.relam OPERATOR(pg_catalog.=)"
      " (SELECT a.oid FROM pg_catalog.pg_am a WHERE a.amname OPERATOR(pg_catalog.=) 'rdmacc')",
      true, 0);
  CHECK(result == SPI_OK_SELECT);
  for (uint64 row = 0; row < SPI_processed; row++) {
    bool null = false;
    const Datum file = SPI_getbinval(SPI_tuptable->vals[row], SPI_tuptable->tupdesc, 1, &null);
    if (!null && !is_there(tables, count, DatumGetObjectId(file))) missing++;
  }
  SPI_finish();
  return missing;
}

}  // namespace

void rdmacc_empty_tables_main(Datum database) {
  pqsignal(SIGTERM, die);
  BackgroundWorkerUnblockSignals();
  BackgroundWorkerInitializeConnectionByOid(DatumGetObjectId(database), InvalidOid, 0);
  rdmacc::ListedTable* tables = nullptr;
  const int count = tables_of_nodes(&tables);
  if (count < 0) {
    ereport(LOG, (errmsg("rdmacc nodes do not say which tables they have"),
                  errdetail("Some of the database with OID %u may be empty after a stop.",
                            DatumGetObjectId(database))));
    return;
  }
  StartTransactionCommand();
  PushActiveSnapshot(GetTransactionSnapshot());
  const uint64 missing = count_missing(tables, count);
  PopActiveSnapshot();
  CommitTransactionCommand();
  if (missing == 0) return;
  ereport(WARNING, (errmsg("rdmacc tables are empty after a stop: rows are kept in memory only"),
                    errdetail("Database with OID %u has " UINT64_FORMAT " such tables.",
                              DatumGetObjectId(database), missing)));
}
