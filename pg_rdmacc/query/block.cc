#include "pg_rdmacc/query/block.h"

#include "pg_rdmacc/index/unique_check.h"
#include "pg_rdmacc/query/early_commit.h"
#include "pg_rdmacc/query/held_rows.h"
#include "pg_rdmacc/query/lost_attempt.h"
#include "pg_rdmacc/query/new_attempt.h"
#include "pg_rdmacc/query/noted_draws.h"
#include "pg_rdmacc/query/replay.h"
#include "pg_rdmacc/xact/current_reads.h"
#include "pg_rdmacc/xact/given_numbers.h"
#include "pg_rdmacc/xact/lock_holder.h"
#include "pg_rdmacc/xact/xact.h"

extern "C" {
#include "access/xact.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "nodes/plannodes.h"
}

namespace {

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

/* In a PG_CATCH, of an error that goes to the client. What does not come again, as memory that has
 * run out, has no other attempt; a statement that was cancelled is left out of it. */
void note_error(RdmaccSent* sent, MemoryContext context) {
  rdmacc_note_draws_of(nullptr);
  sent->cancelled = rdmacc_caught_cancel(context);
  if (!rdmacc_caught_answer() && !sent->cancelled) rdmacc_journal_spoil();
  if (!rdmacc_journal_is_open()) return;
  rdmacc_tell_error(&sent->told, context);
  sent->ended = true;
}

/* What a holder has changed, for which the statement has waited, it may have read before. It has
 * not told the client yet. */
void check_after_waits(uint64 before) {
  if (rdmacc_waits_for_holders() != before) rdmacc_check_reads_so_far();
}

/* False: it has lost, and the error is flushed. */
bool try_query(QueryDesc* query, RdmaccAttempt attempt, Held* held, RdmaccSent* sent) {
  const MemoryContext context = CurrentMemoryContext;
  volatile bool done = true;
  PG_TRY();
  {
    rdmacc_note_draws_of(sent);
    const uint64 waits = rdmacc_waits_for_holders();
    if (query->estate == nullptr) rdmacc_start_attempt(query);
    attempt(query);
    check_after_waits(waits);
    rdmacc_check_doom();
    rdmacc_check_numbers();
  }
  PG_CATCH();
  {
    rdmacc_validate_error(context);
    if (!rdmacc_take_loss(context, held->rows.passing)) {
      note_error(sent, context);
      PG_RE_THROW();
    }
    done = false;
  }
  PG_END_TRY();
  return done;
}

struct StepRun {
  const RdmaccStep* step;
  DestReceiver* receiver;
};

void run_step(void* argument) {
  const auto* run = static_cast<StepRun*>(argument);
  run->step->run(run->step->argument, run->receiver, run->step->completion);
}

void run_step_first(const RdmaccStep* step, DestReceiver* receiver, RdmaccSent* sent) {
  StepRun run = {step, receiver};
  if (step->copy == nullptr) return run_step(&run);
  rdmacc_run_copy_from_client(step->copy, sent, run_step, &run);
}

/* False: it has lost, and the error is flushed. */
bool try_step(const RdmaccStep* step, Held* held, RdmaccSent* sent, bool first) {
  const MemoryContext context = CurrentMemoryContext;
  volatile bool done = true;
  PG_TRY();
  {
    /* What a statement alone tells is compared with nothing, and so it draws anew. */
    const bool alone = rdmacc_journal_is_alone();
    DestReceiver* receiver = alone ? &held->rows.receiver : &held->told.receiver;
    if (!alone) rdmacc_note_draws_of(sent);
    const uint64 waits = rdmacc_waits_for_holders();
    if (first) {
      run_step_first(step, receiver, sent);
    } else {
      rdmacc_run_step_again(sent, receiver, step->completion);
    }
    if (alone) {
      rdmacc_end_lone_statement(&held->rows);
    } else {
      check_after_waits(waits);
      rdmacc_check_doom();
      rdmacc_check_numbers();
    }
  }
  PG_CATCH();
  {
    rdmacc_validate_error(context);
    if (!rdmacc_take_loss(context, held->rows.passing)) {
      note_error(sent, context);
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
    rdmacc_check_doom();
    /* As at the commit, which is next: so they may fail here, and it may be early. */
    rdmacc_fire_deferred_triggers();
    rdmacc_check_unique(nullptr);
    rdmacc_check_numbers();
    if (rdmacc_engine_may_commit_early()) rdmacc_commit_engine_early();
    if (rdmacc_engine_may_prepare_early()) rdmacc_prepare_engine_early();
  }
  PG_CATCH();
  {
    rdmacc_validate_error(context);
    if (!rdmacc_take_loss(context, false)) PG_RE_THROW();
    done = false;
  }
  PG_END_TRY();
  return done;
}

void fire_deferred_triggers(void*) { rdmacc_fire_deferred_triggers(); }

/* In a PG_CATCH: an error of COMMIT ends the block. */
[[noreturn]] void fail_commit(void) {
  if (IsTransactionBlock()) EndTransactionBlock(false);
  PG_RE_THROW();
}

}  // namespace

void rdmacc_run_in_block(QueryDesc* query, RdmaccAttempt attempt) {
  const MemoryContext context = CurrentMemoryContext;
  const PlannedStmt* plan = query->plannedstmt;
  RdmaccSent* sent =
      rdmacc_journal_add({query->sourceText, plan->stmt_location, plan->stmt_len}, query->params);
  if (sent == nullptr) return attempt(query);
  Held held;
  hold(&held, query->dest);
  query->dest = &held.told.receiver;
  rdmacc_begin_losses();
  while (!try_query(query, attempt, &held, sent)) {
    drop(&held);
    rdmacc_come_to(query, context);
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
  if (sent == nullptr) {
    StepRun run = {step, step->receiver};
    return rdmacc_run_validated(run_step, &run);
  }
  sent->prepared_at = step->prepared_at;
  Held held;
  hold(&held, step->receiver);
  rdmacc_begin_losses();
  for (bool first = true; !try_step(step, &held, sent, first); first = false) {
    drop(&held);
    rdmacc_come_to(nullptr, context);
  }
  rdmacc_release_held_rows(&held.rows, context);
  note_end(sent, &held, step->completion != nullptr ? step->completion->nprocessed : 0);
}

void rdmacc_run_step_alone(const RdmaccStep* step) {
  rdmacc_journal_begin_alone();
  PG_TRY();
  { rdmacc_run_step_in_block(step); }
  PG_FINALLY();
  { rdmacc_journal_forget(); }
  PG_END_TRY();
}

void rdmacc_come_back_after_cancel(void) {
  if (!rdmacc_doomed_by_cancel() || !rdmacc_journal_is_whole()) return;
  const MemoryContext context = CurrentMemoryContext;
  volatile bool lost = false;
  rdmacc_begin_losses();
  PG_TRY();
  { rdmacc_raise_cancel_as_conflict(); }
  PG_CATCH();
  {
    lost = rdmacc_take_loss(context, false);
    if (!lost) { /* as whatever uses the engine next will tell */
      MemoryContextSwitchTo(context);
      FlushErrorState();
    }
  }
  PG_END_TRY();
  if (lost) rdmacc_come_to(nullptr, context);
}

void rdmacc_check_block(void) {
  PG_TRY();
  {
    rdmacc_run_validated(fire_deferred_triggers, nullptr);
    rdmacc_check_numbers();
  }
  PG_CATCH();
  { fail_commit(); }
  PG_END_TRY();
}

void rdmacc_commit_block(void) {
  if (!rdmacc_journal_is_whole()) return rdmacc_check_block();
  const MemoryContext context = CurrentMemoryContext;
  rdmacc_begin_losses();
  PG_TRY();
  {
    while (!try_commit()) rdmacc_come_to(nullptr, context);
  }
  PG_CATCH();
  { fail_commit(); }
  PG_END_TRY();
  rdmacc_journal_spoil(); /* what follows is PostgreSQL's commit */
}
