/* Uniqueness of secondary indexes: the entries that begin with a row's columns are read as part of
 * the transaction, so that no other one can add one before it ends. NULLs are distinct unless the
 * index says otherwise.
 *
 * An INSERT is judged row by row. An UPDATE is judged when its statement ends, for it may move
 * values past each other. A deferrable constraint is judged by PostgreSQL's trigger, which asks
 * aminsert, and once more at COMMIT. */
#pragma once
#include "pg_rdmacc/index/index_entries.h"
#include "pg_rdmacc/xact/transaction_part.h"

extern "C" {
#include "executor/execdesc.h"

/* True when the index has an entry with these columns, but for that of `own_key`: the other row's
 * key, palloc'ed, is in *other. */
bool rdmacc_find_other_entry(Relation relation, const RdmaccIndex* index, BridgeBytes columns,
                             BridgeBytes own_key, BridgeBytes* other);

/* Two rows have the same columns. Raises 23505, or 54000 when only their hashes are equal. */
[[noreturn]] void rdmacc_raise_index_duplicate(Relation relation, const RdmaccIndex* index,
                                               BridgeBytes key, BridgeBytes other, bool building);

/* To be looked at when the query ends that is running; NULL, for what PostgreSQL's own trigger of a
 * deferrable constraint has let pass: at COMMIT. */
void rdmacc_check_columns_later(Relation relation, const RdmaccIndex* index, BridgeBytes columns,
                                const QueryDesc* query);

/* What was left for the end of that query; NULL: everything, as COMMIT does. */
void rdmacc_check_unique(const QueryDesc* query);

/* How many were left for later in this session; and to look at those of the running query at once
 * that were left since then, of one row, which is not to wait. */
uint64 rdmacc_unique_checks_noted(void);
void rdmacc_check_noted_since(uint64 noted);

extern const RdmaccTransactionPart rdmacc_unique_checks_part;
}
