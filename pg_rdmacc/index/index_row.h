/* What an index has of a row: the values of its columns and expressions, and whether its predicate
 * takes the row at all. Values that are computed are palloc'ed; others point into the row. */
#pragma once
#include "pg_rdmacc/index/index_entries.h"
#include "pg_rdmacc/xact/transaction_part.h"

extern "C" {

/* False for a row that a partial index leaves out; `values` and `nulls` then mean nothing. */
bool rdmacc_index_row(const RdmaccIndex* index, Relation relation, TupleTableSlot* slot,
                      Datum* values, bool* nulls);
bool rdmacc_index_row_of_tuple(const RdmaccIndex* index, Relation relation, HeapTuple tuple,
                               Datum* values, bool* nulls);

/* True while an expression or a predicate is computed: what its functions write, they write in the
 * midst of another row's writing. */
bool rdmacc_index_row_is_computed(void);

extern const RdmaccTransactionPart rdmacc_index_rows_part;
}
