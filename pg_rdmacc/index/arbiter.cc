#include "pg_rdmacc/index/arbiter.h"

#include "pg_rdmacc/index/index_row.h"
#include "pg_rdmacc/row/slot.h"

extern "C" {
#include "access/skey.h"
#include "executor/tuptable.h"
#include "utils/snapmgr.h"
}

namespace {

bool holds(const ScanKeyData* key, Datum value, bool is_null) {
  if ((key->sk_flags & SK_SEARCHNULL) != 0) return is_null;
  return !is_null && DatumGetBool(FunctionCall2Coll(const_cast<FmgrInfo*>(&key->sk_func),
                                                    key->sk_collation, value, key->sk_argument));
}

}  // namespace

bool rdmacc_arbiter_wants_nulls(const IndexScanDescData* scan) {
  if (scan->xs_snapshot->snapshot_type != SNAPSHOT_DIRTY) return false;
  for (int i = 0; i < scan->numberOfKeys; i++) {
    if ((scan->keyData[i].sk_flags & SK_SEARCHNULL) != 0) return true;
  }
  return false;
}

bool rdmacc_arbiter_takes(const IndexScanDescData* scan, const RdmaccIndex* index,
                          const BridgeRow* row) {
  CHECK(row->found);
  Datum values[INDEX_MAX_KEYS];
  bool nulls[INDEX_MAX_KEYS];
  TupleTableSlot* slot =
      MakeSingleTupleTableSlot(RelationGetDescr(scan->heapRelation), &TTSOpsHeapTuple);
  rdmacc_slot_store(slot, scan->heapRelation, row, nullptr);
  rdmacc_index_row(index, scan->heapRelation, slot, values, nulls);
  bool all = true;
  for (int i = 0; i < scan->numberOfKeys && all; i++) {
    const ScanKeyData* key = &scan->keyData[i];
    CHECK(key->sk_attno > 0 && key->sk_attno <= index->column_count);
    all = holds(key, values[key->sk_attno - 1], nulls[key->sk_attno - 1]);
  }
  ExecDropSingleTupleTableSlot(slot);
  return all;
}
