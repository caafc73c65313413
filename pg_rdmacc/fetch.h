/* Reading single rows by handle. */
#pragma once
#include "pg_rdmacc/engine_table.h"
#include "pg_rdmacc/handle.h"

extern "C" {
#include "access/relscan.h"
#include "utils/snapshot.h"

bool rdmacc_same_bytes(BridgeBytes one, BridgeBytes other);

/* What an index scan of a shadow index keeps. */
typedef struct RdmaccLookup {
  BridgeRow row;
  bool done;
} RdmaccLookup;

/* The row that the handle names as the snapshot sees it. SnapshotAny: the very version that was
 * read or written when the handle was made. */
void rdmacc_fetch(Relation relation, const RdmaccHandle* handle, Snapshot snapshot, BridgeRow* row);

/* tableam.h */
struct IndexFetchTableData* rdmacc_index_fetch_begin(Relation rel);
/* From now on the rows that this index scan asks for are there, and nobody looks at them. */
void rdmacc_index_fetch_nothing(struct IndexFetchTableData* data);
void rdmacc_index_fetch_reset(struct IndexFetchTableData* data);
void rdmacc_index_fetch_end(struct IndexFetchTableData* data);
bool rdmacc_index_fetch_tuple(struct IndexFetchTableData* scan, ItemPointer tid, Snapshot snapshot,
                              TupleTableSlot* slot, bool* call_again, bool* all_dead);
bool rdmacc_tuple_fetch_row_version(Relation rel, ItemPointer tid, Snapshot snapshot,
                                    TupleTableSlot* slot);
bool rdmacc_tuple_tid_valid(TableScanDesc scan, ItemPointer tid);
void rdmacc_tuple_get_latest_tid(TableScanDesc scan, ItemPointer tid);
bool rdmacc_tuple_satisfies_snapshot(Relation rel, TupleTableSlot* slot, Snapshot snapshot);
}
