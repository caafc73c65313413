#include "pg_rdmacc/server/standby.h"

#include "pg_rdmacc/server/attach.h"
#include "pg_rdmacc/server/shmem.h"

extern "C" {
#include "access/xlog.h"
#include "access/xlogrecovery.h"
#include "miscadmin.h"
#include "storage/condition_variable.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "utils/wait_event.h"
}

namespace {

constexpr int64 kWaitUsMax = 10'000'000;
constexpr int64 kPausedUsMax = 100'000;
constexpr long kPollMs = 10; /* of what nothing wakes for: another state, a pause */

typedef enum Applied {
  APPLIED,
  NOT_YET,
  PAUSED,      /* nothing is applied while a checkpoint is written */
  STANDS_STILL /* PostgreSQL is in the middle of a record, and all before is applied */
} Applied;

/* It sleeps for some milliseconds where it finds nothing to apply. */
void wake_follower(void) {
  const auto pid = static_cast<int>(pg_atomic_read_u32(&rdmacc_control->checkpointer_pid));
  PGPROC* process = pid != 0 ? BackendPidGetProc(pid) : nullptr;
  if (process != nullptr) SetLatch(&process->procLatch);
}

bool is_applied(XLogRecPtr until) {
  return pg_atomic_read_u64(&rdmacc_control->applied_until) >= until;
}

/* What PostgreSQL is about to replay may be seen before it says that it has. */
struct Wanted {
  XLogRecPtr replayed;  /* when the wait began */
  XLogRecPtr replaying; /* the same, with the record that was being replayed */
};

/* A record that is long in the making may wait for this very session. */
bool stands_still(const Wanted* wanted) {
  return is_applied(wanted->replayed) && GetXLogReplayRecPtr(nullptr) == wanted->replayed;
}

Applied applied(bool standby, const Wanted* wanted) {
  const uint32 state = pg_atomic_read_u32(&rdmacc_control->recovering);
  if (state == RDMACC_RECOVERED) return APPLIED;
  if (state != RDMACC_FOLLOWING || !standby) return NOT_YET;
  if (is_applied(wanted->replaying)) return APPLIED;
  if (stands_still(wanted)) return STANDS_STILL;
  return pg_atomic_read_u32(&rdmacc_control->pauses) != 0 ? PAUSED : NOT_YET;
}

[[noreturn]] void raise_behind(void) {
  if (rdmacc_rows_are_recovering()) {
    ereport(ERROR, (errcode(ERRCODE_CANNOT_CONNECT_NOW),
                    errmsg("the rows of rdmacc tables are being recovered"),
                    errhint("See rdmacc.stat_durability, and the server log.")));
  }
  ereport(ERROR, (errcode(ERRCODE_CANNOT_CONNECT_NOW),
                  errmsg("the rows of rdmacc tables are not as new as this standby's other tables"),
                  errhint("They lag behind its replay of WAL. See rdmacc.stat_durability, and the "
                          "server log.")));
}

/* Of the transaction. */
bool behind;
uint32 follower; /* which of the processes that have followed, as it began */

/* But for APPLIED: for as long as may be; the rows are of one point, too, if of an older one. */
Applied wait(bool standby, bool over_checkpoint) {
  Wanted wanted = {};
  if (standby) {
    wanted.replayed = GetXLogReplayRecPtr(nullptr);
    wanted.replaying = Max(GetCurrentReplayRecPtr(nullptr), wanted.replayed);
  }
  Applied now = applied(standby, &wanted);
  if (now == APPLIED) return now;
  const int64 begin_us = rdmacc_now_us();
  ConditionVariablePrepareToSleep(&rdmacc_control->applied);
  while ((now = applied(standby, &wanted)) != APPLIED) {
    const int64 waited_us = rdmacc_now_us() - begin_us;
    const bool may_end = now == STANDS_STILL || (now == PAUSED && !over_checkpoint);
    if (may_end && waited_us >= kPausedUsMax) break;
    if (waited_us >= kWaitUsMax ||
        pg_atomic_read_u32(&rdmacc_control->recovering) == RDMACC_RECOVERY_FAILED) {
      raise_behind(); /* which ends the sleep, too */
    }
    wake_follower();
    ConditionVariableTimedSleep(&rdmacc_control->applied, kPollMs, PG_WAIT_EXTENSION);
  }
  ConditionVariableCancelSleep();
  return now;
}

}  // namespace

bool rdmacc_on_standby(void) { return RecoveryInProgress() && rdmacc_rows_are_durable(); }

bool rdmacc_has_followed(void) { return pg_atomic_read_u32(&rdmacc_control->followed) != 0; }

void rdmacc_await_applied(bool standby) {
  static bool serves = false; /* a server does not become a standby */
  if (serves) return;
  CHECK(rdmacc_control != nullptr && !bridge_txn_touched());
  follower = pg_atomic_read_u32(&rdmacc_control->followed);
  behind = wait(standby, /*over_checkpoint=*/false) == PAUSED;
  serves = !standby;
}

void rdmacc_await_applied_again(void) {
  if (!RecoveryInProgress() || bridge_txn_touched()) return;
  const bool same = pg_atomic_read_u32(&rdmacc_control->recovering) == RDMACC_FOLLOWING &&
                    pg_atomic_read_u32(&rdmacc_control->followed) == follower;
  if (!same) rdmacc_await_applied(rdmacc_on_standby());
}

bool rdmacc_is_behind(void) { return behind; }

void rdmacc_await_tables(void) { static_cast<void>(wait(true, /*over_checkpoint=*/true)); }
