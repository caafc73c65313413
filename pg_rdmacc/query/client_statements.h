/* Which statements of the client's go into the journal (journal.h), and which cannot be run again:
 * the hook around utility statements. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "executor/execdesc.h"

/* A query that the client's portal runs, but not as a whole statement: of a cursor, of a portal
 * that is asked for some rows at a time, one of several that rules have made. */
void rdmacc_note_partial_query(const QueryDesc* query);

/* A statement of the client's has begun that is no utility statement. */
void rdmacc_note_client_query(void);

/* True while EXPLAIN plans statements, to show them. */
bool rdmacc_explaining(void);

void rdmacc_client_statements_init(void);
}
