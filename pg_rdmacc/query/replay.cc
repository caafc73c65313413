#include "pg_rdmacc/query/replay.h"

#include "pg_rdmacc/index/unique_check.h"
#include "pg_rdmacc/query/held_rows.h"
#include "pg_rdmacc/query/kept_owner.h"
#include "pg_rdmacc/query/lost_attempt.h"
#include "pg_rdmacc/query/new_attempt.h"
#include "pg_rdmacc/query/noted_draws.h"
#include "pg_rdmacc/query/sent_statement.h"
#include "pg_rdmacc/server/error.h"
#include "pg_rdmacc/xact/xact.h"

extern "C" {
#include "access/parallel.h"
#include "access/xact.h"
#include "commands/trigger.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "nodes/plannodes.h"
#include "tcop/tcopprot.h"
#include "utils/memutils.h"
#include "utils/portal.h"
}

namespace {

constexpr int kTextShown = 200; /* bytes of a statement in an error */

bool replaying;
int losses;        /* of the statement that is being run, so far */
int lost_protocol; /* the last time */
ErrorData* lost_error;

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
  ereport(ERROR,
          (errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
           errmsg("could not serialize access among transactions of rdmacc tables"),
           errdetail("The block was run again after a conflict, and its statement %d would now "
                     "return something else: %.*s",
                     number, length, sent->text),
           errhint("Run the transaction again.")));
}

/* What it tells, which may be an error. That leaves the subtransaction failed, for the ROLLBACK TO
 * that follows. True when the order of its rows matters. */
bool run_one(const RdmaccSent* sent, RdmaccToldRows* rows) {
  QueryCompletion completion;
  InitializeQueryCompletion(&completion);
  const MemoryContext context = CurrentMemoryContext;
  volatile bool ordered = false;
  PG_TRY();
  {
    ordered = rdmacc_run_sent(sent, &rows->receiver, &completion);
    rows->told.processed = completion.nprocessed;
  }
  PG_CATCH();
  {
    if (!rdmacc_caught_answer()) PG_RE_THROW();
    rows->told.sqlstate = geterrcode();
    MemoryContextSwitchTo(context);
    FlushErrorState();
    if (rows->told.sqlstate == sent->told.sqlstate) AbortCurrentTransaction();
  }
  PG_END_TRY();
  return ordered;
}

void run_again(int index, MemoryContext memory) {
  RdmaccSent* sent = rdmacc_journal_at(index);
  StartTransactionCommand();
  set_time(rdmacc_journal_started_at(), sent->at);
  MemoryContextSwitchTo(memory);
  RdmaccToldRows rows;
  rdmacc_tell_rows(&rows, None_Receiver);
  rdmacc_note_draws_of(sent);
  const bool ordered = run_one(sent, &rows);
  if (!rdmacc_told_the_same(&rows.told, &sent->told, ordered)) raise_difference(index, sent);
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
  CHECK(replaying && losses > 0);
  /* The session ends with the attempt, as one whose transaction the nodes have to resolve: there is
   * no other one. */
  if (ProcDiePending) ReThrowError(lost_error);
  const TimestampTz now = GetCurrentStatementStartTimestamp();
  const TimestampTz begin = GetCurrentTimestamp();
  const CommandDest destination = whereToSendOutput;
  MemoryContext memory =
      AllocSetContextCreate(TopMemoryContext, "rdmacc replay", ALLOCSET_DEFAULT_SIZES);
  volatile int begun = 0;
  PG_TRY();
  {
    whereToSendOutput = DestNone; /* NOTICEs have been sent */
    set_time(rdmacc_journal_started_at(), rdmacc_journal_started_at());
    for (int i = 0; i < rdmacc_journal_count() && rdmacc_journal_at(i)->ended; i++) {
      begun = i + 1;
      run_again(i, memory);
      MemoryContextSwitchTo(TopMemoryContext);
      MemoryContextReset(memory);
      if (i == 0) rdmacc_back_off(losses, rdmacc_replay_limit);
    }
    StartTransactionCommand();
    set_time(rdmacc_journal_started_at(), now);
  }
  PG_FINALLY();
  {
    count_replay(begun, begin);
    whereToSendOutput = destination;
    MemoryContextDelete(memory);
  }
  PG_END_TRY();
}

/* ---- After a loss */

/* In a PG_CATCH. True: the error is flushed, and the block is to be run again. */
bool take_loss(MemoryContext context, bool told_already) {
  if (!rdmacc_caught_conflict() || told_already || !rdmacc_journal_is_open()) return false;
  /* Plans, and what the session knows of the catalog, may rely on what goes with the attempt. */
  if (rdmacc_transaction_wrote_catalog()) return false;
  const bool last = losses >= rdmacc_replay_limit;
  rdmacc_count_loss(last);
  if (last) return false;
  lost_protocol = rdmacc_conflict_protocol();
  losses++;
  MemoryContextSwitchTo(context);
  lost_error = CopyErrorData();
  FlushErrorState();
  return true;
}

/* In a PG_CATCH: an error that was raised while nothing went to the client is raised anew. */
[[noreturn]] void throw_to_client(MemoryContext context) {
  CHECK(!replaying);
  MemoryContextSwitchTo(context);
  ErrorData* error = CopyErrorData();
  FlushErrorState();
  rdmacc_fail_block();
  MemoryContextSwitchTo(context);
  rdmacc_forget_owners();
  ThrowErrorData(error);
  pg_unreachable();
}

[[noreturn]] void raise_changed_tables(void) {
  ereport(ERROR, (errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
                  errmsg("could not serialize access among transactions of rdmacc tables"),
                  errdetail("A table has changed while the block was run again after a conflict."),
                  errhint("Run the transaction again.")));
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
    if (!take_loss(context, false)) throw_to_client(context);
    there = false;
  }
  PG_END_TRY();
  if (!usable) raise_changed_tables();
  return there;
}

/* Runs the block again up to where it lost; the query, if there is one, is to be started anew. */
void come_to(QueryDesc* query, MemoryContext context) {
  while (!try_again(query, context)) {
    CHECK(losses <= rdmacc_replay_limit); /* take_loss() says when it is enough */
  }
}

/* ---- Steps of a block */

/* What the statement tells passes here: held back from the client until it has ended. */
struct Held {
  RdmaccHeldRows rows;
  RdmaccToldRows told;
};

void hold(Held* held, DestReceiver* receiver) {
  rdmacc_hold_rows(&held->rows, receiver, static_cast<Size>(work_mem) * 1024);
  rdmacc_tell_rows(&held->told, &held->rows.receiver);
}

void drop(Held* held) {
  rdmacc_drop_held_rows(&held->rows);
  rdmacc_tell_again(&held->told);
}

void note_end(RdmaccSent* sent, const Held* held, uint64 processed) {
  CHECK(!sent->ended);
  rdmacc_note_draws_of(nullptr);
  sent->told = held->told.told;
  sent->told.processed = processed;
  sent->ended = true;
}

/* In a PG_CATCH, of an error that goes to the client. */
void note_error(RdmaccSent* sent) {
  rdmacc_note_draws_of(nullptr);
  if (!rdmacc_journal_is_open()) return;
  sent->told.sqlstate = geterrcode();
  sent->ended = true;
}

/* False: it has lost, and the error is flushed. */
bool try_query(QueryDesc* query, RdmaccAttempt attempt, Held* held, RdmaccSent* sent) {
  const MemoryContext context = CurrentMemoryContext;
  volatile bool done = true;
  PG_TRY();
  {
    rdmacc_note_draws_of(sent);
    if (query->estate == nullptr) rdmacc_start_attempt(query);
    attempt(query);
  }
  PG_CATCH();
  {
    rdmacc_validate_error(context);
    if (!take_loss(context, held->rows.passing)) {
      note_error(sent);
      PG_RE_THROW();
    }
    done = false;
  }
  PG_END_TRY();
  return done;
}

bool try_step(const RdmaccStep* step, Held* held, RdmaccSent* sent, bool first) {
  const MemoryContext context = CurrentMemoryContext;
  volatile bool done = true;
  PG_TRY();
  {
    rdmacc_note_draws_of(sent);
    if (first) {
      step->run(step->argument, &held->told.receiver, step->completion);
    } else {
      replaying = true;
      rdmacc_run_sent(sent, &held->told.receiver, step->completion);
      replaying = false;
    }
  }
  PG_CATCH();
  {
    replaying = false;
    rdmacc_validate_error(context);
    if (!take_loss(context, held->rows.passing)) {
      note_error(sent);
      PG_RE_THROW();
    }
    done = false;
  }
  PG_END_TRY();
  return done;
}

/* False: it has lost, and the error is flushed. */
bool try_commit(void) {
  const MemoryContext context = CurrentMemoryContext;
  volatile bool done = true;
  PG_TRY();
  {
    /* As at the commit, which is next: so they may fail here, and it may be early. */
    AfterTriggerFireDeferred();
    rdmacc_check_unique(nullptr);
    if (rdmacc_engine_may_commit_early()) rdmacc_commit_engine_early();
    if (rdmacc_engine_may_prepare_early()) rdmacc_prepare_engine_early();
  }
  PG_CATCH();
  {
    rdmacc_validate_error(context);
    if (!take_loss(context, false)) PG_RE_THROW();
    done = false;
  }
  PG_END_TRY();
  return done;
}

}  // namespace

bool rdmacc_replaying(void) { return replaying; }

void rdmacc_run_in_block(QueryDesc* query, RdmaccAttempt attempt) {
  const MemoryContext context = CurrentMemoryContext;
  const PlannedStmt* plan = query->plannedstmt;
  RdmaccSent* sent =
      rdmacc_journal_add({query->sourceText, plan->stmt_location, plan->stmt_len}, query->params);
  if (sent == nullptr) return attempt(query);
  rdmacc_forget_owners();
  Held held;
  hold(&held, query->dest);
  query->dest = &held.told.receiver;
  losses = 0;
  while (!try_query(query, attempt, &held, sent)) {
    drop(&held);
    come_to(query, context);
  }
  CHECK(query->estate != nullptr);
  const uint64 processed = query->estate->es_processed;
  rdmacc_release_held_rows(&held.rows, query->estate->es_query_cxt);
  query->dest = held.rows.real;
  note_end(sent, &held, processed);
}

void rdmacc_run_step_in_block(const RdmaccStep* step) {
  const MemoryContext context = CurrentMemoryContext;
  RdmaccSent* sent = rdmacc_journal_add(step->text, step->params);
  if (sent == nullptr) return step->run(step->argument, step->receiver, step->completion);
  rdmacc_forget_owners();
  Held held;
  hold(&held, step->receiver);
  losses = 0;
  for (bool first = true; !try_step(step, &held, sent, first); first = false) {
    drop(&held);
    come_to(nullptr, context);
  }
  rdmacc_release_held_rows(&held.rows, context);
  note_end(sent, &held, step->completion != nullptr ? step->completion->nprocessed : 0);
}

void rdmacc_commit_block(void) {
  if (!rdmacc_journal_is_whole() || !rdmacc_transaction_used()) return;
  const MemoryContext context = CurrentMemoryContext;
  rdmacc_forget_owners();
  losses = 0;
  PG_TRY();
  {
    while (!try_commit()) come_to(nullptr, context);
  }
  PG_CATCH();
  {
    /* An error of COMMIT ends the block. */
    if (IsTransactionBlock()) EndTransactionBlock(false);
    PG_RE_THROW();
  }
  PG_END_TRY();
  rdmacc_journal_spoil(); /* what follows is PostgreSQL's commit */
}
