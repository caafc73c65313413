/* The transaction of a statement that has failed is rolled back, and the statement begins once more
 * in a new one, under the portal that runs it: what a client would do, without the client.
 *
 * It is a whole transaction's abort, as a procedure's ROLLBACK is one, so nothing of the attempt is
 * left that is a transaction's (rows of any table, triggers, snapshots, its locks, a foreign
 * server's work). What outlives it
 * is what outlives transactions: the portal, its plan and parameters, the client's receiver. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "executor/execdesc.h"

/* Brings the new transaction to where the statement begins: StartTransactionCommand(), and in a
 * block what came before the statement. May raise. */
typedef void (*RdmaccBegin)(void);

/* After a PG_CATCH that has flushed the error, in the active portal, which is the client's. Rolls
 * back and calls `begin`. `context` is current again afterwards. */
void rdmacc_begin_transaction_again(RdmaccBegin begin, MemoryContext context);

/* The same for a query that is the only statement of the portal. Afterwards it is about to be
 * started (rdmacc_start_attempt), and the transaction holds the plan's locks. False: another
 * session has changed the tables meanwhile, the plan must not be run again. May be called again
 * when `begin` has raised an error; what was changed since the first call counts. */
bool rdmacc_begin_attempt(QueryDesc* query, MemoryContext context, RdmaccBegin begin);

/* As PostgreSQL's callbacks name a relation that has changed: InvalidOid is any. */
bool rdmacc_plan_uses(const PlannedStmt* plan, Oid relation);

/* The locks under which the plan was made, and what has changed meanwhile is known. */
void rdmacc_lock_relations(const PlannedStmt* plan);

/* Before the first attempt of a query: none of another one is unfinished. */
void rdmacc_forget_attempts(void);

/* The client is to be told an error of an attempt that has not come to the statement: a block
 * begins that fails with it, and that has no savepoint of what the attempt had come to. */
void rdmacc_fail_block(void);

/* Takes a snapshot and starts the executor. */
void rdmacc_start_attempt(QueryDesc* query);

/* In the first attempt, for what is to be done while no executor knows the tables: ends the one
 * that was started and has not run; afterwards starts it anew, under the same snapshot. If an error
 * comes between, the next attempt starts it. */
void rdmacc_end_executor(QueryDesc* query);
void rdmacc_start_executor_again(QueryDesc* query);

void rdmacc_new_attempt_init(void);
}
