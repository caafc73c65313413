#include "pg_rdmacc/xact/lock_holder.h"

#include "pg_rdmacc/server/error.h"
#include "pg_rdmacc/server/shmem.h"
#include "pg_rdmacc/xact/row_sharers.h"
#include "pg_rdmacc/xact/xact.h"

extern "C" {
#include "miscadmin.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"
}

namespace {

constexpr int kLooksAtOnce = 8; /* then with pauses: holders follow each other fast */
constexpr long kPauseMs = 1;
constexpr long kPauseMsMax = 10;
constexpr long kLetPassMsMax = 1000;
constexpr int kLossesToUnknown = 6;
constexpr long kUnknownMsMax = 500;

/* What the last attempt has lost for, when it has; invalid: nothing that can be waited for. */
VirtualTransactionId lost_to = RDMACC_NO_SESSION;
TimestampTz losing_since; /* of the statement or block that has lost last */
uint64 waits;             /* of this session, for any holder */
bool lost_to_unknown;     /* a lock, and no session of this server is known to hold it */
bool lost_to_sharers; /* perhaps, since the last commit: a lock without a name, and others share */

/* The transaction that the worker's session is in; invalid when it is no other session of this
 * server, or in none. */
VirtualTransactionId session_of(int worker) {
  VirtualTransactionId session;
  SetInvalidVirtualTransactionId(session);
  const int pid = worker >= 0 ? rdmacc_worker_pid(worker) : 0;
  if (pid == 0 || pid == MyProcPid) return session;
  const PGPROC* process = BackendPidGetProc(pid);
  if (process != nullptr) GET_VXID_FROM_PGPROC(session, *process);
  return session;
}

/* A deadlock is a conflict like others: the block may be run again. */
void await_end(VirtualTransactionId session) {
  PG_TRY();
  { VirtualXactLock(session, true); }
  PG_CATCH();
  {
    if (geterrcode() == ERRCODE_T_R_DEADLOCK_DETECTED) {
      rdmacc_note_conflict(Max(bridge_txn_protocol(), 0));
    }
    PG_RE_THROW();
  }
  PG_END_TRY();
}

/* Two transactions of different servers, or with shared locks, may wait for each other unseen: such
 * a wait ends as a deadlock would be looked for, and the transaction has lost. */
[[noreturn]] void lose(const char* relation) {
  const BridgeError error = {.code = rdmacc::Code::kAborted,
                             .reason = "waited_too_long",
                             .message = "a lock was held for too long",
                             .outcome_unknown = false,
                             .held_by_another = true};
  rdmacc_doom(&error);
  rdmacc_raise(&error, Max(bridge_txn_protocol(), 0), "could not lock a row", relation);
}

/* It is not known what the next transaction will meet. */
void finish(bool committed) { lost_to_sharers &= !committed; }

void pause(long ms) {
  WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, ms, PG_WAIT_EXTENSION);
  ResetLatch(MyLatch);
  CHECK_FOR_INTERRUPTS();
}

[[noreturn]] void raise_lock_timeout(void) {
  ereport(ERROR,
          (errcode(ERRCODE_LOCK_NOT_AVAILABLE), errmsg("canceling statement due to lock timeout")));
}

/* Of what has lost again and again since. */
void end_by_lock_timeout(void) {
  const TimestampTz now = GetCurrentTimestamp();
  if (LockTimeout > 0 && TimestampDifferenceExceeds(losing_since, now, LockTimeout)) {
    raise_lock_timeout();
  }
}

void poll(RdmaccHolderWait* wait, const char* relation) {
  const TimestampTz now = GetCurrentTimestamp();
  if (wait->polling_since == 0) wait->polling_since = now;
  const long waited_ms = TimestampDifferenceMilliseconds(wait->polling_since, now);
  if (LockTimeout > 0 && waited_ms >= LockTimeout) raise_lock_timeout();
  if (waited_ms >= DeadlockTimeout) lose(relation);
  pause(Min(kPauseMs + waited_ms / 8, kPauseMsMax));
}

}  // namespace

bool rdmacc_pump_unless_held(bool locks_rows) {
  if (!rdmacc_pump_or_held()) return false;
  const int protocol = bridge_txn_protocol();
  CHECK(protocol >= 0); /* it has read */
  const bool waits = locks_rows || !bridge_locks_what_it_reads(protocol);
  if (waits && bridge_can_prepare(protocol)) return true;
  rdmacc_note_failed_command();
  return false;
}

uint64 rdmacc_waits_for_holders(void) { return waits; }

/* The row was held by the same transaction before and after its session's was asked for: so they
 * belong together. */
void rdmacc_wait_for_holder(RdmaccHolderWait* wait, VirtualTransactionId sharer,
                            const char* relation) {
  const BridgeLockHolder holder = bridge_lock_holder();
  waits++;
  CHECK_FOR_INTERRUPTS();
  if (holder.transaction == 0 && VirtualTransactionIdIsValid(sharer)) {
    wait->polling_since = 0;
    if (++wait->looks > kLooksAtOnce) pause(kPauseMs);
    return await_end(sharer);
  }
  const bool same = wait->transaction != 0 && wait->transaction == holder.transaction;
  wait->transaction = same ? 0 : holder.transaction;
  if (same && VirtualTransactionIdIsValid(wait->session)) {
    wait->polling_since = 0;
    await_end(wait->session);
    return;
  }
  if (!same) wait->session = session_of(holder.worker);
  if (!VirtualTransactionIdIsValid(wait->session)) return poll(wait, relation);
  if (++wait->looks > kLooksAtOnce) pause(kPauseMs);
}

bool rdmacc_shares_rows(void) {
  const int joined = bridge_txn_protocol();
  const int protocol = joined >= 0 ? joined : rdmacc_protocol;
  return protocol < 0 || (!bridge_locks_what_it_reads(protocol) && bridge_can_prepare(protocol));
}

bool rdmacc_locks_at_write(void) {
  return (rdmacc_lock_writes == RDMACC_LOCK_AT_WRITE || lost_to_sharers) && rdmacc_shares_rows();
}

void rdmacc_note_holder(bool held_by_another) {
  SetInvalidVirtualTransactionId(lost_to);
  if (held_by_another) lost_to = session_of(bridge_lock_holder().worker);
  lost_to_unknown = held_by_another && !VirtualTransactionIdIsValid(lost_to);
  /* Locks without a name are not only shared ones: by RPC an owner names no holder. */
  const bool nameless = held_by_another && bridge_lock_holder().transaction == 0;
  if (nameless && rdmacc_others_share_rows()) lost_to_sharers = true;
}

void rdmacc_begin_to_lose(void) { losing_since = GetCurrentTimestamp(); }

/* The session may be in its next transaction by now: what is waited for holds nothing that this one
 * knows of, and so no more than a while. A holder that is not known is met by chance, mostly, and
 * the first losses are not worth a wait; one that is met again and again holds for long. */
void rdmacc_let_holder_pass(int lost) {
  const VirtualTransactionId session = lost_to;
  const bool known = VirtualTransactionIdIsValid(session);
  SetInvalidVirtualTransactionId(lost_to);
  if (!known && lost_to_unknown && lost > kLossesToUnknown) {
    for (long ms = Min(kPauseMsMax << Min(lost - kLossesToUnknown, 8), kUnknownMsMax); ms > 0;
         ms -= kPauseMsMax) {
      end_by_lock_timeout();
      pause(kPauseMsMax);
    }
  }
  lost_to_unknown = false;
  if (!known) return;
  for (long waited_ms = 0; waited_ms < kLetPassMsMax;) {
    if (VirtualXactLock(session, false)) return;
    end_by_lock_timeout();
    const long ms = Min(kPauseMs + waited_ms / 8, kPauseMsMax);
    pause(ms);
    waited_ms += ms;
  }
}

const RdmaccTransactionPart rdmacc_lock_holder_part = {.finish = finish};
