#include "pg_rdmacc/index/index_fetch.h"

#include "pg_rdmacc/index/shadow_index.h"
#include "pg_rdmacc/row/fetch.h"
#include "pg_rdmacc/row/handle.h"
#include "pg_rdmacc/row/slot.h"

extern "C" {
#include "utils/memutils.h"
#include "utils/snapmgr.h"
}

namespace {

struct IndexFetch {
  IndexFetchTableData base;
  bool nothing;         /* of an index-only scan */
  const BridgeRow* row; /* that is asked for next; or NULL */
  HeapTupleData tuple;  /* the row that was asked for last, in these bytes */
  StringInfoData bytes;
};

}  // namespace

struct IndexFetchTableData* rdmacc_index_fetch_begin(Relation rel) {
  auto* fetch = static_cast<IndexFetch*>(palloc0(sizeof(IndexFetch)));
  IndexFetchTableData* data = &fetch->base;
  data->rel = rel;
  if (rdmacc_has_foreign_index_open(rel)) {
    elog(ERROR, "an index of table \"%s\" would be found empty", RelationGetRelationName(rel));
  }
  return data;
}

void rdmacc_index_fetch_nothing(struct IndexFetchTableData* data) {
  CHECK(data != nullptr);
  reinterpret_cast<IndexFetch*>(data)->nothing = true;
}

void rdmacc_index_fetch_this(struct IndexFetchTableData* data, const BridgeRow* row) {
  CHECK(data != nullptr && (row == nullptr || row->found));
  reinterpret_cast<IndexFetch*>(data)->row = row;
}

void rdmacc_index_fetch_reset(struct IndexFetchTableData* data) {
  reinterpret_cast<IndexFetch*>(data)->row = nullptr;
}

void rdmacc_index_fetch_end(struct IndexFetchTableData* data) {
  auto* fetch = reinterpret_cast<IndexFetch*>(data);
  if (fetch->bytes.data != nullptr) pfree(fetch->bytes.data);
  pfree(fetch);
}

namespace {

/* The row that the index scan is at, in memory that the next one takes. */
void show_row(IndexFetch* fetch, ItemPointer tid, TupleTableSlot* slot) {
  const BridgeRow* row = fetch->row;
  fetch->row = nullptr;
  if (fetch->bytes.data == nullptr) {
    const MemoryContext previous = MemoryContextSwitchTo(GetMemoryChunkContext(fetch));
    initStringInfo(&fetch->bytes);
    MemoryContextSwitchTo(previous);
  }
  rdmacc_slot_show(slot, fetch->base.rel, row, tid, &fetch->bytes, &fetch->tuple);
}

}  // namespace

bool rdmacc_index_fetch_tuple(struct IndexFetchTableData* scan, ItemPointer tid, Snapshot snapshot,
                              TupleTableSlot* slot, bool* call_again, bool* all_dead) {
  *call_again = false;
  if (all_dead != nullptr) *all_dead = false;
  auto* fetch = reinterpret_cast<IndexFetch*>(scan);
  if (fetch->nothing) return true;
  if (fetch->row != nullptr) {
    CHECK(IsMVCCSnapshot(snapshot));
    show_row(fetch, tid, slot);
    return true;
  }
  if (snapshot->snapshot_type == SNAPSHOT_DIRTY) {
    /* Nothing waits here: what other transactions do meanwhile is checked at the commit. */
    snapshot->xmin = snapshot->xmax = InvalidTransactionId;
    snapshot->speculativeToken = 0;
  }
  const RdmaccHandle handle = *rdmacc_handle_get(tid, scan->rel);
  if (handle.row.found) {
    /* Just looked up by the index scan, under the same snapshot. */
    rdmacc_slot_store(slot, scan->rel, &handle.row, tid);
    return true;
  }
  return rdmacc_tuple_fetch_row_version(scan->rel, tid, snapshot, slot);
}
