/* Statements and COMMIT of a transaction block that may be run again (replay.h), and utility
 * statements that are a transaction by themselves, as a block of one: what they tell is held back
 * until they have ended, and is noted in the journal. */
#pragma once
#include "pg_rdmacc/query/copied_rows.h"
#include "pg_rdmacc/query/journal.h"
#include "pg_rdmacc/query/retry.h"

extern "C" {

/* A query of a block whose journal is open, which is the whole statement
 * (rdmacc_is_whole_statement). `attempt` is called as often as the setting allows. */
void rdmacc_run_in_block(QueryDesc* query, RdmaccAttempt attempt);

/* A step of the block that is no query, and what it tells. */
typedef struct RdmaccStep {
  /* Called with the receiver for its rows, in place of the client's. */
  void (*run)(void* argument, DestReceiver* receiver, QueryCompletion* completion);
  void* argument;
  const CopyStmt* copy;    /* if it is one of the client's rows, else NULL */
  TimestampTz prepared_at; /* rdmacc_prepared_at() */
  RdmaccStatementText text;
  ParamListInfo params;
  DestReceiver* receiver; /* the client's */
  QueryCompletion* completion;
} RdmaccStep;
void rdmacc_run_step_in_block(const RdmaccStep* step);

/* The same of one that is a transaction by itself (rdmacc.auto_retry), with a journal of its own:
 * the engine's commit is part of it, if it may be early (early_commit.h). */
void rdmacc_run_step_alone(const RdmaccStep* step);

/* Before ROLLBACK TO: where a statement that was cancelled has ended the engine's transaction, the
 * block is run again up to there. */
void rdmacc_come_back_after_cancel(void);

/* Before PostgreSQL's PREPARE TRANSACTION, or its COMMIT of a block that is not run again from here
 * on: deferred triggers, whose errors are validated, and rdmacc_check_numbers(). An error ends the
 * block. */
void rdmacc_check_block(void);

/* Before PostgreSQL's COMMIT: the engine commits where its conflict can still be met. */
void rdmacc_commit_block(void);
}
