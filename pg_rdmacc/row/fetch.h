/* Reading single rows by handle. */
#pragma once
#include "pg_rdmacc/row/handle.h"

extern "C" {
#include "access/relscan.h"
#include "utils/snapshot.h"

bool rdmacc_same_bytes(BridgeBytes one, BridgeBytes other);

/* The row that the handle names as the snapshot sees it. SnapshotAny: the very version that was
 * read or written when the handle was made. */
void rdmacc_fetch(Relation relation, const RdmaccHandle* handle, Snapshot snapshot, BridgeRow* row);

/* tableam.h */
bool rdmacc_tuple_fetch_row_version(Relation rel, ItemPointer tid, Snapshot snapshot,
                                    TupleTableSlot* slot);
bool rdmacc_tuple_tid_valid(TableScanDesc scan, ItemPointer tid);
void rdmacc_tuple_get_latest_tid(TableScanDesc scan, ItemPointer tid);
bool rdmacc_tuple_satisfies_snapshot(Relation rel, TupleTableSlot* slot, Snapshot snapshot);
}
