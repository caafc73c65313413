/* Savepoints of the engine's transaction, made at the first write of a subtransaction, and what is
 * known of subtransactions that were rolled back. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {

/* Before a write: makes a savepoint unless the current subtransaction has one. */
void rdmacc_savepoint_before_write(void);

/* True when the current subtransaction has one: all that it has written, and index changes that
 * wait, are younger. */
bool rdmacc_savepoint_is_here(void);

/* True when a write made under `subtransaction` has since been rolled back to a savepoint. */
bool rdmacc_subtransaction_aborted(SubTransactionId subtransaction);

/* ---- For xact.cc */
void rdmacc_savepoint_started(SubTransactionId subtransaction);
void rdmacc_savepoint_committed(int nest);
void rdmacc_savepoint_aborted(int nest, SubTransactionId subtransaction);
void rdmacc_savepoints_forget(void);
}
