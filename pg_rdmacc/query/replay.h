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

extern "C" {
#include "executor/execdesc.h"
#include "tcop/cmdtag.h"

/* True while statements of the journal, or a step that has lost, are run again: what comes of that
 * is no statement of the client's. */
bool rdmacc_replaying(void);

/* A statement of the client's begins, or COMMIT. */
void rdmacc_begin_losses(void);

/* In a PG_CATCH. True: it was a conflict, or a node had no memory for the commit; the error is
 * flushed, and the block is to be run again. `told_already`: the client has had rows of the
 * statement. */
bool rdmacc_take_loss(MemoryContext context, bool told_already);

/* At the end of what may have been run again: 40001 if the session, after this attempt, would tell
 * numbers of sequences that another one has drawn (given_numbers.h). */
void rdmacc_check_numbers(void);

/* Runs the block again up to where it lost. The query, if it was one, is to be started anew
 * (rdmacc_start_attempt). Conflicts on the way count like others. */
void rdmacc_come_to(QueryDesc* query, MemoryContext context);

/* Of a statement that is no query: once more, with its rows for the client. */
void rdmacc_run_step_again(RdmaccSent* sent, DestReceiver* receiver, QueryCompletion* completion);
}
