/* Functions, and code of DO, whose effects no ROLLBACK takes back, and that matter when they come
 * twice: a block that has called one is not run again. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "nodes/parsenodes.h"

/* The language of a DO may reach beyond the server. */
bool rdmacc_code_may_reach_outside(const DoStmt* statement);

void rdmacc_lasting_effects_init(void);
}
