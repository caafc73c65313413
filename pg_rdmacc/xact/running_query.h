/* The query that the executor runs just now, as far as the access method's callbacks ask for it.
 * executor.cc sets it. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "executor/execdesc.h"
#include "utils/rel.h"

/* The innermost query that runs; NULL for none. */
const QueryDesc* rdmacc_running_query(void);

/* True when rows that the running query scans in the relation may be updated, deleted or locked
 * by it, so that their handles have to last. */
bool rdmacc_query_needs_handles(Relation relation);

/* True while the running query has RETURNING. */
bool rdmacc_query_returns(void);

/* True when the running query may be asked for rows it has passed (a scrollable cursor). */
bool rdmacc_query_scrolls(void);

/* False while other queries are open besides the running one (cursors, callers of functions), or
 * that one is not only filling a table which it has made: they might see rows too soon. */
bool rdmacc_may_show_rows_early(void);

/* Its executor has started, or ended. Those that an error has ended are forgotten with the
 * transaction. */
void rdmacc_query_opened(void);
void rdmacc_query_closed(void);
void rdmacc_forget_queries(void);

/* True for the query of CREATE TABLE AS or REFRESH MATERIALIZED VIEW. */
bool rdmacc_query_fills_new_table(void);

/* The query that runs from now on; NULL for none. Whichever ran before is set again at its end. */
void rdmacc_set_running_query(const QueryDesc* query);
}
