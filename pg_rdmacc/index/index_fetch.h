/* Rows that PostgreSQL's index scans ask the table for, by the TIDs that our indexes gave them. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "access/relscan.h"
#include "executor/tuptable.h"
#include "utils/rel.h"
#include "utils/snapshot.h"

/* tableam.h */
struct IndexFetchTableData* rdmacc_index_fetch_begin(Relation rel);
/* From now on the rows that this index scan asks for are there, and are not read. */
void rdmacc_index_fetch_nothing(struct IndexFetchTableData* data);
/* This is the row that it asks for next, if for any; it stays where it is until then. NULL: one
 * that is found by its TID. */
void rdmacc_index_fetch_this(struct IndexFetchTableData* data, const BridgeRow* row);
void rdmacc_index_fetch_reset(struct IndexFetchTableData* data);
void rdmacc_index_fetch_end(struct IndexFetchTableData* data);
bool rdmacc_index_fetch_tuple(struct IndexFetchTableData* scan, ItemPointer tid, Snapshot snapshot,
                              TupleTableSlot* slot, bool* call_again, bool* all_dead);
}
