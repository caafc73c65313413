/* Functions, and code of DO, whose effects no ROLLBACK takes back, and that matter when they come
 * twice: a block that has called one is not run again. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "nodes/parsenodes.h"

/* A function of PostgreSQL's that ends a journal where an executor is made that calls it; no
 * executor with one may be used twice, then. */
bool rdmacc_function_spoils_journals(Oid function);

/* The language of a DO may reach beyond the server. */
bool rdmacc_code_may_reach_outside(const DoStmt* statement);

void rdmacc_lasting_effects_init(void);
}
