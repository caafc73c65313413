#include "pg_rdmacc/query/replay.h"

#include "pg_rdmacc/bridge/bridge_stats.h"
#include "pg_rdmacc/query/kept_owner.h"
#include "pg_rdmacc/query/lost_attempt.h"
#include "pg_rdmacc/query/new_attempt.h"
#include "pg_rdmacc/query/noted_draws.h"
#include "pg_rdmacc/query/sent_statement.h"
#include "pg_rdmacc/server/error.h"
#include "pg_rdmacc/xact/current_reads.h"
#include "pg_rdmacc/xact/given_numbers.h"
#include "pg_rdmacc/xact/held_cursors.h"
#include "pg_rdmacc/xact/xact.h"

extern "C" {
#include "access/parallel.h"
#include "access/xact.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "tcop/pquery.h"
#include "tcop/tcopprot.h"
#include "utils/memutils.h"
#include "utils/portal.h"
#include "utils/resowner.h"
}

namespace {

constexpr int kTextShown = 200; /* bytes of a statement in an error */

bool replaying;
int losses;        /* of the statement that is being run, so far */
int memory_waits;  /* likewise, where a node had no memory for the commit */
bool memory_short; /* the last time, and no conflict */
int lost_protocol; /* likewise */
ErrorData* lost_error;

int losses_max(void) { return rdmacc_journal_is_alone() ? rdmacc_auto_retry : rdmacc_replay_limit; }

void pause_after_loss(void) {
  CHECK(losses + memory_waits > 0);
  if (memory_short) {
    rdmacc_wait_for_memory(memory_waits - 1);
  } else {
    rdmacc_back_off(losses, losses_max());
  }
}

/* ---- Running the journal again */

/* As if that time were now, for now() and the like: the client may have been told. Only a parallel
 * worker is given the times of another transaction. */
void set_time(TimestampTz transaction, TimestampTz statement) {
  CHECK(!IsParallelWorker());
  ParallelWorkerNumber = 0;
  SetParallelStartTimestamps(transaction, statement);
  ParallelWorkerNumber = -1;
}

[[noreturn]] void raise_difference(int number, const RdmaccSent* sent) {
  CHECK(number > 0); /* BEGIN tells nothing */
  bridge_stat_add_replay(lost_protocol, 0, 0, true);
  const int length = pg_mbcliplen(sent->text, static_cast<int>(strlen(sent->text)), kTextShown);
  rdmacc_raise_lost(
      psprintf("The block was run again after a conflict, and its statement %d would "
               "now return something else: %.*s",
               number, length, sent->text));
}

/* What it tells, which may be an error. That leaves the subtransaction failed, for the ROLLBACK TO
 * that follows. True when the order of its rows matters. */
bool run_one(RdmaccSent* sent, RdmaccToldRows* rows) {
  if (sent->cancelled) {
    rows->told = sent->told;
    rdmacc_give_numbers_of(sent);
    AbortCurrentTransaction();
    return false;
  }
  QueryCompletion completion;
  InitializeQueryCompletion(&completion);
  const MemoryContext context = CurrentMemoryContext;
  volatile bool ordered = false;
  PG_TRY();
  {
    ordered = rdmacc_run_sent(sent, nullptr, &rows->receiver, &completion);
    rows->told.processed = completion.nprocessed;
  }
  PG_CATCH();
  {
    rdmacc_validate_error(context);
    if (!rdmacc_caught_answer()) PG_RE_THROW();
    rdmacc_tell_error(&rows->told, context);
    MemoryContextSwitchTo(context);
    FlushErrorState();
    if (rdmacc_told_the_same(&rows->told, &sent->told, false)) AbortCurrentTransaction();
  }
  PG_END_TRY();
  return ordered;
}

/* A transaction that began on a standby only reads, and does so to its end, whenever the standby is
 * promoted. */
void start_command(void) {
  const bool begins = !IsTransactionOrTransactionBlock();
  StartTransactionCommand();
  if (begins && rdmacc_journal_started_in_recovery()) XactReadOnly = true;
}

void run_again(int index, MemoryContext memory) {
  RdmaccSent* sent = rdmacc_journal_at(index);
  start_command();
  set_time(rdmacc_journal_started_at(), sent->at);
  MemoryContextSwitchTo(memory);
  RdmaccToldRows rows;
  rdmacc_tell_rows(&rows, None_Receiver);
  rdmacc_note_draws_of(sent);
  const bool ordered = run_one(sent, &rows);
  if (!rdmacc_told_the_same(&rows.told, &sent->told, ordered)) {
    /* Of reads that do not fit together nothing follows: it is another conflict. */
    if (rows.told.sqlstate == 0) rdmacc_check_reads_so_far();
    raise_difference(index, sent);
  }
  CHECK_FOR_INTERRUPTS();
  if (rows.told.sqlstate == 0) CommitTransactionCommand();
  CHECK(IsTransactionBlock()); /* BEGIN came first, and the block has not ended */
}

/* For rdmacc.stat_retries, whatever has come of it. */
void count_replay(int statements, TimestampTz begin) {
  const TimestampTz us = Max(GetCurrentTimestamp() - begin, 0);
  bridge_stat_add_replay(lost_protocol, static_cast<uint64>(statements), static_cast<uint64>(us),
                         false);
}

/* A new transaction, up to the statement that has lost. */
void run_journal_again(void) {
  CHECK(replaying);
  /* The session ends with the attempt, as one whose transaction the nodes have to resolve: there is
   * no other one. */
  if (ProcDiePending) ReThrowError(lost_error);
  const TimestampTz now = GetCurrentStatementStartTimestamp();
  const TimestampTz begin = GetCurrentTimestamp();
  const CommandDest destination = whereToSendOutput;
  MemoryContext memory =
      AllocSetContextCreate(TopMemoryContext, "rdmacc replay", ALLOCSET_DEFAULT_SIZES);
  volatile int begun = 0;
  rdmacc_numbers_begin_attempt();
  PG_TRY();
  {
    whereToSendOutput = DestNone; /* NOTICEs have been sent */
    set_time(rdmacc_journal_started_at(), rdmacc_journal_started_at());
    for (int i = 0; i < rdmacc_journal_count() && rdmacc_journal_at(i)->ended; i++) {
      begun = i + 1;
      run_again(i, memory);
      MemoryContextSwitchTo(TopMemoryContext);
      MemoryContextReset(memory);
      if (i == 0) pause_after_loss();
    }
    start_command();
    if (begun == 0) pause_after_loss();
    set_time(rdmacc_journal_started_at(), now);
  }
  PG_FINALLY();
  {
    count_replay(begun, begin);
    whereToSendOutput = destination;
    if (CurrentMemoryContext == memory) MemoryContextSwitchTo(TopMemoryContext); /* by an error */
    MemoryContextDelete(memory);
  }
  PG_END_TRY();
}

/* In a PG_CATCH: an error that was raised while nothing went to the client is raised anew. */
[[noreturn]] void throw_to_client(MemoryContext context) {
  CHECK(!replaying);
  MemoryContextSwitchTo(context);
  ErrorData* error = CopyErrorData();
  FlushErrorState();
  if (!rdmacc_journal_is_alone()) rdmacc_fail_block();
  MemoryContextSwitchTo(context);
  rdmacc_forget_owners();
  ThrowErrorData(error);
  pg_unreachable();
}

/* False: another conflict has come up on the way. */
bool try_again(QueryDesc* query, MemoryContext context) {
  CHECK(!replaying && lost_error != nullptr);
  volatile bool there = true;
  volatile bool usable = true;
  PG_TRY();
  {
    replaying = true;
    if (query != nullptr) {
      usable = rdmacc_begin_attempt(query, context, run_journal_again);
    } else {
      rdmacc_begin_transaction_again(run_journal_again, context);
    }
    replaying = false;
    rdmacc_note_draws_of(nullptr);
  }
  PG_CATCH();
  {
    replaying = false;
    rdmacc_note_draws_of(nullptr);
    if (!rdmacc_take_loss(context, false)) throw_to_client(context);
    there = false;
  }
  PG_END_TRY();
  if (!usable) {
    rdmacc_raise_lost("A table has changed while the block was run again after a conflict.");
  }
  return there;
}

}  // namespace

void rdmacc_check_numbers(void) {
  if (rdmacc_numbers_are_settled()) return;
  CHECK(!rdmacc_journal_is_alone());
  bridge_stat_add_replay(lost_protocol, 0, 0, true);
  rdmacc_raise_lost(
      "The block was run again after a conflict, and has drawn other numbers of sequences.");
}

bool rdmacc_replaying(void) { return replaying; }

void rdmacc_begin_losses(void) {
  losses = memory_waits = 0;
  rdmacc_forget_attempts();
  rdmacc_forget_owners();
}

bool rdmacc_take_loss(MemoryContext context, bool told_already) {
  const bool conflict = rdmacc_caught_conflict();
  const bool memory = !conflict && rdmacc_memory_may_come(memory_waits);
  if (!(conflict || memory) || told_already || !rdmacc_journal_is_open()) return false;
  if (rdmacc_cursors_have_moved()) return false;
  /* Plans, and what the session knows of the catalog, may rely on what goes with the attempt. */
  if (rdmacc_transaction_wrote_catalog()) return false;
  if (conflict) {
    const bool last = losses >= losses_max();
    rdmacc_count_loss(last);
    if (last) return false;
    losses++;
  } else {
    memory_waits++;
  }
  memory_short = memory;
  lost_protocol = conflict ? rdmacc_conflict_protocol() : Max(bridge_txn_protocol(), 0);
  MemoryContextSwitchTo(context);
  lost_error = CopyErrorData();
  FlushErrorState();
  return true;
}

void rdmacc_come_to(QueryDesc* query, MemoryContext context) {
  while (!try_again(query, context)) {
    CHECK(losses <= losses_max()); /* rdmacc_take_loss() says when it is enough */
  }
}

void rdmacc_run_step_again(RdmaccSent* sent, DestReceiver* receiver, QueryCompletion* completion) {
  CHECK(!replaying && !sent->ended);
  PG_TRY();
  {
    replaying = true;
    /* The portal's owner goes where a procedure commits. */
    if (rdmacc_journal_is_alone()) CurrentResourceOwner = TopTransactionResourceOwner;
    rdmacc_run_sent(sent, ActivePortal, receiver, completion);
  }
  PG_FINALLY();
  {
    replaying = false;
    if (ActivePortal->resowner != nullptr) CurrentResourceOwner = ActivePortal->resowner;
  }
  PG_END_TRY();
}
