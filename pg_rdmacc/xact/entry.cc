#include "pg_rdmacc/xact/entry.h"

#include "pg_rdmacc/server/standby.h"

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

uint64 rdmacc_gate_timeout_us(void) {
  const uint64 gate_ms = static_cast<uint64>(Max(rdmacc_gate_timeout_ms, 0));
  const uint64 lock_ms = static_cast<uint64>(Max(LockTimeout, 0));
  const uint64 ms = lock_ms > 0 && (gate_ms == 0 || lock_ms < gate_ms) ? lock_ms : gate_ms;
  return ms * 1000;
}

int rdmacc_protocol_to_begin(bool standby) {
  return standby ? bridge_parse_protocol(RDMACC_STANDBY_PROTOCOL) : rdmacc_protocol;
}

void rdmacc_refuse_worker(void) {
  ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                  errmsg("rdmacc tables cannot be used in a parallel worker"),
                  errhint("Declare functions that use them PARALLEL RESTRICTED.")));
}

void rdmacc_check_entry(void) {
  if (IsParallelWorker()) rdmacc_refuse_worker();
  if (RecoveryInProgress() && !rdmacc_on_standby()) refuse_here("during recovery");
  if (IsLogicalWorker()) refuse_here("by logical replication");
  if (RecoveryInProgress()) return;
  if (rdmacc_protocol >= 0 && rdmacc_rows_are_durable() && !bridge_can_prepare(rdmacc_protocol)) {
    refuse_unlogged();
  }
}
