#include "pg_rdmacc/xact.h"

#include "pg_rdmacc/ddl.h"
#include "pg_rdmacc/error.h"
#include "pg_rdmacc/handle.h"
#include "pg_rdmacc/supervisor.h"
#include "pg_rdmacc/write_marks.h"

extern "C" {
#include "access/parallel.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "miscadmin.h"
#include "portability/instr_time.h"
#include "replication/logicalworker.h"
#include "storage/ipc.h"
#include "storage/predicate.h"
#include "storage/proc.h"
#include "utils/memutils.h"
#include "utils/wait_event.h"
}

namespace {

constexpr uint64 kWaitUsMax = 10'000;
constexpr int64 kAttachWaitUsMax = 10'000'000;
constexpr int64 kUninterruptedUsMax = 30'000'000;
constexpr int kSavepointsInitial = 16;
constexpr int kForeignWriteNever = 0;

/* One engine savepoint stands for all levels up to `nest` that have no own one below. */
struct Savepoint {
  int nest;
  uint32 level;
};

/* Subtransaction ids from `first` to `last` were rolled back. */
struct AbortedRange {
  SubTransactionId first;
  SubTransactionId last;
};

bool used; /* the engine was entered in this transaction */
bool doomed;
BridgeError doom; /* why */
int doom_protocol;
int foreign_write_nest; /* the lowest level that wrote foreign rows; 0: none did */
bool reattach;          /* a node was lost: attach anew before the next transaction */
bool exit_registered;
uint32 attach_epoch;
uint32 transaction_number = 1;
SubTransactionId newest_subtransaction;

Savepoint* savepoints; /* in TopTransactionContext */
int savepoint_count;
int savepoint_capacity;
AbortedRange* aborted; /* in TopTransactionContext */
int aborted_count;
int aborted_capacity;

int64 now_us(void) {
  instr_time now;
  INSTR_TIME_SET_CURRENT(now);
  return static_cast<int64>(INSTR_TIME_GET_MICROSEC(now));
}

void forget_transaction(void) {
  used = doomed = false;
  foreign_write_nest = kForeignWriteNever;
  savepoints = nullptr;
  savepoint_count = savepoint_capacity = 0;
  aborted = nullptr;
  aborted_count = aborted_capacity = 0;
  newest_subtransaction = InvalidSubTransactionId;
  transaction_number++;
}

void note_doom(void) {
  const BridgeError* error = bridge_error();
  if (error->code == BRIDGE_UNAVAILABLE) reattach = true;
  if (doomed || !rdmacc_error_is_fatal(error->code)) return;
  doomed = true;
  doom = *error;
  doom_protocol = bridge_txn_protocol();
  /* What was raised first said how it ended; a repetition only says that it did. */
  doom.outcome_unknown = false;
}

/* ---- Attaching */

void detach_at_exit(int, Datum) {
  if (!bridge_attached()) return;
  if (bridge_busy()) {
    bridge_cancel();
    rdmacc_pump_uninterrupted();
  }
  if (bridge_txn_active()) {
    bridge_start_abort();
    rdmacc_pump_uninterrupted();
  }
  rdmacc_ddl_finish(false);
  bridge_detach();
}

void wait_for_nodes(int64 deadline_us) {
  if (now_us() >= deadline_us) {
    ereport(ERROR, (errcode(ERRCODE_CANNOT_CONNECT_NOW), errmsg("the rdmacc nodes are not up yet"),
                    errhint("See the server log for what the rdmacc supervisor reports.")));
  }
  CHECK_FOR_INTERRUPTS();
  pg_usleep(20'000);
}

uint64 gate_timeout_us(void) {
  const uint64 gate_ms = static_cast<uint64>(Max(rdmacc_gate_timeout_ms, 0));
  const uint64 lock_ms = static_cast<uint64>(Max(LockTimeout, 0));
  const uint64 ms = lock_ms > 0 && (gate_ms == 0 || lock_ms < gate_ms) ? lock_ms : gate_ms;
  return ms * 1000;
}

/* ---- Savepoints */

template <typename Element>
void reserve(Element** elements, int* capacity, int count) {
  if (count < *capacity) return;
  const int wanted = Max(kSavepointsInitial, *capacity * 2);
  const Size bytes = sizeof(Element) * static_cast<Size>(wanted);
  *elements =
      static_cast<Element*>(*elements == nullptr ? MemoryContextAlloc(TopTransactionContext, bytes)
                                                 : repalloc(*elements, bytes));
  *capacity = wanted;
}

void make_savepoint(void) {
  const int nest = GetCurrentTransactionNestLevel();
  if (nest <= 1) return;
  if (savepoint_count > 0 && savepoints[savepoint_count - 1].nest == nest) return;
  reserve(&savepoints, &savepoint_capacity, savepoint_count);
  savepoints[savepoint_count].nest = nest;
  savepoints[savepoint_count].level = bridge_savepoint();
  savepoint_count++;
}

void subtransaction_committed(int nest) {
  if (foreign_write_nest == nest) foreign_write_nest = nest - 1;
  if (savepoint_count == 0 || savepoints[savepoint_count - 1].nest < nest) return;
  Savepoint* top = &savepoints[savepoint_count - 1];
  const int parent = nest - 1;
  const bool parent_has_own =
      parent <= 1 || (savepoint_count > 1 && savepoints[savepoint_count - 2].nest == parent);
  if (parent_has_own) {
    bridge_release(top->level);
    savepoint_count--;
  } else {
    top->nest = parent;
  }
}

void subtransaction_aborted(int nest, SubTransactionId subtransaction) {
  if (foreign_write_nest >= nest) foreign_write_nest = kForeignWriteNever;
  while (savepoint_count > 0 && savepoints[savepoint_count - 1].nest >= nest) {
    savepoint_count--;
    if (bridge_txn_active()) bridge_rollback_to(savepoints[savepoint_count].level);
  }
  /* An enclosing subtransaction follows the nested ones that it takes with it. */
  while (aborted_count > 0 && aborted[aborted_count - 1].first >= subtransaction) aborted_count--;
  if (aborted_count > 0 && aborted[aborted_count - 1].last + 1 >= subtransaction) {
    aborted[aborted_count - 1].last = newest_subtransaction;
    return;
  }
  reserve(&aborted, &aborted_capacity, aborted_count);
  aborted[aborted_count].first = subtransaction;
  aborted[aborted_count].last = newest_subtransaction;
  aborted_count++;
}

/* ---- The end of the transaction */

void refuse_mixed_writes(void) {
  if (foreign_write_nest == kForeignWriteNever || !bridge_txn_has_writes()) return;
  ereport(ERROR,
          (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
           errmsg("cannot write rows of rdmacc tables and of other tables in one transaction"),
           errhint("Use one transaction for each kind of table.")));
}

void commit_engine(void) {
  if (!bridge_txn_active()) return;
  CHECK_FOR_INTERRUPTS();
  /* PostgreSQL's own serializability check comes after this callback; done here first, so that
   * it does not find a reason to fail once the engine has committed. */
  if (IsolationIsSerializable()) PreCommit_CheckForSerializationFailure();
  const int protocol = bridge_txn_protocol();
  HOLD_INTERRUPTS();
  bridge_start_commit();
  const bool ended = rdmacc_pump_uninterrupted();
  RESUME_INTERRUPTS();
  BridgeError error = *bridge_error();
  if (!ended) {
    error.code = BRIDGE_UNAVAILABLE;
    error.outcome_unknown = true;
  }
  if (error.code == BRIDGE_OK) return;
  note_doom();
  rdmacc_raise(&error, protocol, "could not commit", nullptr);
}

void pre_commit(void) {
  if (doomed) rdmacc_raise(&doom, doom_protocol, "could not commit", nullptr);
  rdmacc_ddl_pre_commit();
  refuse_mixed_writes();
  commit_engine();
}

void pre_prepare(void) {
  if (!used && !rdmacc_ddl_pending()) return;
  ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                  errmsg("cannot PREPARE a transaction that has used rdmacc tables")));
}

void finish(bool committed) {
  if (bridge_attached()) {
    if (bridge_txn_active()) {
      bridge_start_abort();
      rdmacc_pump_uninterrupted();
    }
    rdmacc_ddl_finish(committed);
  }
  rdmacc_ddl_forget();
  rdmacc_handles_forget();
  rdmacc_write_marks_forget();
  forget_transaction();
}

void xact_callback(XactEvent event, void*) {
  switch (event) {
    case XACT_EVENT_PRE_COMMIT:
      pre_commit();
      break;
    case XACT_EVENT_PRE_PREPARE:
      pre_prepare();
      break;
    case XACT_EVENT_COMMIT:
    case XACT_EVENT_ABORT:
    case XACT_EVENT_PREPARE:
      finish(event != XACT_EVENT_ABORT);
      break;
    case XACT_EVENT_PARALLEL_PRE_COMMIT:
    case XACT_EVENT_PARALLEL_COMMIT:
    case XACT_EVENT_PARALLEL_ABORT:
      break;
  }
}

void subxact_callback(SubXactEvent event, SubTransactionId subtransaction, SubTransactionId,
                      void*) {
  const int nest = GetCurrentTransactionNestLevel();
  switch (event) {
    case SUBXACT_EVENT_START_SUB:
      newest_subtransaction = subtransaction;
      break;
    case SUBXACT_EVENT_COMMIT_SUB:
      subtransaction_committed(nest);
      rdmacc_ddl_subtransaction_committed(nest);
      break;
    case SUBXACT_EVENT_ABORT_SUB:
      subtransaction_aborted(nest, subtransaction);
      rdmacc_ddl_subtransaction_aborted(nest);
      break;
    case SUBXACT_EVENT_PRE_COMMIT_SUB:
      break;
  }
}

}  // namespace

void rdmacc_xact_init(void) {
  RegisterXactCallback(xact_callback, nullptr);
  RegisterSubXactCallback(subxact_callback, nullptr);
}

void rdmacc_ensure_attached(void) {
  if (reattach && bridge_attached() && !bridge_txn_active()) bridge_detach();
  if (bridge_attached()) return;
  reattach = false;
  rdmacc_require_preload();
  const char* cluster = rdmacc_cluster_name();
  const int64 deadline_us = now_us() + kAttachWaitUsMax;
  while (!rdmacc_cluster_serving() || !bridge_cluster_exists(cluster)) wait_for_nodes(deadline_us);
  if (!exit_registered) before_shmem_exit(detach_at_exit, 0);
  exit_registered = true;
  const uint64 write_set_bytes_max = static_cast<uint64>(rdmacc_max_write_set_mb) << 20;
  while (!bridge_attach(cluster, static_cast<uint32>(rdmacc_effective_replicas()),
                        write_set_bytes_max)) {
    if (bridge_error()->code != BRIDGE_UNAVAILABLE && bridge_error()->code != BRIDGE_TIMEOUT) {
      rdmacc_check("could not attach to the rdmacc nodes", nullptr);
    }
    wait_for_nodes(deadline_us);
  }
  attach_epoch++;
}

uint32 rdmacc_attach_epoch(void) { return attach_epoch; }

void rdmacc_enter(void) {
  if (doomed) rdmacc_raise(&doom, doom_protocol, "could not go on", nullptr);
  if (bridge_txn_active()) return;
  if (IsParallelWorker()) elog(ERROR, "rdmacc tables cannot be used in a parallel worker");
  if (RecoveryInProgress()) {
    ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                    errmsg("rdmacc tables cannot be used during recovery")));
  }
  if (IsLogicalWorker()) {
    ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                    errmsg("logical replication into rdmacc tables is not supported")));
  }
  rdmacc_ensure_attached();
  const BridgeTxnOptions options = {.protocol = rdmacc_protocol,
                                    .stages = rdmacc_stages_code,
                                    .gate_timeout_us = gate_timeout_us()};
  bridge_begin(&options);
  used = true;
}

void rdmacc_enter_write(CommandId command) {
  rdmacc_enter();
  make_savepoint();
  bridge_set_command(command);
}

bool rdmacc_pump_uninterrupted(void) {
  const int64 deadline_us = now_us() + kUninterruptedUsMax;
  while (!bridge_resume()) {
    if (now_us() > deadline_us) return false;
    bridge_wait(kWaitUsMax);
  }
  return true;
}

void rdmacc_pump(void) {
  const int64 spin_until_us = now_us() + rdmacc_spin_us;
  bool waiting = false;
  while (!bridge_resume()) {
    if (INTERRUPTS_PENDING_CONDITION()) {
      PG_TRY();
      { CHECK_FOR_INTERRUPTS(); }
      PG_CATCH();
      {
        if (waiting) pgstat_report_wait_end();
        bridge_cancel();
        rdmacc_pump_uninterrupted();
        note_doom();
        PG_RE_THROW();
      }
      PG_END_TRY();
    }
    if (!waiting) {
      if (now_us() < spin_until_us) continue;
      pgstat_report_wait_start(PG_WAIT_EXTENSION);
      waiting = true;
    }
    bridge_wait(kWaitUsMax);
  }
  if (waiting) pgstat_report_wait_end();
  if (bridge_error()->code != BRIDGE_OK && bridge_txn_active()) note_doom();
}

void rdmacc_check(const char* action, const char* relation) {
  if (bridge_error()->code == BRIDGE_OK) return;
  const BridgeError error = *bridge_error();
  rdmacc_raise(&error, bridge_txn_protocol(), action, relation);
}

void rdmacc_note_foreign_write(void) {
  const int nest = GetCurrentTransactionNestLevel();
  if (foreign_write_nest == kForeignWriteNever || nest < foreign_write_nest) {
    foreign_write_nest = nest;
  }
}

uint32 rdmacc_transaction_number(void) { return transaction_number; }

int rdmacc_nest_level(void) { return GetCurrentTransactionNestLevel(); }

bool rdmacc_subtransaction_aborted(SubTransactionId subtransaction) {
  int low = 0;
  int high = aborted_count;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (aborted[middle].last < subtransaction) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < aborted_count && aborted[low].first <= subtransaction;
}
