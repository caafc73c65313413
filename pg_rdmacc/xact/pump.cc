#include "pg_rdmacc/xact/pump.h"

#include <signal.h>

#include "pg_rdmacc/server/attach.h"
#include "pg_rdmacc/server/short_worker.h"
#include "pg_rdmacc/xact/gate_deadlock.h"
#include "pg_rdmacc/xact/xact.h"

extern "C" {
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "utils/wait_event.h"
}

namespace {

constexpr uint64 kWaitUsMax = 10'000;
constexpr int64 kStandstillUsMax = 30'000'000;
constexpr int64 kUnwantedUsMax = 1'000'000; /* the same, of what is not wanted any more */

bool cancelled; /* an interrupt has ended a command of this transaction */

/* Without what a node was asked for there is no way back: the process has to end, and what it holds
 * is found by the nodes then. */
bool give_up(void) {
  const BridgeError error = {.code = rdmacc::Code::kUnavailable,
                             .reason = "",
                             .message = "",
                             .outcome_unknown = false,
                             .held_by_another = false};
  rdmacc_doom(&error);
  bridge_detach_uncleanly();
  rdmacc_note_doubt();
  if (proc_exit_inprogress) return false;
  ereport(WARNING, (errcode(ERRCODE_CONNECTION_EXCEPTION),
                    errmsg("the session ends, since an rdmacc node does not answer"),
                    errdetail("Only that node can take back what it was asked for."),
                    errhint("rdmacc.stat_nodes shows which nodes answer.")));
  kill(MyProcPid, SIGTERM);
  return false;
}

/* A commit of many rows takes its time; only one that does not get on is given up. */
bool pump_to_the_end(bool may_be_cancelled) {
  int64 since_us = rdmacc_now_us();
  uint64_t progress = bridge_progress();
  while (!bridge_resume()) {
    if (const uint64_t now_at = bridge_progress(); now_at != progress) {
      progress = now_at;
      since_us = rdmacc_now_us();
    }
    const bool unwanted = may_be_cancelled && (cancelled || QueryCancelPending || ProcDiePending ||
                                               proc_exit_inprogress);
    if (rdmacc_now_us() - since_us > (unwanted ? kUnwantedUsMax : kStandstillUsMax)) {
      return give_up();
    }
    bridge_wait(kWaitUsMax);
  }
  return true;
}

void end_command(bool waiting) {
  if (waiting) pgstat_report_wait_end();
  cancelled = true;
  bridge_cancel(true);
  if (!pump_to_the_end(true)) return;
  rdmacc_note_failed_command();
  /* The command was done before it noticed: the transaction goes on, below a savepoint. */
  if (rdmacc_is_doomed()) return;
  bridge_cancel(false);
  cancelled = false;
}

/* While a command is under way: what may raise an error, before which the command is ended. */
void serve(void (*step)(void), bool waiting) {
  PG_TRY();
  { step(); }
  PG_CATCH();
  {
    end_command(waiting);
    PG_RE_THROW();
  }
  PG_END_TRY();
}

void serve_interrupts(void) { CHECK_FOR_INTERRUPTS(); }

}  // namespace

void rdmacc_pump_forget(void) { cancelled = false; }

bool rdmacc_pump_uninterrupted(void) { return pump_to_the_end(true); }
bool rdmacc_pump_committed(void) { return pump_to_the_end(false); }

namespace {

int64 deadlock_timeout_us(void) { return int64{DeadlockTimeout} * 1000; }

void run(void) {
  if (!bridge_busy()) return; /* it was done as it was started */
  const int64 begin_us = rdmacc_now_us();
  const int64 spin_until_us = begin_us + rdmacc_spin_us;
  bool waiting = false;
  int64 next_check_us = begin_us + deadlock_timeout_us();
  while (!bridge_resume()) {
    if (INTERRUPTS_PENDING_CONDITION()) serve(serve_interrupts, waiting);
    if (waiting && rdmacc_now_us() >= next_check_us) {
      next_check_us = rdmacc_now_us() + deadlock_timeout_us();
      serve(rdmacc_check_gate_deadlock, waiting);
    }
    if (!waiting) {
      if (rdmacc_now_us() < spin_until_us) continue;
      pgstat_report_wait_start(PG_WAIT_EXTENSION);
      waiting = true;
    }
    bridge_wait(kWaitUsMax);
  }
  if (waiting) pgstat_report_wait_end();
}

void note_failure(void) {
  if (bridge_error()->code != rdmacc::Code::kOk && bridge_txn_active())
    rdmacc_note_failed_command();
}

}  // namespace

void rdmacc_pump(void) {
  run();
  note_failure();
}

void rdmacc_pump_whole(void) {
  if (!pump_to_the_end(true)) {
    CHECK_FOR_INTERRUPTS(); /* the session's end */
    elog(ERROR, "the rdmacc nodes do not answer");
  }
  note_failure();
}

bool rdmacc_pump_or_held(void) {
  run();
  if (bridge_error()->code == rdmacc::Code::kAborted && bridge_error()->held_by_another) {
    return true;
  }
  note_failure();
  return false;
}
