/* Hooks around the executor: what a query leaves behind for its transaction, and where a statement
 * that has lost is run again. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
void rdmacc_executor_init(void);
}
