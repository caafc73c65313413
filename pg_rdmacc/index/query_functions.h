/* Functions of PostgreSQL's that make queries, as query_to_xml() and ts_stat() do, or that check
 * values of a user's domain, whose condition may make some. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "nodes/parsenodes.h"
#include "nodes/plannodes.h"

/* The first one in an INSERT, whose rows may be put where its queries would see them; otherwise
 * InvalidOid. Before it is planned. */
Oid rdmacc_function_with_queries(Query* query);

/* The same of an expression as the catalog has it (a CHECK), and of users' functions. */
bool rdmacc_expression_makes_queries(Node* expression);

/* The plan depends on the function, if there is one, as PostgreSQL notes it of all that
 * are users' (PlannedStmt.invalItems). */
void rdmacc_note_function(PlannedStmt* plan, Oid function);
}
