#include "pg_rdmacc/row/slot.h"

#include "pg_rdmacc/codec/row_codec.h"
#include "pg_rdmacc/xact/running_query.h"

extern "C" {
#include "access/htup_details.h"
#include "utils/memutils.h"
}

void rdmacc_slot_store(TupleTableSlot* slot, Relation relation, const BridgeRow* row,
                       const ItemPointerData* tid) {
  CHECK(row->found && row->row.data != nullptr);
  const MemoryContext previous = MemoryContextSwitchTo(slot->tts_mcxt);
  HeapTuple tuple = rdmacc_row_decode(row->row);
  MemoryContextSwitchTo(previous);
  /* suppress_redundant_updates_trigger() compares it with one that PostgreSQL has made. */
  if (relation->trigdesc != nullptr)
    rdmacc_row_correct_width_flag(tuple, RelationGetDescr(relation));
  if (tid != nullptr) tuple->t_self = *tid;
  tuple->t_tableOid = RelationGetRelid(relation);
  if (TTS_IS_HEAPTUPLE(slot)) {
    ExecStoreHeapTuple(tuple, slot, true);
  } else {
    ExecForceStoreHeapTuple(tuple, slot, true);
    slot->tts_tid = tuple->t_self;
    slot->tts_tableOid = RelationGetRelid(relation);
  }
}

void rdmacc_slot_show(TupleTableSlot* slot, Relation relation, const BridgeRow* row,
                      const ItemPointerData* tid, StringInfo bytes, HeapTuple tuple) {
  if (!TTS_IS_HEAPTUPLE(slot)) return rdmacc_slot_store(slot, relation, row, tid);
  CHECK(row->found && row->row.data != nullptr);
  rdmacc_row_decode_into(row->row, bytes, tuple);
  tuple->t_self = *tid;
  tuple->t_tableOid = RelationGetRelid(relation);
  ExecStoreHeapTuple(tuple, slot, false);
}

void rdmacc_slot_set_written(TupleTableSlot* slot, Relation relation, const ItemPointerData* tid,
                             bool in_conflict) {
  CHECK(ItemPointerIsValid(tid));
  slot->tts_tid = *tid;
  slot->tts_tableOid = RelationGetRelid(relation);
  if (!TTS_IS_HEAPTUPLE(slot)) return;
  if (rdmacc_query_returns()) ExecMaterializeSlot(slot); /* it may return system columns */
  HeapTuple tuple = reinterpret_cast<HeapTupleTableSlot*>(slot)->tuple;
  if (tuple == nullptr) return;
  HeapTupleHeaderSetXmin(tuple->t_data, rdmacc_row_stamp());
  HeapTupleHeaderSetXmax(tuple->t_data, in_conflict ? rdmacc_row_stamp() : InvalidTransactionId);
  tuple->t_self = *tid;
  tuple->t_tableOid = RelationGetRelid(relation);
}
