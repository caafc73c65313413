/* Queries that may have the table which they change to themselves: loads of an empty table, DELETE
 * of all rows. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "executor/execdesc.h"

/* At the beginning of an attempt of a query that is all of its transaction, with an executor that
 * has not run or with none. If the table is there to be had, it gets a new file, and an executor
 * that was started is so anew. `*deleted`: how many rows it had so far. */
void rdmacc_have_table_alone(QueryDesc* query, uint64* deleted);
}
