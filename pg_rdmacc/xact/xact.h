/* The engine's transaction inside PostgreSQL's: begun at the first access. One that alone has
 * written is committed in PRE_COMMIT; where PostgreSQL has changes of its own, rows or catalog, it
 * is prepared there and committed once PostgreSQL's commit record has decided (two_phase.h).
 *
 * Invariants:
 * 1. While the engine's transaction is doomed (doom.h) every access raises an error, also after
 *    ROLLBACK TO: the engine cannot go on.
 * 2. No bridge command is under way when control returns to PostgreSQL, by error or not. */
#pragma once
#include "pg_rdmacc/xact/doom.h"
#include "pg_rdmacc/xact/pump.h"

extern "C" {

void rdmacc_xact_init(void);

/* Before every engine access: attaches, begins the engine's transaction if none is active. */
void rdmacc_enter(void);

/* Before every write: rdmacc_enter(), a savepoint if this subtransaction has none, the command. */
void rdmacc_enter_write(CommandId command);

/* The last bridge command has failed: what that means for the transaction. */
void rdmacc_note_failed_command(void);

/* This (sub)transaction changed rows of a table that the engine does not keep. */
void rdmacc_note_foreign_write(void);

/* The transaction has used the engine, perhaps without success. */
bool rdmacc_transaction_used(void);

/* Before the first access: the transaction waits until it has the gate in exclusive mode, so that
 * it does not lose again. */
void rdmacc_ask_for_exclusive_gate(void);

/* True when the engine decides alone, and PostgreSQL's commit has nothing left to do that may fail,
 * as far as the transaction's tables and statements tell. */
bool rdmacc_engine_may_commit_early(void);

/* Commits the engine's part before PostgreSQL begins to; raises what comes in its way. If it has
 * written, no interrupt is served until PostgreSQL's commit has ended, too. */
void rdmacc_commit_engine_early(void);

/* The same of a transaction that has written other tables, too, whose commit record decides: the
 * engine's part is prepared before PostgreSQL begins to commit, and decided as ever. Raises what
 * comes in its way. */
bool rdmacc_engine_may_prepare_early(void);
void rdmacc_prepare_engine_early(void);

/* This transaction has used a table of another server. */
void rdmacc_note_foreign_server(void);

/* This transaction has run a utility statement. */
void rdmacc_note_utility(void);

/* It changed the catalog, or something else that PostgreSQL's commit makes last. */
void rdmacc_note_catalog_write(void);

bool rdmacc_transaction_wrote_catalog(void);

/* This transaction has dropped a database: its engine tables go once it is committed. */
void rdmacc_note_dropped_database(void);

/* Counts this backend's transactions that have ended. */
uint32 rdmacc_transaction_number(void);
}
