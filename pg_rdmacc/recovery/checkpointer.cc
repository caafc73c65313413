#include "pg_rdmacc/recovery/checkpointer.h"

#include "pg_rdmacc/recovery/backup_watch.h"
#include "pg_rdmacc/recovery/checkpoint.h"
#include "pg_rdmacc/recovery/follower.h"
#include "pg_rdmacc/recovery/recover.h"
#include "pg_rdmacc/recovery/replay.h"
#include "pg_rdmacc/recovery/status.h"
#include "pg_rdmacc/recovery/wal_slot.h"
#include "pg_rdmacc/server/attach.h"
#include "pg_rdmacc/server/shmem.h"
#include "pg_rdmacc/server/supervisor.h"
#include "pg_rdmacc/wal/commit_log.h"

extern "C" {
#include <sys/stat.h>

#include "access/xlog.h"
#include "common/file_perm.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "storage/sinvaladt.h"
#include "utils/guc.h"
#include "utils/timestamp.h"

PGDLLEXPORT void rdmacc_checkpointer_main(Datum argument);
}

namespace {

constexpr long kStepMs = 20;
constexpr int kPauseAfterFailureMs = 5000;
constexpr int kPauseAfterFailedRecoveryMs = 10'000; /* it may take long, and fails again */
constexpr int kSessionsMsMax = 5000;
constexpr int kOwnProcesses = 2; /* this one and the supervisor */

Manifest last;
uint32 changed_since;
bool at_work; /* on what sessions may wait for */

/* PostgreSQL writes no checkpoint record while this process holds it back: that of rows is made
 * before, so that rows never need older WAL than the rest of the server does, and every base backup
 * begins with a checkpoint of rows that is as new as its own. What its checkpointer waits for is a
 * virtual transaction, so that a new one, now and then, lets it go on (access/xlog.c,
 * GetVirtualXIDsDelayingChkpt()). */
void hold_back_checkpoints(void) {
  MyProc->delayChkptFlags |= DELAY_CHKPT_COMPLETE;
  MyProc->lxid = GetNextLocalTransactionId();
  pg_memory_barrier();
}

bool holds_back_checkpoints(void) { return (MyProc->delayChkptFlags & DELAY_CHKPT_COMPLETE) != 0; }

/* Sessions that have asked are told that it was not made. */
void refuse_checkpoint(void) {
  const uint64 requested = pg_atomic_read_u64(&rdmacc_durability_status->requested);
  pg_atomic_fetch_add_u64(&rdmacc_durability_status->failures, 1);
  pg_atomic_write_u64(&rdmacc_durability_status->answered, requested);
}

void leave(int code, Datum) {
  const uint32 state = pg_atomic_read_u32(&rdmacc_control->recovering);
  if (state == RDMACC_FOLLOWING) { /* sessions wait for the next one */
    pg_atomic_write_u32(&rdmacc_control->recovering, RDMACC_RECOVERING);
  } else if (state != RDMACC_RECOVERED && code != 0 && !ShutdownRequestPending) {
    pg_atomic_write_u32(&rdmacc_control->recovering, RDMACC_RECOVERY_FAILED);
  }
  if (at_work) refuse_checkpoint();
  pg_atomic_write_u32(&rdmacc_control->checkpointer_pid, 0);
}

/* False, and said in the log, when it could not be made now. `of_standby`: nullptr elsewhere. */
bool make_checkpoint(const RdmaccStandbyCheckpoint* of_standby) {
  const uint64 requested = pg_atomic_read_u64(&rdmacc_durability_status->requested);
  at_work = true;
  pgstat_report_activity(STATE_RUNNING, "writes a checkpoint of rows");
  const bool made = of_standby != nullptr
                        ? rdmacc_checkpoint_of_standby(&last, &changed_since, of_standby)
                        : rdmacc_checkpoint(&last, &changed_since);
  if (made) {
    rdmacc_wal_slot_hold(last.redo); /* from the first one on */
    rdmacc_wal_slot_advance(last.redo);
    pg_atomic_write_u64(&rdmacc_durability_status->kept_from, last.redo);
    if (!rdmacc_backup_runs()) rdmacc_manifest_remove_older(&last);
  } else {
    pg_atomic_fetch_add_u64(&rdmacc_durability_status->failures, 1);
  }
  pg_atomic_write_u64(&rdmacc_durability_status->answered, requested);
  pgstat_report_activity(STATE_IDLE, nullptr);
  at_work = false;
  return made;
}

bool is_asked(void) {
  return pg_atomic_read_u64(&rdmacc_durability_status->requested) !=
         pg_atomic_read_u64(&rdmacc_durability_status->answered);
}

bool is_due(TimestampTz since) {
  return TimestampDifferenceExceeds(since, GetCurrentTimestamp(),
                                    rdmacc_checkpoint_timeout_s * 1000) &&
         rdmacc_log_any_changed_since(changed_since);
}

bool failed; /* the last one that was tried */

/* One that could not be made is tried again after a pause. */
void checkpoint_if_due(const RdmaccStandbyCheckpoint* of_standby) {
  static TimestampTz since = 0;
  const TimestampTz now = GetCurrentTimestamp();
  if (since == 0) since = now;
  if (failed && !TimestampDifferenceExceeds(since, now, kPauseAfterFailureMs)) return;
  const bool possible = of_standby == nullptr || of_standby->redo > last.redo;
  const bool due = possible && (GetRedoRecPtr() > last.redo || is_due(since));
  if (!due && !is_asked()) return;
  failed = !make_checkpoint(of_standby);
  since = GetCurrentTimestamp();
}

/* One that cannot be made holds PostgreSQL's up no longer: the slot keeps the WAL. */
void step(void) {
  checkpoint_if_due(nullptr);
  if (GetRedoRecPtr() <= last.redo || failed) hold_back_checkpoints();
}

/* Rows that committed to the last are in the last checkpoint, so that the next start replays
 * nothing. If they take their time, it replays them. */
void finish(void) {
  const TimestampTz begin = GetCurrentTimestamp();
  while (CountDBBackends(InvalidOid) > kOwnProcesses &&
         !TimestampDifferenceExceeds(begin, GetCurrentTimestamp(), kSessionsMsMax)) {
    pg_usleep(10 * 1000);
  }
  if (rdmacc_log_any_changed_since(changed_since)) make_checkpoint(nullptr);
}

void sleep_a_step(long timeout_ms = kStepMs) {
  WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, timeout_ms,
            PG_WAIT_EXTENSION);
  ResetLatch(MyLatch);
  CHECK_FOR_INTERRUPTS();
  if (!ConfigReloadPending) return;
  ConfigReloadPending = false;
  ProcessConfigFile(PGC_SIGHUP);
}

void end_if_asked(void) {
  if (ShutdownRequestPending) proc_exit(1); /* the next one begins anew */
}

void pause_after_failure(void) {
  if (pg_atomic_read_u32(&rdmacc_control->recovering) != RDMACC_RECOVERY_FAILED) return;
  const TimestampTz begin = GetCurrentTimestamp();
  while (!TimestampDifferenceExceeds(begin, GetCurrentTimestamp(), kPauseAfterFailedRecoveryMs)) {
    end_if_asked();
    sleep_a_step();
  }
}

/* The next start applies less for it. */
void stop_following_if_asked(void) {
  if (!ShutdownRequestPending) return;
  if (!rdmacc_server_is_stopping()) proc_exit(1);
  RdmaccStandbyCheckpoint here = rdmacc_follow_checkpoint();
  here.apply_more = nullptr;
  make_checkpoint(&here);
  proc_exit(0);
}

/* A standby: until it is promoted, or stops. */
void follow(void) {
  rdmacc_follow_begin();
  rdmacc_recover_to_follow();
  pgstat_report_activity(STATE_IDLE, "applies WAL");
  while (RecoveryInProgress()) {
    stop_following_if_asked();
    const bool more = rdmacc_follow_step();
    const RdmaccStandbyCheckpoint here = rdmacc_follow_checkpoint();
    checkpoint_if_due(&here);
    sleep_a_step(more ? 0 : kStepMs);
  }
  hold_back_checkpoints(); /* before sessions write */
  rdmacc_recover_goes_on();
  rdmacc_follow_end();
}

/* One that has never had rows on disk has none until it is promoted. */
void await_promotion(void) {
  while (RecoveryInProgress()) {
    end_if_asked();
    if (is_asked()) refuse_checkpoint();
    sleep_a_step();
  }
}

void make_folder(void) {
  if (MakePGDirectory(RDMACC_CHECKPOINT_FOLDER) == 0) {
    fsync_fname(".", true);
  } else if (errno != EEXIST) {
    ereport(ERROR, (errcode_for_file_access(),
                    errmsg("could not create directory \"%s\": %m", RDMACC_CHECKPOINT_FOLDER)));
  }
}

/* Of a life of the server: the nodes have all rows, or this process ends. */
void recover(void) {
  pause_after_failure();
  pg_atomic_write_u32(&rdmacc_control->recovering, RDMACC_RECOVERING);
  const bool begun = rdmacc_recover_begin(&last);
  changed_since = RDMACC_FIRST_GENERATION; /* replay has noted what it changed */
  if (RecoveryInProgress()) (begun ? follow : await_promotion)();
  if (!holds_back_checkpoints()) hold_back_checkpoints(); /* once more would let one go */
  if (begun) {
    rdmacc_replay_rest(); /* where a promotion came before it could follow */
    rdmacc_recover_end();
  }
  /* The first of all tells the next start that there are rows on disk. */
  while (last.redo == InvalidXLogRecPtr && !make_checkpoint(nullptr)) {
    end_if_asked();
    sleep_a_step();
  }
  pg_atomic_write_u32(&rdmacc_control->recovering, RDMACC_RECOVERED);
}

}  // namespace

void rdmacc_checkpointer_register(void) {
  CHECK(process_shared_preload_libraries_in_progress);
  if (!rdmacc_rows_are_durable()) return;
  BackgroundWorker worker = {};
  worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
  worker.bgw_start_time = BgWorkerStart_ConsistentState;
  worker.bgw_restart_time = 1;
  strlcpy(worker.bgw_library_name, "pg_rdmacc", sizeof(worker.bgw_library_name));
  strlcpy(worker.bgw_function_name, "rdmacc_checkpointer_main", sizeof(worker.bgw_function_name));
  strlcpy(worker.bgw_name, "rdmacc checkpointer", sizeof(worker.bgw_name));
  strlcpy(worker.bgw_type, "rdmacc checkpointer", sizeof(worker.bgw_type));
  RegisterBackgroundWorker(&worker);
}

void rdmacc_checkpointer_main(Datum) {
  pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
  pqsignal(SIGHUP, SignalHandlerForConfigReload);
  BackgroundWorkerUnblockSignals();
  BackgroundWorkerInitializeConnection(nullptr, nullptr, 0);
  CHECK(rdmacc_control != nullptr && rdmacc_durability_status != nullptr);
  before_shmem_exit(leave, 0);
  pg_atomic_write_u32(&rdmacc_control->checkpointer_pid, static_cast<uint32>(MyProcPid));
  if (!RecoveryInProgress()) hold_back_checkpoints();
  make_folder();
  rdmacc_attach_to_recover();
  while (!rdmacc_nodes_are_up()) {
    end_if_asked();
    sleep_a_step();
  }
  rdmacc_ensure_attached();
  if (rdmacc_rows_are_recovering()) {
    recover();
  } else {
    CHECK(!RecoveryInProgress());
    rdmacc_manifest_read(GetXLogInsertRecPtr(), &last);
    rdmacc_wal_slot_hold(last.redo);
  }
  pg_atomic_write_u64(&rdmacc_durability_status->kept_from, rdmacc_wal_slot_position());
  while (!ShutdownRequestPending) {
    step();
    sleep_a_step();
  }
  if (!rdmacc_server_is_stopping()) proc_exit(1); /* and is started again */
  finish();
  proc_exit(0);
}
