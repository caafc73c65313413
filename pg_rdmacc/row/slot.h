/* Rows of the engine in PostgreSQL's tuple slots. The relation's slots are those for heap tuples:
 * they carry a TID, keep system columns, and every executor node takes them. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "executor/tuptable.h"
#include "lib/stringinfo.h"
#include "storage/itemptr.h"
#include "utils/rel.h"

/* Stores a copy of the row. xmin is the stamp that it was written with. */
void rdmacc_slot_store(TupleTableSlot* slot, Relation relation, const BridgeRow* row,
                       const ItemPointerData* tid);

/* The same with a copy in `bytes`, which is used for one row after the other: the slot has the row
 * until the next one. `tuple` lasts as long. */
void rdmacc_slot_show(TupleTableSlot* slot, Relation relation, const BridgeRow* row,
                      const ItemPointerData* tid, StringInfo bytes, HeapTuple tuple);

/* The row in the slot was just written; `tid` names it now. xmax is 0 but for ON CONFLICT DO UPDATE
 * (`in_conflict`), which locks the row first: statements ask by RETURNING (xmax = 0) whether they
 * have inserted. */
void rdmacc_slot_set_written(TupleTableSlot* slot, Relation relation, const ItemPointerData* tid,
                             bool in_conflict);
}
