/* COPY, or INSERT of what a query returns, into a table that is empty. Where no other session uses
 * the table, the statement may have it to itself until it has ended: the table gets a new file, as
 * by TRUNCATE, and into that the nodes put rows in place (row_load.h), which takes a third of the
 * time and a tenth of the session's memory (docs/commits.md). Only of a statement that is all of
 * its transaction. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "nodes/parsenodes.h"
#include "nodes/plannodes.h"

/* So much data is worth a new file: two milliseconds. */
#define RDMACC_EXCLUSIVE_LOAD_BYTES (64 * 1024)

/* The table, if COPY FROM may do so, as far as that is known without a look at its rows; otherwise
 * InvalidOid. Locks the table as COPY does. */
Oid rdmacc_exclusive_target_of_copy(const CopyStmt* copy);

/* Whether it reads so much of a file: as far as the user may know. */
bool rdmacc_copies_large_file(const CopyStmt* copy);

/* The same of an INSERT, whose locks are taken and whose executor has not been started. Not where
 * it reads rdmacc tables: it may lose then, with all that it has loaded. */
Oid rdmacc_exclusive_target_of_insert(const PlannedStmt* plan);

/* Gives the table a new file, if it is empty and no other session uses it, or has read it and would
 * rely on that; whether it has. */
bool rdmacc_load_exclusively(Oid table);
}
