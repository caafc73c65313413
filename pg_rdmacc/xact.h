/* The engine's transaction inside PostgreSQL's: begun at the first access, committed in
 * PRE_COMMIT, savepoints made at the first write of a subtransaction.
 *
 * Invariants:
 * 1. While the engine's transaction is doomed (a conflict, a cancel, a lost node) every access
 *    raises the same error again, also after ROLLBACK TO: the engine cannot go on.
 * 2. No bridge command is under way when control returns to PostgreSQL, by error or not. */
#pragma once
#include "pg_rdmacc/pg_rdmacc.h"

extern "C" {

/* Before every engine access: attaches, begins the engine's transaction if none is active. */
void rdmacc_enter(void);

/* Before every write: rdmacc_enter(), a savepoint if this subtransaction has none, the command. */
void rdmacc_enter_write(CommandId command);

/* Runs the command under way with interrupts held: for the commit round and for clean-up. Ends
 * after a bounded time; false when the command did not end. */
bool rdmacc_pump_uninterrupted(void);

/* This (sub)transaction changed rows of a table that the engine does not keep. */
void rdmacc_note_foreign_write(void);

/* Changes whenever this backend has attached anew: ids of tables may be others since. */
uint32 rdmacc_attach_epoch(void);

/* Counts this backend's transactions that have ended. */
uint32 rdmacc_transaction_number(void);

/* How deep the current subtransaction is nested, as DDL bookkeeping counts it. */
int rdmacc_nest_level(void);

/* True when a write made under `subtransaction` has since been rolled back to a savepoint. */
bool rdmacc_subtransaction_aborted(SubTransactionId subtransaction);
}
