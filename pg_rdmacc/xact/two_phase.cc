#include "pg_rdmacc/xact/two_phase.h"

#include <signal.h>

#include "pg_rdmacc/server/short_worker.h"
#include "pg_rdmacc/wal/commit_log.h"
#include "pg_rdmacc/xact/pump.h"
#include "pg_rdmacc/xact/xact.h"

extern "C" {
#include "access/clog.h"
#include "access/transam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "miscadmin.h"
#include "replication/message.h"
#include "storage/lwlock.h"
#include "storage/procarray.h"
}

namespace {

constexpr int kStopSteps = 600; /* of a tenth of a second */

void stop_if_asked(int point) {
  if (rdmacc_debug_stop_at != point) return;
  ereport(LOG, (errmsg("rdmacc.debug_stop_at: session %d stands still", MyProcPid)));
  for (int i = 0; i < kStopSteps && !ProcDiePending; i++) pg_usleep(100 * 1000L);
}

[[noreturn]] void refuse_to_prepare(int protocol) {
  ereport(ERROR,
          (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
           errmsg("cannot write rows of rdmacc tables and of other tables in one transaction"),
           errdetail("Protocol %s cannot prepare transactions.", bridge_protocol_name(protocol)),
           errhint("Use another rdmacc.protocol, or one transaction for each kind of table.")));
}

/* It is in the WAL, so it is committed. Nodes that cannot be told so are made anew from the WAL,
 * with all of this server's processes. */
void install_prepared(void) {
  bridge_start_commit_prepared();
  if (rdmacc_pump_committed() && bridge_error()->code == rdmacc::Code::kOk) return;
  ereport(PANIC, (errcode(ERRCODE_INTERNAL_ERROR),
                  errmsg("rdmacc nodes do not answer to a commit that is in the WAL: %s",
                         bridge_error()->message)));
}

/* In the log, and on disk, before anything else remembers the XID: after a crash PostgreSQL gives
 * out again what it has not logged, and another transaction's end would pass for ours. */
FullTransactionId durable_xid(void) {
  const FullTransactionId xid = GetTopFullTransactionId();
  XLogFlush(LogLogicalMessage("rdmacc", "", 0, true));
  return xid;
}

/* Not in 2^31 transactions' reach of the next one, or older than what pg_xact keeps. */
bool is_known(FullTransactionId full) {
  const FullTransactionId next = ReadNextFullTransactionId();
  if (!FullTransactionIdPrecedes(full, next)) return false;
  if (U64FromFullTransactionId(next) - U64FromFullTransactionId(full) >= UINT64CONST(1) << 31) {
    return false;
  }
  const TransactionId xid = XidFromFullTransactionId(full);
  return TransactionIdIsNormal(xid) &&
         !TransactionIdPrecedes(xid, ShmemVariableCache->oldestClogXid);
}

/* In the engine, under this number. */
bool prepare_under(uint64 number) {
  HOLD_INTERRUPTS();
  bridge_start_prepare(GetSystemIdentifier(), number);
  const bool ended = rdmacc_pump_uninterrupted();
  RESUME_INTERRUPTS();
  if (!ended || bridge_error()->code == rdmacc::Code::kUnavailable) {
    /* Some nodes may have logged it, and take this session for dead sooner or later. */
    rdmacc_note_doubt();
    return false;
  }
  return bridge_error()->code == rdmacc::Code::kOk;
}

}  // namespace

bool rdmacc_prepare_engine(void) {
  CHECK(bridge_txn_has_writes() && !bridge_prepared());
  const int protocol = Max(bridge_txn_protocol(), 0);
  if (!bridge_can_prepare(protocol)) refuse_to_prepare(protocol);
  if (!rdmacc_rows_are_durable()) {
    const FullTransactionId xid = durable_xid();
    /* The record that decides must not get lost either. */
    ForceSyncCommit();
    if (!prepare_under(U64FromFullTransactionId(xid))) return false;
    stop_if_asked(RDMACC_STOP_PREPARED);
    return true;
  }
  /* Both records are in the WAL, in this order, and what is not flushed of it goes with the memory
   * of the nodes. */
  const uint64 xid = U64FromFullTransactionId(GetTopFullTransactionId());
  if (!prepare_under(xid)) return false;
  if (!bridge_prepared()) return true; /* its writes came to nothing, and it has ended */
  HOLD_INTERRUPTS();
  rdmacc_log_prepared(xid);
  RESUME_INTERRUPTS();
  stop_if_asked(RDMACC_STOP_PREPARED);
  return true;
}

bool rdmacc_commit_engine_by_record(void) {
  CHECK(rdmacc_rows_are_durable() && bridge_txn_has_writes() && !bridge_prepared());
  CHECK(bridge_can_prepare(Max(bridge_txn_protocol(), 0))); /* rdmacc_enter() */
  if (!prepare_under(RDMACC_DECIDED_BY_RECORD | static_cast<uint64>(MyProcPid))) return false;
  if (!bridge_prepared()) {
    /* Its writes came to nothing, and it has ended. */
    rdmacc_log_wait_for_what_was_read();
    return true;
  }
  stop_if_asked(RDMACC_STOP_PREPARED);
  HOLD_INTERRUPTS();
  rdmacc_log_prepared(0);
  stop_if_asked(RDMACC_STOP_RECORDED);
  install_prepared();
  rdmacc_log_installed();
  stop_if_asked(RDMACC_STOP_INSTALLED);
  rdmacc_log_wait_durable();
  RESUME_INTERRUPTS();
  return true;
}

void rdmacc_commit_prepared_engine(void) {
  CHECK(bridge_prepared());
  stop_if_asked(RDMACC_STOP_RECORDED);
  if (rdmacc_rows_are_durable()) {
    install_prepared();
    rdmacc_log_installed();
    return;
  }
  bridge_start_commit_prepared();
  const bool ended = rdmacc_pump_committed();
  if (ended && bridge_error()->code == rdmacc::Code::kOk) return;
  ereport(WARNING,
          (errmsg("the rows that this transaction wrote to rdmacc tables are not in place yet"),
           errdetail("The transaction is committed, but nodes do not answer: %s.",
                     bridge_error()->message),
           errhint("The session ends, and its rows stay locked until the nodes have been told.")));
  bridge_detach_uncleanly();
  rdmacc_note_doubt();
  kill(MyProcPid, SIGTERM);
}

RdmaccOutcome rdmacc_outcome_of(uint64 number) {
  const FullTransactionId full = FullTransactionIdFromU64(number);
  const TransactionId xid = XidFromFullTransactionId(full);
  RdmaccOutcome outcome = RDMACC_OUTCOME_UNKNOWN;
  /* Nothing of pg_xact is cut off meanwhile. */
  LWLockAcquire(XactTruncationLock, LW_SHARED);
  if (is_known(full)) {
    if (TransactionIdIsInProgress(xid)) {
      outcome = RDMACC_OUTCOME_OPEN;
    } else {
      outcome = TransactionIdDidCommit(xid) ? RDMACC_OUTCOME_COMMITTED : RDMACC_OUTCOME_ABORTED;
    }
  }
  LWLockRelease(XactTruncationLock);
  return outcome;
}
