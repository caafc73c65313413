/* What looks at a row when it is inserted, or right after that. Where there is nothing, rows of one
 * INSERT may come together. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "nodes/plannodes.h"
#include "utils/rel.h"

/* A unique index besides the primary key, which is read after each row. */
bool rdmacc_inserts_are_read(Relation relation);

/* A trigger for each row, one that is given all new rows, or a constraint with a user's function,
 * which may do anything. */
bool rdmacc_inserts_call_functions(Relation relation);

/* They are read, or call functions. */
bool rdmacc_inserts_are_observed(Relation relation);

/* A plan that only inserts what a query returns, with no functions but those of PostgreSQL's own
 * that make no queries: PlannedStmt.invalItems has the others, those of users by PostgreSQL and the
 * rest by query_functions.h. (Not those of generated columns and indexes, which must not ask
 * for rows.) */
bool rdmacc_plan_only_inserts(const PlannedStmt* plan);
}
