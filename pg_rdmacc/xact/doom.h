/* A transaction that cannot go on in the engine: a conflict, a cancel, a lost node. Handlers of
 * functions may catch the error that says so, and cannot make the transaction any better. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {

/* The transaction cannot go on, for this reason. The first one counts. */
void rdmacc_doom(const BridgeError* error);
bool rdmacc_is_doomed(void);
/* By a conflict or a lost node: another attempt may do without it. */
bool rdmacc_doomed_by_conflict(void);

/* By a cancel, which may be within a savepoint: what came before that is still PostgreSQL's to go
 * on with, and the engine could do it again. The second raises a conflict. */
bool rdmacc_doomed_by_cancel(void);
[[noreturn]] void rdmacc_raise_cancel_as_conflict(void);

/* Raises why the transaction cannot commit, if something has caught that before: a function. */
void rdmacc_check_doom(void);

/* Before an access. Within a statement it raises P0004, which WHEN OTHERS does not catch, so that a
 * handler that tries again and again has an end. Where it leaves the outermost statement the reason
 * takes its place (rdmacc_validate_error). */
void rdmacc_refuse_if_doomed(void);

/* The transaction has ended. */
void rdmacc_forget_doom(void);
}
