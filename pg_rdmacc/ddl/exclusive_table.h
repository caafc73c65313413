/* A statement that has a table to itself until its transaction ends, and gives it a new file, as
 * TRUNCATE does: loads into empty tables (exclusive_load.h), DELETE of all rows
 * (exclusive_delete.h). Only of a statement that is all of its transaction. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "utils/rel.h"

/* Whether the running transaction may have any table so. */
bool rdmacc_may_have_tables_alone(void);

/* Whether the user may have this one, as far as that does not depend on its rows. */
bool rdmacc_may_have_alone(Relation relation);

/* Whether it may begin anew, now that no other session uses it: what its rows tell, and a look at
 * what was known before the lock. */
typedef bool (*RdmaccMayBeginAnew)(Relation relation, void* context);

/* Takes the table's lock if it is there to be had at once, and lets the table begin anew, with all
 * of its indexes, if `may` says so and no other transaction would rely on what it has read of it.
 * False: nothing has changed, and the lock is given back. */
bool rdmacc_begin_anew(Oid table, RdmaccMayBeginAnew may, void* context);
}
