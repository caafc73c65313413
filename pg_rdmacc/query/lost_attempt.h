/* What comes of an attempt that has lost against another transaction, or found no memory, whether a
 * statement is run again (retry.h) or a whole block (replay.h). */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {

/* In a PG_CATCH: the error comes of a conflict of the engine's, and another attempt may do without
 * it. */
bool rdmacc_caught_conflict(void);

/* In a PG_CATCH, of an error that is about to leave the executor: where reads are validated at the
 * end of a transaction, it may come of reads that do not fit together (a division by what has never
 * been zero). They are validated now. If they do not fit, the conflict takes the error's place in
 * the PG_CATCH, and else nothing has changed. So it does where a handler of a function has caught
 * the conflict, and raised something else. `context`: the memory to use. */
void rdmacc_validate_error(MemoryContext context);

/* Does the work; of an error that leaves it, rdmacc_validate_error(). */
void rdmacc_run_validated(void (*work)(void*), void* argument);

/* In a PG_CATCH: the error is what the statement answers, in this database as it is, and no
 * conflict or accident. */
bool rdmacc_caught_answer(void);

/* In a PG_CATCH: the session was asked to cancel, or its time is over. A function may raise the
 * same SQLSTATE itself. `context`: the memory to use. */
bool rdmacc_caught_cancel(MemoryContext context);

/* 40001 for the client, in place of another attempt; `detail` says why. */
[[noreturn]] void rdmacc_raise_lost(const char* detail);

/* For rdmacc.stat_retries. `last`: the client sees it. In the same PG_CATCH. */
void rdmacc_count_loss(bool last);

/* In the transaction of the next attempt, before it does anything: a random pause of up to 20 ms.
 * After 4, 8, 16 losses, and before the last attempt, it asks for exclusive gate mode. */
void rdmacc_back_off(int lost, int losses_max);

/* In a PG_CATCH: a node had no memory for the commit. What rows leave that are gone serves others
 * when all transactions have ended that may know its addresses, and the one that has failed is such
 * a one. `waits`: how often it was waited for, which is done twice at most. */
bool rdmacc_memory_may_come(int waits);

/* In the transaction of the next attempt, likewise: 0.1 s, and the second time 0.4 s. */
void rdmacc_wait_for_memory(int waits);
}
