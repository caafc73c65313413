/* What PostgreSQL says of a key that exists already. */
#pragma once
#include "pg_rdmacc/relation/engine_table.h"
#include "pg_rdmacc/relation/key_layout.h"

extern "C" {

/* 40001 when what the transaction has read, the duplicate with it, is of different moments. */
void rdmacc_check_reads(Relation relation);

/* The slot's row could not be stored: 23505, or an error of its own when the two keys only share
 * their hash. `key` is the row's. */
void rdmacc_raise_duplicate(Relation relation, const RdmaccTable* table, BridgeBytes key,
                            TupleTableSlot* slot);

/* Before such an error of a row that came in a batch: the line that COPY would name is another
 * one's. */
void rdmacc_leave_out_line_of_copy(Relation relation);

/* Raises that error if a row has the key's bytes but not its values. */
void rdmacc_refuse_collision(Relation relation, const RdmaccTable* table, BridgeBytes key,
                             TupleTableSlot* slot);

/* Two rows have one key while the index is made. */
void rdmacc_raise_duplicate_in_build(Relation relation, const RdmaccKeyLayout* layout,
                                     TupleTableSlot* slot);
}
