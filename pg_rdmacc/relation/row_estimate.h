/* How many rows a table has, as far as that is known without asking the engine. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "utils/rel.h"

/* Number of live rows as far as PostgreSQL's statistics, and this session's share that they do not
 * have yet, tell. */
double rdmacc_estimated_rows(Relation relation);

/* VACUUM or ANALYZE reports a number that has this session's committed share in it: it must not be
 * added again. */
void rdmacc_rows_reported(Relation relation);
}
