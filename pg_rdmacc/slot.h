/* Rows of the engine in PostgreSQL's tuple slots. The relation's slots are those for heap tuples:
 * they carry a TID, keep system columns, and every executor node takes them. */
#pragma once
#include "pg_rdmacc/pg_rdmacc.h"

extern "C" {
#include "executor/tuptable.h"
#include "storage/itemptr.h"
#include "utils/rel.h"

/* Stores a copy of the row. xmin is the low half of the row's version stamp (0: an own write). */
void rdmacc_slot_store(TupleTableSlot* slot, Relation relation, const BridgeRow* row,
                       const ItemPointerData* tid);

/* The row in the slot is the one that `tid` names now. */
void rdmacc_slot_set_tid(TupleTableSlot* slot, Relation relation, const ItemPointerData* tid);
}
