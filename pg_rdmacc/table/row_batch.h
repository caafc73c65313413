/* What all statements that insert many rows at a time have in common, over row_load.h: COPY, those
 * that fill a table which they have made (bulk_insert.h), and INSERT of what a query returns
 * (gathered_insert.h). */
#pragma once
#include "pg_rdmacc/row/row_load.h"

extern "C" {
#include "executor/tuptable.h"

/* How the running command gets rows into the relation. It is asked for once. In place not where
 * the statement may read an index after each row, since what that shows has to be a row that the
 * query may see: one of a unique index. */
RdmaccLoadTarget rdmacc_batch_target(Relation rel, const RdmaccTable* table, CommandId cid);

/* True: the batch is full. Its bytes are made in the current context. */
bool rdmacc_batch_add(RdmaccRowLoad* load, const RdmaccTable* table, TupleTableSlot* slot);

/* Inserts the batch, which stays there. `table` may become another one that rows fit into
 * (fitted_table.h). */
void rdmacc_batch_flush(Relation rel, RdmaccRowLoad* load, RdmaccTable* table, CommandId cid);

/* ---- Rows that one command brings one by one, over several calls. */
typedef struct RdmaccGatheredRows {
  MemoryContext context; /* NULL: none */
  MemoryContext row;     /* of the row that comes */
  Oid relation;
  CommandId command;
  int nest; /* of the subtransaction that they are of */
  RdmaccTable table;
  RdmaccRowLoad load;
} RdmaccGatheredRows;

void rdmacc_gathered_begin(RdmaccGatheredRows* rows, Relation rel, CommandId cid,
                           RdmaccRaiseOfLoad raise);
/* True: they are to be flushed before the next one. */
bool rdmacc_gathered_add(RdmaccGatheredRows* rows, TupleTableSlot* slot);
void rdmacc_gathered_flush(RdmaccGatheredRows* rows, Relation rel);
/* The command has brought all of them. */
void rdmacc_gathered_end(RdmaccGatheredRows* rows);
void rdmacc_gathered_forget(RdmaccGatheredRows* rows);
/* With the subtransaction, if they are of it. */
void rdmacc_gathered_abort(RdmaccGatheredRows* rows, int nest);

/* The batches of a statement that says no more have ended. */
void rdmacc_batches_end(Relation rel);

/* For rdmacc_load_begin(): of a table that others have rows in, too. */
void rdmacc_raise_of_batch(Relation rel, const void*, const RdmaccLoadedTwice* row);
}
