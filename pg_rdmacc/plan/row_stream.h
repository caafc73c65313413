/* The custom scan RdmaccRowStream: all rows of a table, for plans that want no more than what they
 * add up to. Unlike a scan it gives them no identity, so that nothing is copied but the row at
 * hand, into one buffer; where no column is wanted, not even that. Where the columns that are
 * wanted come first in the row and have fixed widths, the rest is neither sent by nodes nor read
 * from overflow blocks. What it reads is protected as by any scan. */
#pragma once
#include "pg_rdmacc/row/shared_scan.h"

extern "C" {
#include "nodes/execnodes.h"
#include "nodes/pathnodes.h"

typedef struct RdmaccRowStream {
  CustomScanState custom; /* first */
  RdmaccRows rows;
  RdmaccPassedRows passed;
  RdmaccSharedScan* shared; /* with workers; NULL: it is not */
  HeapTupleData tuple;      /* the row at hand, in `bytes` */
  StringInfoData bytes;
  uint32 row_bytes; /* that have all columns which are wanted */
  bool counts_only; /* no column is wanted */
  bool started;
  uint64 round_trips; /* of runs before this one */
} RdmaccRowStream;

/* A path that gives the rows of `scan`, a scan of a whole table, or its part of one that workers
 * share. */
Path* rdmacc_row_stream_path(const Path* scan);

void rdmacc_row_stream_init(void);
}
