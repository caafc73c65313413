/* The engine's commit at the end of a statement that is a transaction by itself, and not in
 * PostgreSQL's commit, which follows: where its conflict can still be met by running the statement
 * again. */
#pragma once
#include "pg_rdmacc/query/held_rows.h"

extern "C" {

/* Before PostgreSQL's commit does, so that they may fail, and their errors are validated (by the
 * caller: handlers of triggers do not catch what that makes of them). */
void rdmacc_fire_deferred_triggers(void);
bool rdmacc_fires_deferred_triggers(void);

/* The statement has run, and `held` has its rows. What was deferred to the commit is done; the
 * engine commits if nothing that is still to come can fail. Raises what these raise, a conflict
 * among it. */
void rdmacc_end_lone_statement(const RdmaccHeldRows* held);
}
