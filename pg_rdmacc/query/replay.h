/* Transparent replay: a transaction block of the client's that loses against another transaction is
 * run again by the server, from BEGIN on (rdmacc.replay_limit), so that the client does not see the
 * conflict.
 *
 * The transaction is rolled back as a whole (new_attempt.h) and begins once more; the statements
 * that the client has sent so far (journal.h) are run, and what each tells is compared with what
 * the client was told the first time. If it is the same, the client cannot tell that there was
 * another attempt, and the statement that has lost, or COMMIT, follows. If not, the client gets the
 * conflict as 40001, whose DETAIL names the statement that differs.
 *
 * Serializable it is by itself: what commits is the last attempt, whole, and whatever the client
 * has based its statements on that attempt has read again.
 *
 * Invariant: no row of a statement that is run again has gone to the client (held_rows.h); those of
 * earlier statements are compared and not sent. */
#pragma once
#include "pg_rdmacc/query/journal.h"
#include "pg_rdmacc/query/retry.h"

extern "C" {

/* True while statements of the journal are run again: what comes of that is no statement of the
 * client's. */
bool rdmacc_replaying(void);

/* A query of a block whose journal is open, which is the whole statement
 * (rdmacc_is_whole_statement). `attempt` is called as often as the setting allows. */
void rdmacc_run_in_block(QueryDesc* query, RdmaccAttempt attempt);

/* A step of the block that is no query, and what it tells. */
typedef struct RdmaccStep {
  /* Called with the receiver for its rows, in place of the client's. */
  void (*run)(void* argument, DestReceiver* receiver, QueryCompletion* completion);
  void* argument;
  RdmaccStatementText text;
  ParamListInfo params;
  DestReceiver* receiver; /* the client's */
  QueryCompletion* completion;
} RdmaccStep;
void rdmacc_run_step_in_block(const RdmaccStep* step);

/* Before PostgreSQL's COMMIT: the engine commits where its conflict can still be met. */
void rdmacc_commit_block(void);
}
