/* INSERT of what a query returns. Nothing can see its rows before it has ended, where none of its
 * functions makes queries, and no trigger is called: so they are inserted many at a time, or put in
 * place (row_load.h) where the table is the transaction's own. */
#pragma once
#include "pg_rdmacc/xact/transaction_part.h"

extern "C" {
#include "executor/execdesc.h"
#include "executor/tuptable.h"
#include "utils/rel.h"

/* The query is about to run: its rows are gathered, if it is such a one, and no other that is under
 * way. */
void rdmacc_gather_begin(const QueryDesc* query);

/* True: the row is kept for the next batch. */
bool rdmacc_gather_insert(Relation rel, TupleTableSlot* slot, CommandId cid);

/* The query has run, or an error has ended it. */
void rdmacc_gather_end(const QueryDesc* query);
void rdmacc_gather_give_up(const QueryDesc* query);

extern const RdmaccTransactionPart rdmacc_gathered_insert_part;
}
