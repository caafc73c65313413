#include "pg_rdmacc/xact/entry.h"

extern "C" {
#include "access/parallel.h"
#include "access/xlog.h"
#include "replication/logicalworker.h"
}

namespace {

[[noreturn]] void refuse_here(const char* where) {
  ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                  errmsg("rdmacc tables cannot be used %s", where)));
}

[[noreturn]] void refuse_unlogged(void) {
  ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                  errmsg("cannot use protocol %s with rdmacc.durability = disk",
                         bridge_protocol_name(rdmacc_protocol)),
                  errdetail("Its transactions are executed before this server could log them."),
                  errhint("Use another rdmacc.protocol, or rdmacc.durability = memory.")));
}

}  // namespace

void rdmacc_check_entry(void) {
  if (IsParallelWorker()) refuse_here("in a parallel worker");
  if (RecoveryInProgress()) refuse_here("during recovery");
  if (IsLogicalWorker()) refuse_here("by logical replication");
  if (rdmacc_protocol >= 0 && rdmacc_rows_are_durable() && !bridge_can_prepare(rdmacc_protocol)) {
    refuse_unlogged();
  }
}
