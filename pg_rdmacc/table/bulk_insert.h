/* Rows that come many at a time: COPY, and the statements that fill a table which they have just
 * made (CREATE TABLE AS, REFRESH MATERIALIZED VIEW, rewrites by ALTER TABLE, VACUUM FULL). What the
 * running subtransaction has made gets its rows in place (row_load.h). */
#pragma once
#include "pg_rdmacc/xact/transaction_part.h"

extern "C" {
#include "access/tableam.h"

void rdmacc_multi_insert(Relation rel, TupleTableSlot** slots, int nslots, CommandId cid,
                         int options, struct BulkInsertStateData* bistate);

/* True: the row of a statement that fills a table is kept for the next batch. */
bool rdmacc_gather_row(Relation rel, TupleTableSlot* slot, CommandId cid,
                       const struct BulkInsertStateData* bistate);

/* Such a statement has no more rows. */
void rdmacc_finish_bulk_insert(Relation rel, int options);

/* All rows of a table into another one that takes its place; how many. */
double rdmacc_copy_all_rows(Relation from, Relation to, CommandId cid);

extern const RdmaccTransactionPart rdmacc_bulk_insert_part;
}
