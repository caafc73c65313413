/* The query that the executor runs just now, as far as the access method's callbacks ask for it.
 * executor.cc sets it. */
#pragma once
#include "pg_rdmacc/xact/transaction_part.h"

extern "C" {
#include "executor/execdesc.h"
#include "utils/rel.h"

/* The innermost query that runs; NULL for none. */
const QueryDesc* rdmacc_running_query(void);

/* True when rows that the running query scans in the relation may be updated, deleted or locked
 * by it, so that their handles have to last. */
bool rdmacc_query_needs_handles(Relation relation);

/* True when rows of the relation that the running query passes may be asked for by TID once more:
 * those above, and what a row that is locked late is joined with anew if it has changed since it
 * was scanned (EvalPlanQual), which a scan that does not wait for locks allows. */
bool rdmacc_query_keeps_handles(Relation relation);

/* True when each of these rows is written, if it is at all, before the scan returns the next one:
 * nothing stands between the scan and the UPDATE or DELETE. */
bool rdmacc_query_writes_as_it_scans(void);

/* True while the running query has RETURNING. */
bool rdmacc_query_returns(void);

/* True when the running query may be asked for rows it has passed (a scrollable cursor). */
bool rdmacc_query_scrolls(void);

/* Of what the query writes nothing is seen before it has ended, by itself or by functions that it
 * calls; NULL: none is such a one. The caller says so anew when it has ended. */
void rdmacc_note_unseen_writes(const QueryDesc* query);

/* False while other queries are open besides the running one (cursors, callers of functions), or
 * that one does more than to fill a table which it has made, or than rdmacc_note_unseen_writes()
 * says: they might see rows too soon. */
bool rdmacc_may_show_rows_early(void);

/* True when queries are open besides the one whose executor has started last: cursors that are
 * read, and portals that are bound for later. */
bool rdmacc_other_queries_open(void);

/* Its executor starts, or has ended. Those that an error has ended are forgotten with their
 * subtransaction. */
void rdmacc_query_opened(const QueryDesc* query);
void rdmacc_query_closed(const QueryDesc* query);

/* True for the query of CREATE TABLE AS or REFRESH MATERIALIZED VIEW, but not while a function of
 * it executes a utility statement. */
bool rdmacc_query_fills_new_table(void);

typedef struct RdmaccRunningQuery {
  const QueryDesc* query;
  int utility_depth; /* utility statements that it runs in */
} RdmaccRunningQuery;

/* The query that runs from now on. Returns what ran before, for rdmacc_end_running() at its end. */
RdmaccRunningQuery rdmacc_begin_running(const QueryDesc* query);
void rdmacc_end_running(RdmaccRunningQuery outer);

/* Utility statements within each other: what was before, for rdmacc_end_utility(). */
typedef struct RdmaccUtility {
  int depth;
  bool copies; /* the innermost one is COPY */
} RdmaccUtility;
RdmaccUtility rdmacc_begin_utility(const Node* statement);
void rdmacc_end_utility(RdmaccUtility outer);
bool rdmacc_in_utility(void);

/* True while such a statement other than COPY runs, and none of the queries that it makes. */
bool rdmacc_in_definition(void);

extern const RdmaccTransactionPart rdmacc_running_query_part;
}
