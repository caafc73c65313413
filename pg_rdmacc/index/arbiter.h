/* The search of ON CONFLICT for a row in its way. PostgreSQL looks again at what a lossy scan has
 * found, and takes NULLs for different from each other there, also where the index does not. */
#pragma once
#include "pg_rdmacc/index/index_entries.h"

extern "C" {
#include "access/relscan.h"

/* Is it such a search, and one in which NULLs are equal? Then its rows have to be looked at here,
 * where entries are hashes of the columns. */
bool rdmacc_arbiter_wants_nulls(const IndexScanDescData* scan);

/* Has the row what the scan's keys want? */
bool rdmacc_arbiter_takes(const IndexScanDescData* scan, const RdmaccIndex* index,
                          const BridgeRow* row);
}
