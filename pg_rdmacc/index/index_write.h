/* Keeping entries of secondary indexes where rows are written. All are parts of the transaction,
 * undone with their savepoint; a table without secondary indexes costs a look into a cache. */
#pragma once
#include "pg_rdmacc/row/handle.h"

extern "C" {
#include "access/genam.h"
#include "executor/tuptable.h"

/* A row was inserted. Whether it is unique is asked later: see rdmacc_index_check_inserted(). */
void rdmacc_index_row_inserted(Relation relation, TupleTableSlot* slot, BridgeBytes key,
                               CommandId cid);

/* The row is about to be removed. */
void rdmacc_index_row_deleted(Relation relation, const RdmaccHandle* handle, CommandId cid);

/* The row is about to become that of the slot, under the same key. Indexes whose columns stay as
 * they are are not touched. */
void rdmacc_index_row_updated(Relation relation, const RdmaccHandle* handle, TupleTableSlot* slot,
                              CommandId cid);

/* An UPDATE has removed the row and inserted it under another key. */
void rdmacc_index_row_moved(Relation relation, TupleTableSlot* slot, BridgeBytes key,
                            CommandId cid);

/* True when PostgreSQL has to ask the below after an UPDATE, too. */
bool rdmacc_has_deferrable_index(Relation relation);

/* PostgreSQL asks this of each index after an insertion (aminsert). False when another row has the
 * same columns and `check_unique` leaves it to the caller. */
bool rdmacc_index_check_inserted(Relation index, const Datum* values, const bool* nulls,
                                 ItemPointer tid, Relation relation, IndexUniqueCheck check_unique);
}
