/* DELETE of all rows of a table. Where no other session uses the table, the statement may have it
 * to itself: it counts the rows, and the table gets a new file, as by TRUNCATE; the DELETE then
 * finds no row. Row by row it would lock, log and take each out of every index. Only of a statement
 * that is all of its transaction. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "nodes/plannodes.h"

/* The table, if the statement is such a DELETE and does nothing but remove rows (no RETURNING,
 * triggers or foreign keys that refer to it); otherwise InvalidOid. The plan's locks are taken. */
Oid rdmacc_exclusive_target_of_delete(const PlannedStmt* plan);

/* Gives the table a new file if no other session uses it, or has read it and would rely on that;
 * whether it has. Then `*rows` is how many were deleted. 40001 as a scan of the table. */
bool rdmacc_delete_exclusively(Oid table, uint64* rows);
}
