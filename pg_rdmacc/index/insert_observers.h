/* What looks at a row when it is inserted, or right after that. Where there is nothing, rows of one
 * INSERT may come together. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "nodes/plannodes.h"
#include "utils/rel.h"

/* A unique index besides the primary key, which is read after each row. */
bool rdmacc_inserts_are_read(Relation relation);

/* That, a trigger for each row, one that is given all new rows, or a constraint, whose functions
 * may do anything. */
bool rdmacc_inserts_are_observed(Relation relation);

/* A plan that only inserts what a query returns, with no functions but PostgreSQL's own, which make
 * no queries. (It does not name those of generated columns, indexes and domains, which must not ask
 * for rows.) */
bool rdmacc_plan_only_inserts(const PlannedStmt* plan);
}
