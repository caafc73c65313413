#include "pg_rdmacc/xact/xact.h"

#include <signal.h>

#include "pg_rdmacc/server/attach.h"
#include "pg_rdmacc/server/error.h"
#include "pg_rdmacc/server/short_worker.h"
#include "pg_rdmacc/server/standby.h"
#include "pg_rdmacc/wal/commit_log.h"
#include "pg_rdmacc/xact/current_reads.h"
#include "pg_rdmacc/xact/entry.h"
#include "pg_rdmacc/xact/exported_snapshot.h"
#include "pg_rdmacc/xact/guests.h"
#include "pg_rdmacc/xact/lock_holder.h"
#include "pg_rdmacc/xact/newer_tables.h"
#include "pg_rdmacc/xact/pump.h"
#include "pg_rdmacc/xact/savepoint.h"
#include "pg_rdmacc/xact/transaction_part.h"
#include "pg_rdmacc/xact/two_phase.h"

extern "C" {
#include "access/parallel.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "miscadmin.h"
#include "storage/condition_variable.h"
#include "storage/ipc.h"
#include "storage/predicate.h"
#include "storage/proc.h"
#include "utils/resowner.h"
#include "utils/timeout.h"
#include "utils/wait_event.h"
}

namespace {

constexpr int kNever = 0;

bool database_dropped;
bool used;                    /* the engine was entered in this transaction */
bool used_servers;            /* and other servers, which have their own commits */
bool ran_utility;             /* and statements that may have left work for the commit */
bool asks_for_exclusive_gate; /* for its engine transaction, which is not begun yet */
bool committed_early;         /* the engine's part has written; interrupts are held until the end */
int foreign_write_nest;       /* the lowest level that wrote foreign rows */
int catalog_write_nest;       /* and that changed the catalog */
uint32 transaction_number = 1;

void note_nest(int* lowest) {
  const int nest = GetCurrentTransactionNestLevel();
  CHECK(nest > kNever); /* outside of a transaction it would be the next one's */
  if (*lowest == kNever || nest < *lowest) *lowest = nest;
}

/* ---- The end of the transaction */

/* Does PostgreSQL's commit record decide? What only draws from sequences does not need it. Catalog
 * changes under a protocol that cannot prepare are committed in two steps. */
bool needs_two_phases(void) {
  if (!bridge_txn_has_writes()) return false;
  if (foreign_write_nest != kNever) return true;
  return (catalog_write_nest != kNever || rdmacc_parts_pending()) &&
         bridge_can_prepare(bridge_txn_protocol());
}

void refuse_mixed_writes(void) {
  if (rdmacc_mixed_transactions || foreign_write_nest == kNever || !bridge_txn_has_writes()) return;
  ereport(ERROR,
          (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
           errmsg("cannot write rows of rdmacc tables and of other tables in one transaction"),
           errdetail("rdmacc.mixed_transactions is off."),
           errhint("Use one transaction for each kind of table.")));
}

[[noreturn]] void raise_failed_commit(BridgeError error, int protocol) {
  if (error.code == rdmacc::Code::kUnavailable) rdmacc_attach_again();
  if (error.code == rdmacc::Code::kNoSpace) rdmacc_note_memory_short();
  rdmacc_note_holder(error.held_by_another);
  rdmacc_doom(&error);
  rdmacc_raise(&error, protocol, "could not commit", nullptr);
}

void commit_or_prepare(bool (*step)(void)) {
  CHECK_FOR_INTERRUPTS();
  const int protocol = Max(bridge_txn_protocol(), 0);
  if (step()) return;
  BridgeError error = *bridge_error();
  if (error.code == rdmacc::Code::kOk) error.code = rdmacc::Code::kUnavailable;
  raise_failed_commit(error, protocol);
}

void prepare_engine(void) {
  rdmacc_borrow();
  rdmacc_check_current_reads();
  commit_or_prepare(rdmacc_prepare_engine);
}

void commit_engine(void) {
  if (!bridge_txn_active()) return;
  CHECK_FOR_INTERRUPTS();
  rdmacc_borrow();
  rdmacc_check_current_reads();
  /* PostgreSQL's own serializability check comes after this callback; done here first, so that
   * it does not find a reason to fail once the engine has committed. */
  if (IsolationIsSerializable()) PreCommit_CheckForSerializationFailure();
  if (rdmacc_rows_are_durable() && bridge_txn_has_writes()) {
    commit_or_prepare(rdmacc_commit_engine_by_record);
    CHECK(!bridge_txn_active());
    return;
  }
  const int protocol = Max(bridge_txn_protocol(), 0);
  HOLD_INTERRUPTS();
  bridge_start_commit();
  const bool ended = rdmacc_pump_uninterrupted();
  RESUME_INTERRUPTS();
  BridgeError error = *bridge_error();
  if (!ended) {
    error.code = rdmacc::Code::kUnavailable;
    error.outcome_unknown = true;
  }
  CHECK(!bridge_busy());
  if (error.code != rdmacc::Code::kOk) raise_failed_commit(error, protocol);
  CHECK(!bridge_txn_active());
  rdmacc_log_wait_for_what_was_read();
}

void pre_commit(void) {
  rdmacc_check_doom();
  rdmacc_parts_before_commit();
  if (bridge_prepared()) return; /* early */
  refuse_mixed_writes();
  if (needs_two_phases()) {
    prepare_engine();
  } else {
    commit_engine();
  }
}

void pre_prepare(void) {
  if (!used && !rdmacc_parts_pending()) return;
  ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                  errmsg("cannot PREPARE a transaction that has used rdmacc tables")));
}

/* Cancels that were held back come too late, and so does a timeout: PostgreSQL disarms its timer
 * before its own commit. An error has let them through already. */
void end_early_commit(bool committed) {
  if (!committed_early) return;
  committed_early = false;
  if (committed) {
    CHECK(InterruptHoldoffCount > 1); /* PostgreSQL's commit holds them, too */
    RESUME_INTERRUPTS();
    /* A session that waits for its client passes over a cancel, but not over a timeout: the next
     * statement would be told of it. */
    if (QueryCancelPending && get_timeout_indicator(STATEMENT_TIMEOUT, true)) {
      QueryCancelPending = false;
    }
    return;
  }
  ereport(WARNING, (errmsg("what the statement wrote to rdmacc tables is committed"),
                    errdetail("It failed after that.")));
}

void forget_transaction(void) {
  CHECK(!bridge_txn_has_writes() && !bridge_busy()); /* what was written is decided */
  rdmacc_log_installed();
  used_servers = ran_utility = asks_for_exclusive_gate = false;
  used = database_dropped = false;
  foreign_write_nest = catalog_write_nest = kNever;
  transaction_number++;
  rdmacc_pump_forget();
  rdmacc_savepoints_forget();
  rdmacc_forget_conflict();
  rdmacc_forget_doom();
  rdmacc_forget_snapshot();
  rdmacc_forget_current_reads();
  rdmacc_parts_forget();
}

/* At exit: ends the transaction, drops what it created. PostgreSQL would end its workers later. */
void abandon_transaction(void) {
  if (proc_exit_inprogress && ParallelContextActive()) {
    ConditionVariableCancelSleep(); /* it may lie in their memory */
    AtEOXact_Parallel(false);
  }
  if (bridge_busy()) {
    bridge_cancel(true);
    rdmacc_pump_uninterrupted();
  }
  if (bridge_txn_active()) {
    const bool prepared = bridge_prepared();
    bridge_start_abort();
    const bool ended = rdmacc_pump_uninterrupted();
    /* A node that was not told keeps it for prepared. */
    if (prepared && (!ended || bridge_error()->outcome_unknown)) rdmacc_note_doubt();
    /* Memory has run out on the way: what is left of it ends with this place in the cluster. */
    if (bridge_txn_active()) rdmacc_leave_cluster();
  }
  rdmacc_log_installed(); /* what was logged of it counts for nothing */
  rdmacc_parts_finish(false);
}

/* A node was away for so long that only resolution ends the transaction: when this process has. */
void end_for_resolution(void) {
  ereport(WARNING,
          (errmsg("the nodes decide on the outcome of the transaction when this session has ended"),
           errhint("The session ends, and its rows stay locked until then.")));
  bridge_detach_uncleanly();
  rdmacc_note_doubt();
  if (!proc_exit_inprogress) kill(MyProcPid, SIGTERM);
}

void finish(bool committed) {
  if (bridge_attached()) {
    if (!committed) abandon_transaction();
    if (committed && bridge_prepared()) rdmacc_commit_prepared_engine();
    rdmacc_parts_finish(committed);
    if (bridge_left_to_resolution()) end_for_resolution();
  }
  if (committed && database_dropped) rdmacc_note_doubt();
  rdmacc_forget_guests(committed); /* what they have lent was read until here */
  forget_transaction();
}

/* Of a parallel worker: a guest's, or nothing. */
void finish_worker(void) {
  if (bridge_attached()) abandon_transaction();
  rdmacc_forget_guests(false);
  forget_transaction();
}

/* As far as the transaction's tables and statements tell, PostgreSQL's commit has nothing left to
 * do that may fail, or that may still use the engine. */
bool may_end_early(void) {
  return bridge_txn_active() && !rdmacc_is_doomed() && !used_servers && !ran_utility &&
         catalog_write_nest == kNever && !rdmacc_parts_pending();
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
      end_early_commit(event != XACT_EVENT_ABORT);
      break;
    case XACT_EVENT_PARALLEL_PRE_COMMIT:
      rdmacc_lend();
      break;
    case XACT_EVENT_PARALLEL_COMMIT:
    case XACT_EVENT_PARALLEL_ABORT:
      finish_worker();
      break;
  }
}

void subxact_callback(SubXactEvent event, SubTransactionId subtransaction, SubTransactionId,
                      void*) {
  const int nest = GetCurrentTransactionNestLevel();
  CHECK(nest > 1);
  switch (event) {
    case SUBXACT_EVENT_START_SUB:
      rdmacc_savepoint_started(subtransaction);
      break;
    case SUBXACT_EVENT_COMMIT_SUB:
      if (foreign_write_nest == nest) foreign_write_nest = nest - 1;
      if (catalog_write_nest == nest) catalog_write_nest = nest - 1;
      rdmacc_savepoint_committed(nest);
      rdmacc_parts_subtransaction_committed(nest);
      break;
    case SUBXACT_EVENT_ABORT_SUB:
      if (foreign_write_nest >= nest) foreign_write_nest = kNever;
      if (catalog_write_nest >= nest) catalog_write_nest = kNever;
      rdmacc_savepoint_aborted(nest, subtransaction);
      rdmacc_parts_subtransaction_aborted(nest);
      break;
    case SUBXACT_EVENT_PRE_COMMIT_SUB:
      break;
  }
}

/* Scans that an error has passed by. A cursor's owner outlives the subtransactions that fetch from
 * it, and so do its scans. */
void owner_released(ResourceReleasePhase phase, bool committed, bool, void*) {
  if (phase != RESOURCE_RELEASE_BEFORE_LOCKS) return;
  CHECK(CurrentResourceOwner != nullptr);
  bridge_scans_free_of(CurrentResourceOwner);
  rdmacc_parts_owner_released(CurrentResourceOwner, committed);
}

}  // namespace

void rdmacc_xact_init(void) {
  rdmacc_at_exit(abandon_transaction);
  RegisterXactCallback(xact_callback, nullptr);
  RegisterSubXactCallback(subxact_callback, nullptr);
  RegisterResourceReleaseCallback(owner_released, nullptr);
}

void rdmacc_note_failed_command(void) {
  const BridgeError* error = bridge_error();
  if (error->code == rdmacc::Code::kUnavailable) rdmacc_attach_again();
  /* What it has written, and of an index perhaps a part, goes with the savepoint if it has one. */
  const bool half_done = error->code == rdmacc::Code::kWriteSetFull && !rdmacc_savepoint_is_here();
  if (half_done || rdmacc_error_is_fatal(error->code)) {
    rdmacc_note_holder(error->held_by_another);
    rdmacc_doom(error);
  }
}

void rdmacc_enter(void) {
  if (committed_early || bridge_prepared()) {
    elog(ERROR, "rdmacc tables are used after their transaction's commit");
  }
  rdmacc_refuse_if_doomed();
  if (bridge_txn_active()) return rdmacc_await_applied_again();
  if (IsParallelWorker() && rdmacc_be_guest()) return;
  rdmacc_check_entry();
  rdmacc_check_snapshot();
  rdmacc_ensure_attached();
  const bool standby = rdmacc_on_standby();
  const int protocol = rdmacc_protocol_to_begin(standby);
  rdmacc_note_begin(protocol);
  rdmacc_await_applied(standby);
  /* What PostgreSQL lets wait until nothing can make it fail, may wait here, too. */
  const bool deferrable = IsolationIsSerializable() && XactReadOnly && XactDeferrable;
  /* Rows as they are stored are read under any protocol: none is written meanwhile. */
  const bool as_stored = rdmacc_reads_as_stored();
  const BridgeTxnOptions options = {
      .protocol = as_stored ? -1 : protocol,
      .stages = rdmacc_stages_code,
      .auto_stages = rdmacc_stages_auto,
      .lock_mode = static_cast<rdmacc::LockMode>(rdmacc_lock_mode),
      .gate_timeout_us = rdmacc_gate_timeout_us(),
      .exclusive_gate = !as_stored && (deferrable || asks_for_exclusive_gate),
      .needs_current_reads = rdmacc_needs_current_reads()};
  bridge_begin(&options);
  used = true;
}

void rdmacc_enter_write(CommandId command) {
  CHECK(command != InvalidCommandId);
  PreventCommandDuringRecovery("a write to rdmacc tables");
  if (!rdmacc_is_doomed()) rdmacc_await_leave_to_write();
  rdmacc_invite_no_guests();
  rdmacc_enter();
  rdmacc_savepoint_before_write();
  bridge_set_command(command);
}

void rdmacc_note_foreign_write(void) { note_nest(&foreign_write_nest); }

bool rdmacc_transaction_used(void) { return used; }

void rdmacc_ask_for_exclusive_gate(void) { asks_for_exclusive_gate = true; }

bool rdmacc_engine_may_commit_early(void) {
  return may_end_early() && !(foreign_write_nest != kNever && bridge_txn_has_writes());
}

bool rdmacc_engine_may_prepare_early(void) {
  return may_end_early() && foreign_write_nest != kNever && bridge_txn_has_writes() &&
         !bridge_prepared() && rdmacc_mixed_transactions &&
         bridge_can_prepare(bridge_txn_protocol());
}

void rdmacc_prepare_engine_early(void) {
  CHECK(rdmacc_engine_may_prepare_early());
  prepare_engine();
  CHECK_FOR_INTERRUPTS(); /* a timeout that came meanwhile; nothing is decided yet */
}

void rdmacc_commit_engine_early(void) {
  CHECK(rdmacc_engine_may_commit_early() && !committed_early);
  const bool wrote = bridge_txn_has_writes();
  commit_engine();
  if (wrote) {
    HOLD_INTERRUPTS();
    committed_early = true;
  } else {
    CHECK_FOR_INTERRUPTS(); /* nothing is decided */
  }
}

void rdmacc_note_foreign_server(void) { used_servers = true; }
void rdmacc_note_utility(void) { ran_utility = true; }
void rdmacc_note_catalog_write(void) { note_nest(&catalog_write_nest); }
bool rdmacc_transaction_wrote_catalog(void) { return catalog_write_nest != kNever; }
void rdmacc_note_dropped_database(void) { database_dropped = true; }

uint32 rdmacc_transaction_number(void) { return transaction_number; }
