/* Filling secondary indexes from the rows of their table: CREATE INDEX, REINDEX, what TRUNCATE and
 * rewrites do, and re-keying, after which entries have to name the rows by other keys. The entries
 * are sorted first, so that equal columns meet and leaves are written one after the other. All in
 * one transaction. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "nodes/execnodes.h"

/* For index_build_range_scan: makes the index's engine table and fills it. The number of rows. */
double rdmacc_build_index(Relation relation, Relation index, const IndexInfo* info);

/* For index_validate_scan, the second half of REINDEX CONCURRENTLY: writers keep the index already,
 * and wait while the rows that are older are entered. */
void rdmacc_complete_index(Relation relation, Relation index);

/* The rows have got other keys, written by the command: makes the entries of all indexes anew. */
void rdmacc_rebuild_indexes(Relation relation, CommandId command);
}
