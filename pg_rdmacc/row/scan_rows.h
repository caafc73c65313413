/* The engine's scan of one table, row by row. POD: an error may pass it by. What is left then goes
 * with the resource owner that the first row was asked for under, as the table's relcache reference
 * does: that of a failed subtransaction or portal, at the latest the transaction's. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "nodes/lockoptions.h"
#include "utils/rel.h"

typedef struct RdmaccRows {
  BridgeScan* scan; /* NULL before the first row */
  const BridgeRow* batch;
  size_t count;
  size_t next;
  uint32 table;
  uint32 visible_before;
  LockWaitPolicy wait_policy; /* what others hold: waited for (as _begin sets it), or else */
  uint32_t row_bytes_max;     /* of each row, at least, whose end may be left out; so set, too */
  bool ended;
  uint64 round_trips; /* that its batches took */
} RdmaccRows;

/* Before a statement reads a whole table that is not run again if it loses to splits of the table's
 * index, as an earlier load causes them: until nodes have done them, at most a minute. */
void rdmacc_rows_settle(Relation relation);

void rdmacc_rows_begin(RdmaccRows* rows, uint32 table, uint32 visible_before);

/* The next row, valid until the one after; NULL at the end. */
const BridgeRow* rdmacc_rows_next(RdmaccRows* rows, Relation relation);

void rdmacc_rows_end(RdmaccRows* rows);

/* ---- Rows of a whole table in the order in which they were written, as PostgreSQL's own tables
 * return them. SQL promises no order, but a small table is expected to have one. It costs a
 * copy of all rows before the first is returned, so only tables have it for which that is less than
 * a millisecond (RDMACC_ORDERED_BYTES_MAX): others are returned as the nodes hold them.
 *
 * POD, as RdmaccRows is. The copies are in a memory context below that of begin()'s caller. */
#define RDMACC_ORDERED_BYTES_MAX (256 * 1024)

typedef struct RdmaccOrderedRow {
  uint64 time;          /* see rdmacc_row_time() */
  const BridgeRow* row; /* a copy; its bytes follow it */
} RdmaccOrderedRow;

typedef struct RdmaccOrderedRows {
  RdmaccRows rows;
  MemoryContext context;      /* of the copies; NULL: rows are returned as they come */
  RdmaccOrderedRow* gathered; /* NULL before the first row */
  size_t count;
  size_t next;
  bool ended; /* the end was returned */
} RdmaccOrderedRows;

void rdmacc_ordered_rows_begin(RdmaccOrderedRows* ordered_rows, Relation relation, uint32 table,
                               uint32 visible_before, bool in_order);

/* The next row, valid until the one after; NULL at the end. */
const BridgeRow* rdmacc_ordered_rows_next(RdmaccOrderedRows* ordered_rows, Relation relation);

void rdmacc_ordered_rows_end(RdmaccOrderedRows* ordered_rows);
}
