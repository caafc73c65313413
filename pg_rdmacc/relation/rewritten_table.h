/* The table that ALTER TABLE, CLUSTER or VACUUM FULL fills in place of another one. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "utils/rel.h"

/* A table that is written anew has no index before it has all rows. Before the first of them: gives
 * it the primary key of the table that it is written for, so that its rows need not get other keys
 * when the index is there. Nothing where there is no such key, or that is no rdmacc table. */
void rdmacc_key_as_before(Relation transient);
}
