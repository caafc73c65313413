/* Writing rows: the callbacks of tableam.h that insert, update and delete.
 *
 * Every conflict with another transaction is an error (40001), so none of them returns TM_Updated
 * or TM_Deleted, and the executor never re-evaluates a row. */
#pragma once
#include "pg_rdmacc/relation/engine_table.h"
#include "pg_rdmacc/row/handle.h"

extern "C" {
#include "access/tableam.h"

void rdmacc_tuple_insert(Relation rel, TupleTableSlot* slot, CommandId cid, int options,
                         struct BulkInsertStateData* bistate);
void rdmacc_tuple_insert_speculative(Relation rel, TupleTableSlot* slot, CommandId cid, int options,
                                     struct BulkInsertStateData* bistate, uint32 specToken);
void rdmacc_tuple_complete_speculative(Relation rel, TupleTableSlot* slot, uint32 specToken,
                                       bool succeeded);
TM_Result rdmacc_tuple_delete(Relation rel, ItemPointer tid, CommandId cid, Snapshot snapshot,
                              Snapshot crosscheck, bool wait, TM_FailureData* tmfd,
                              bool changingPart);
TM_Result rdmacc_tuple_update(Relation rel, ItemPointer otid, TupleTableSlot* slot, CommandId cid,
                              Snapshot snapshot, Snapshot crosscheck, bool wait,
                              TM_FailureData* tmfd, LockTupleMode* lockmode, bool* update_indexes);

/* The slot's row, whose key the same command has looked for and not found: a row that has come
 * since is a conflict, and no duplicate. */
void rdmacc_insert_absent_row(Relation rel, TupleTableSlot* slot, CommandId cid);

/* True, and tmfd says so, when `cid` or a later command has written the row. */
bool rdmacc_modified_by_own_command(const RdmaccHandle* handle, ItemPointer tid, CommandId cid,
                                    TM_FailureData* tmfd);

/* What follows the insertion of the slot's row: index entries, and a TID. */
void rdmacc_row_was_inserted(Relation rel, const RdmaccTable* table, BridgeBytes key,
                             TupleTableSlot* slot, CommandId cid);

/* Writes the row of a key that exists. */
void rdmacc_put_row(Relation rel, const RdmaccHandle* handle, BridgeBytes row, CommandId cid);

/* The handle's row becomes that of the slot, whose key is the same; with its index entries. */
void rdmacc_rewrite_row(Relation rel, const RdmaccHandle* handle, TupleTableSlot* slot,
                        CommandId cid);

/* Removes every row of the relation, as part of the transaction. */
void rdmacc_remove_all_rows(Relation rel, CommandId cid);
}
