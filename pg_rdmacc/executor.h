/* What the table callbacks have to know of the query that calls them, and what a transaction has to
 * know of the queries that it ran: hooks around the executor. */
#pragma once
#include "pg_rdmacc/pg_rdmacc.h"

extern "C" {
#include "executor/execdesc.h"
#include "utils/rel.h"

/* True when rows that the running query scans in the relation may be updated, deleted or locked
 * by it, so that their handles have to last. */
bool rdmacc_query_needs_handles(Relation relation);

/* The innermost query that runs; NULL for none. */
const QueryDesc* rdmacc_running_query(void);

/* True while the running query has RETURNING. */
bool rdmacc_query_returns(void);

/* True when the running query may be asked for rows it has passed (a scrollable cursor). */
bool rdmacc_query_scrolls(void);

void rdmacc_executor_init(void);
}
