/* A statement that the client has sent by itself, outside of a transaction block, and that loses
 * against another transaction is run again (rdmacc.auto_retry), so that the client does not see the
 * conflict. Each attempt is a transaction of its own (new_attempt.h).
 *
 * Invariants:
 * 1. No row of a statement that is run again has gone to the client: they wait (held_rows.h).
 *    NOTICEs have, and what no ROLLBACK takes back (a sequence's number, a session's advisory lock)
 *    happens once more, unless it would meet itself (rdmacc_attempt_stays()).
 * 2. Where the client cannot have more to say in the transaction, the engine commits at the end of
 *    the attempt, so that a conflict that comes up there is met, too. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "access/sdir.h"
#include "executor/execdesc.h"

/* Runs a query to its end: ExecutorRun and ExecutorFinish. */
typedef void (*RdmaccAttempt)(QueryDesc* query);

/* True when ExecutorRun() with these arguments, called by the portal, is all of a statement that
 * the client has sent. */
bool rdmacc_is_whole_statement(const QueryDesc* query, ScanDirection direction, uint64 count);

/* The client's statement, which the active portal runs, is all of its transaction. */
bool rdmacc_is_whole_transaction(void);

/* Of such a query: it is all of its transaction, too, and may be run again. */
bool rdmacc_may_run_again(const QueryDesc* query);

/* Such a query. `attempt` is called as often as the setting allows. */
void rdmacc_run_with_retries(QueryDesc* query, RdmaccAttempt attempt);

/* A function of the attempt under way does what a ROLLBACK leaves and what cannot be done twice: no
 * other attempt follows. */
void rdmacc_attempt_stays(void);

void rdmacc_retry_init(void);
}
