/* A background worker that decides this server's transactions in doubt from pg_xact, and then drops
 * engine tables that no catalog knows. It is started when the server starts on nodes that ran
 * before, when a session could not finish what it had prepared, and when a database was dropped; it
 * ends when nothing has been in doubt for a while. */
#include "pg_rdmacc/server/attach.h"
#include "pg_rdmacc/server/fabric.h"
#include "pg_rdmacc/server/shmem.h"
#include "pg_rdmacc/xact/own_tables.h"
#include "pg_rdmacc/xact/two_phase.h"
#include "pg_rdmacc/xact/xact.h"

extern "C" {
#include "access/xlog.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/latch.h"
#include "storage/procarray.h"
#include "tcop/tcopprot.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

PGDLLEXPORT void rdmacc_resolver_main(Datum argument);
}

namespace {

constexpr long kLookMs = 100;
/* Dead sessions are told to node 0 at once here, but only after a while by hosts of their own. */
constexpr int kQuietLocalMs = 3'000;
constexpr int kQuietRemoteMs = 60'000;
constexpr int64 kUnloggedUsMin = 15'000'000;
constexpr int kAskAgainMsMax = 60'000; /* nodes that do not answer for so long end the worker */

/* A session that logs a record commits it, or all processes end and the memory of the nodes with
 * them: one that has ended alone has logged none. Where another has its process id by now, that is
 * clear after a while. */
RdmaccOutcome outcome_of(const BridgeInDoubt& doubt) {
  if ((doubt.xid & RDMACC_DECIDED_BY_RECORD) == 0) return rdmacc_outcome_of(doubt.xid);
  const auto pid = static_cast<int>(doubt.xid & ~RDMACC_DECIDED_BY_RECORD);
  const bool gone = BackendPidGetProc(pid) == nullptr || doubt.age_us > kUnloggedUsMin;
  return gone ? RDMACC_OUTCOME_ABORTED : RDMACC_OUTCOME_OPEN;
}

void decide(const BridgeInDoubt& doubt) {
  CHECK(doubt.system_id == GetSystemIdentifier()); /* pg_xact knows no other server's */
  const RdmaccOutcome outcome = outcome_of(doubt);
  if (outcome != RDMACC_OUTCOME_COMMITTED && outcome != RDMACC_OUTCOME_ABORTED) return;
  const bool commit = outcome == RDMACC_OUTCOME_COMMITTED;
  bridge_start_decide(doubt.system_id, doubt.xid, commit);
  rdmacc_pump();
  if (bridge_error()->code != rdmacc::Code::kOk) return; /* by the next look */
  ereport(LOG, (errmsg("rdmacc transaction " UINT64_FORMAT " was in doubt: it is %s", doubt.xid,
                       commit ? "committed" : "aborted")));
}

/* How many may still have to be decided; -1: node 0 does not say. What only the administrator can
 * decide is not counted. */
int look(void) {
  bridge_start_in_doubt();
  rdmacc_pump();
  if (bridge_error()->code != rdmacc::Code::kOk) return -1;
  const BridgeInDoubt* found = nullptr;
  uint64_t unresolved = 0;
  const size_t count = bridge_in_doubt(&found, &unresolved);
  int left = unresolved > 0 ? 1 : 0;
  auto* ours = static_cast<BridgeInDoubt*>(palloc(sizeof(BridgeInDoubt) * (count + 1)));
  size_t ours_count = 0;
  for (size_t i = 0; i < count; i++) {
    if (found[i].system_id != GetSystemIdentifier()) continue;
    if (outcome_of(found[i]) != RDMACC_OUTCOME_UNKNOWN) left++;
    if (!found[i].decided) ours[ours_count++] = found[i];
  }
  for (size_t i = 0; i < ours_count; i++) decide(ours[i]);
  pfree(ours);
  return left;
}

void work(void) {
  CHECK(rdmacc_control != nullptr);
  const int quiet_ms = rdmacc_nodes_are_remote() ? kQuietRemoteMs : kQuietLocalMs;
  uint32 noted = pg_atomic_read_u32(&rdmacc_control->doubts);
  TimestampTz since = GetCurrentTimestamp(); /* of the last answer, or of the last doubt */
  int left = 0;
  while (true) {
    const int before = left;
    const uint32 now_noted = pg_atomic_read_u32(&rdmacc_control->doubts);
    rdmacc_ensure_attached();
    left = look();
    if (left < 0) rdmacc_attach_again();
    if (left > 0 || now_noted != noted || (left < 0) != (before < 0)) {
      noted = now_noted;
      since = GetCurrentTimestamp();
    }
    const int ms_max = left < 0 ? kAskAgainMsMax : quiet_ms;
    if (left <= 0 && TimestampDifferenceExceeds(since, GetCurrentTimestamp(), ms_max)) break;
    WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, kLookMs, PG_WAIT_EXTENSION);
    ResetLatch(MyLatch);
    CHECK_FOR_INTERRUPTS();
  }
  if (left < 0) return;
  rdmacc_drop_orphans();
  /* What was noted meanwhile keeps the supervisor starting it. */
  pg_atomic_compare_exchange_u32(&rdmacc_control->doubts, &noted, 0);
}

}  // namespace

void rdmacc_resolver_main(Datum) {
  pqsignal(SIGTERM, die);
  BackgroundWorkerUnblockSignals();
  BackgroundWorkerInitializeConnection(nullptr, nullptr, 0);
  pgstat_report_activity(STATE_RUNNING, "decides transactions in doubt");
  work();
}
