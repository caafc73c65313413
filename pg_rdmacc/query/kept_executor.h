/* What the executor has made of a plan (nodes, expressions, slots), kept in the session for the
 * next execution of the same plan, which is a third of what a small statement takes. Only for plans
 * that prepared statements keep (the generic ones, not those for one set of parameters), and that
 * are keepable (keepable_plan.h); rdmacc.kept_executors says of how many plans.
 *
 * A kept executor refers to relations, indexes and tuple descriptors of the relcache without
 * holding them, and is given up as soon as the relcache or a function has changed in any way, or
 * its plan is freed. While it is in use it belongs to its query as any other does, and an error
 * takes it away with that. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "executor/execdesc.h"

/* Starts the query as ExecutorStart() does. False: there is none; nothing has been done. */
bool rdmacc_take_kept_executor(QueryDesc* query, int flags);

/* ExecutorStart() is about to start the query: may what it makes be kept? */
void rdmacc_consider_keeping(QueryDesc* query, int flags);

/* Ends the query as ExecutorEnd() does. False: it is not to be kept; nothing has been done. */
bool rdmacc_keep_executor(QueryDesc* query);

/* Before any hook of this module's is set: those of others want to see each start and end. */
void rdmacc_kept_executor_init(void);
}
