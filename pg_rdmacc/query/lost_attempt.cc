#include "pg_rdmacc/query/lost_attempt.h"

#include "pg_rdmacc/bridge/bridge_stats.h"
#include "pg_rdmacc/server/error.h"
#include "pg_rdmacc/xact/guests.h"
#include "pg_rdmacc/xact/lock_holder.h"
#include "pg_rdmacc/xact/xact.h"

extern "C" {
#include "access/parallel.h"
#include "common/pg_prng.h"
#include "miscadmin.h"
#include "storage/condition_variable.h"
#include "storage/latch.h"
#include "storage/lwlock.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"
}

namespace {

constexpr int kCrowdedAfter = 4;   /* attempts lost before one asks for exclusive gate mode */
constexpr int kShortConflicts = 1; /* with a commit, mostly: that is over before one could wait */
constexpr double kBackOffUs = 200;
constexpr double kBackOffUsMax = 20'000;
constexpr int kMemoryWaitsMax = 2;
constexpr int kMemoryWaitMs = 100; /* the first, the next is four times as long */

/* It makes all other transactions wait: the attempts in between, each time twice as many, do not.
 * The last one does again. */
bool asks_for_exclusive_gate(int lost, int losses_max) {
  return lost >= kCrowdedAfter && ((lost & (lost - 1)) == 0 || lost == losses_max);
}

/* Errors that follow from what was read, or from how the statement was meant. */
bool is_answer(int sqlstate) {
  switch (ERRCODE_TO_CATEGORY(sqlstate)) {
    case ERRCODE_TO_CATEGORY(ERRCODE_T_R_SERIALIZATION_FAILURE):
    case ERRCODE_TO_CATEGORY(ERRCODE_CONNECTION_EXCEPTION):
    case ERRCODE_TO_CATEGORY(ERRCODE_INSUFFICIENT_RESOURCES):
    case ERRCODE_TO_CATEGORY(ERRCODE_OPERATOR_INTERVENTION):
    case ERRCODE_TO_CATEGORY(ERRCODE_SYSTEM_ERROR):
    case ERRCODE_TO_CATEGORY(ERRCODE_INTERNAL_ERROR):
      return false;
    default:
      return true;
  }
}

/* A handler has caught why the transaction cannot go on, and raises something else; or nothing
 * could catch that it went on nevertheless. */
bool follows_doom(void) {
  return rdmacc_doomed_by_conflict() ? is_answer(geterrcode())
                                     : rdmacc_is_doomed() && geterrcode() == ERRCODE_ASSERT_FAILURE;
}

void check_reads(void) {
  /* What other workers have to say would come in between. */
  if (ParallelContextActive()) {
    ConditionVariableCancelSleep(); /* it may lie in their memory */
    AtEOXact_Parallel(false);
  }
  rdmacc_borrow();
  bridge_start_check_reads();
  rdmacc_pump();
  rdmacc_check("could not check what was read", nullptr);
}

}  // namespace

void rdmacc_validate_error(MemoryContext context) {
  const bool doomed = follows_doom();
  const bool based_on_reads = is_answer(geterrcode()) && bridge_txn_active() && !bridge_prepared();
  if (!doomed && !based_on_reads) return;
  CHECK(!bridge_busy()); /* an error ends the command that it comes from */
  const MemoryContext previous = MemoryContextSwitchTo(context);
  ErrorData* error = CopyErrorData();
  FlushErrorState();
  LWLockReleaseAll(); /* the error may have passed some */
  PG_TRY();
  {
    if (doomed) rdmacc_check_doom();
    check_reads();
    ReThrowError(error);
  }
  PG_CATCH();
  { MemoryContextSwitchTo(previous); } /* one of the two, for the caller's PG_CATCH */
  PG_END_TRY();
}

void rdmacc_run_validated(void (*work)(void*), void* argument) {
  const MemoryContext context = CurrentMemoryContext;
  PG_TRY();
  { work(argument); }
  PG_CATCH();
  {
    rdmacc_validate_error(context);
    PG_RE_THROW();
  }
  PG_END_TRY();
}

bool rdmacc_caught_answer(void) { return is_answer(geterrcode()); }

bool rdmacc_caught_cancel(MemoryContext context) {
  if (geterrcode() != ERRCODE_QUERY_CANCELED) return false;
  const MemoryContext previous = MemoryContextSwitchTo(context);
  ErrorData* error = CopyErrorData();
  const bool cancel =
      error->funcname != nullptr && strcmp(error->funcname, "ProcessInterrupts") == 0;
  FreeErrorData(error);
  MemoryContextSwitchTo(previous);
  return cancel;
}

bool rdmacc_caught_conflict(void) {
  const int code = geterrcode();
  /* A worker knows that it has lost, and its leader does not. */
  if (rdmacc_misses_guests()) rdmacc_note_conflict(Max(bridge_txn_protocol(), 0));
  return (code == ERRCODE_T_R_SERIALIZATION_FAILURE || code == ERRCODE_T_R_DEADLOCK_DETECTED) &&
         rdmacc_conflict_protocol() >= 0;
}

void rdmacc_raise_lost(const char* detail) {
  ereport(ERROR, (errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
                  errmsg("could not serialize access among transactions of rdmacc tables"),
                  errdetail_internal("%s", detail), errhint("Run the transaction again.")));
}

void rdmacc_count_loss(bool last) {
  CHECK(rdmacc_conflict_protocol() >= 0);
  bridge_stat_add_retry(rdmacc_conflict_protocol(), last);
}

void rdmacc_back_off(int lost, int losses_max) {
  CHECK(lost > 0);
  if (asks_for_exclusive_gate(lost, losses_max)) rdmacc_ask_for_exclusive_gate();
  const double longest =
      Min(kBackOffUs * static_cast<double>(1 << Min(lost - 1, 16)), kBackOffUsMax);
  if (lost == 1) rdmacc_begin_to_lose();
  if (lost > kShortConflicts) rdmacc_let_holder_pass(lost);
  pg_usleep(static_cast<long>(pg_prng_double(&pg_global_prng_state) * longest));
  CHECK_FOR_INTERRUPTS();
}

bool rdmacc_memory_may_come(int waits) {
  return geterrcode() == ERRCODE_OUT_OF_MEMORY && rdmacc_memory_was_short() &&
         waits < kMemoryWaitsMax;
}

void rdmacc_wait_for_memory(int waits) {
  CHECK(waits < kMemoryWaitsMax);
  const TimestampTz end =
      TimestampTzPlusMilliseconds(GetCurrentTimestamp(), kMemoryWaitMs << (2 * waits));
  for (;;) {
    const long ms = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), end);
    if (ms <= 0) break;
    WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, ms, WAIT_EVENT_PG_SLEEP);
    ResetLatch(MyLatch);
    CHECK_FOR_INTERRUPTS();
  }
}
