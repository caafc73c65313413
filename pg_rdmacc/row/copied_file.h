/* How many rows a COPY from a file is going to bring: known before the first of them, so that the
 * index of the table that it fills can grow once, and ahead of them. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "nodes/parsenodes.h"

/* Each COPY that is about to run. */
void rdmacc_note_copy(const CopyStmt* statement);

/* About how many rows the COPY into this relation has, of which some take so many bytes; 0: that is
 * not known, as of rows that a client sends. */
uint64 rdmacc_rows_of_copy(Oid relation, uint64 rows, uint64 bytes);
}
