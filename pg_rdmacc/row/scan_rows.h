/* The engine's scan of one table, row by row. POD: an error may pass it by. What is left then goes
 * with the resource owner that the first row was asked for under, as the table's relcache reference
 * does: that of a failed subtransaction or portal, at the latest the transaction's. */
#pragma once
#include "pg_rdmacc/row/passed_rows.h"
#include "pg_rdmacc/row/row_lock.h"

extern "C" {
#include "utils/rel.h"

typedef struct RdmaccRows {
  BridgeScan* scan;       /* NULL before the first row */
  const BridgeRow* batch; /* NULL if they are only counted */
  size_t count;
  size_t next;
  uint32 table;
  uint32 visible_before;
  RdmaccPassedRows* passed; /* by earlier passes; NULL: they leave nothing */
  uint64* shared_walk;      /* with the scans of parallel workers; _begin sets none */
  RdmaccRowMark mark;       /* what of rows that others hold; _begin sets none */
  rdmacc::ScanWants wants;  /* so set, too */
  bool ended;
  bool quiet;         /* rdmacc_is_quiet(); _begin sets it to false */
  bool as_stored;     /* for a hint: nothing is promised, and no conflict met; so set, too */
  uint64 round_trips; /* that its batches took */
} RdmaccRows;

/* Before a statement reads a whole table that is not run again if it loses to splits of the table's
 * index, as an earlier load causes them: until nodes have done them, at most a minute. */
void rdmacc_rows_settle(Relation relation);

/* True while this transaction has a lock on the relation that keeps others from writing to it: what
 * defines something reads it so, and has no read set of a whole table to validate. Not for what a
 * lock does not outlive: it may go with a savepoint, and the rows that were shown do not. */
bool rdmacc_is_quiet(Relation relation);

void rdmacc_rows_begin(RdmaccRows* rows, uint32 table, uint32 visible_before);

/* Right after _begin and what is set then: if the scan only reads, this pass and later ones use
 * `passed`, which is the scan's, lives as long as `memory`, and is zeroed before the first pass. */
void rdmacc_rows_remember(RdmaccRows* rows, RdmaccPassedRows* passed, MemoryContext memory);

/* The next row, valid until the one after; NULL at the end. */
const BridgeRow* rdmacc_rows_next(RdmaccRows* rows, Relation relation);

/* In its place, where they are only counted: whether there is another one. */
bool rdmacc_rows_count_next(RdmaccRows* rows, Relation relation);

void rdmacc_rows_end(RdmaccRows* rows);
}
