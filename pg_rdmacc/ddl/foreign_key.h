/* Foreign keys: allowed where both sides are rdmacc tables. PostgreSQL's own triggers and queries
 * check them; what makes those right is that all they read is part of one serializable transaction.
 * A constraint that only one side's rows are part of that way would not hold, so it is refused. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "catalog/pg_constraint.h"

/* Raises 0A000 when tables of both kinds take part, partitions included. A partitioned table
 * without partitions is of neither kind. */
void rdmacc_check_foreign_key(const FormData_pg_constraint* constraint);

/* The same of every foreign key that the relation is a side of. */
void rdmacc_check_foreign_keys_of(Oid relation);
}
