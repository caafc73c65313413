/* Scans of whole tables. */
#pragma once
#include "pg_rdmacc/index/bitmap_scan.h"
#include "pg_rdmacc/row/handle.h"
#include "pg_rdmacc/row/shared_scan.h"

extern "C" {
#include "access/relscan.h"
#include "access/tableam.h"
#include "utils/tuplestore.h"

/* The rows that a scrollable cursor has passed. */
typedef struct RdmaccHistory {
  Tuplestorestate* store; /* NULL: the cursor does not scroll */
  TupleTableSlot* slot;
} RdmaccHistory;

typedef struct RdmaccScan {
  TableScanDescData base;
  RdmaccRows rows;
  RdmaccHandleStream handles;
  size_t named_from;    /* of the batch, whose rows are named by what they are in it */
  bool names_rows;      /* or else each has a handle */
  HeapTupleData tuple;  /* the row at hand, in `bytes` */
  StringInfoData bytes; /* data NULL: nothing yet */
  RdmaccHistory history;
  RdmaccPassedRows passed;
  RdmaccBitmapScan* bitmap;     /* NULL but for a bitmap scan */
  uint64 sample_rows_per_block; /* ANALYZE; 0 before its first block */
  uint64 sample_rows_left;      /* of the present block */
  bool sample_last_block;
  bool started;
} RdmaccScan;

/* What a leader and its workers know of a scan that they share. */
typedef struct RdmaccParallelScan {
  ParallelTableScanDescData base;
  RdmaccSharedScan scan;
} RdmaccParallelScan;

Size rdmacc_parallelscan_estimate(Relation rel);
Size rdmacc_parallelscan_initialize(Relation rel, ParallelTableScanDesc shared);
void rdmacc_parallelscan_reinitialize(Relation rel, ParallelTableScanDesc shared);

TableScanDesc rdmacc_scan_begin(Relation rel, Snapshot snapshot, int nkeys, struct ScanKeyData* key,
                                ParallelTableScanDesc pscan, uint32 flags);
void rdmacc_scan_end(TableScanDesc scan);
void rdmacc_scan_rescan(TableScanDesc scan, struct ScanKeyData* key, bool set_params,
                        bool allow_strat, bool allow_sync, bool allow_pagemode);
bool rdmacc_scan_getnextslot(TableScanDesc scan, ScanDirection direction, TupleTableSlot* slot);
bool rdmacc_scan_bitmap_next_block(TableScanDesc scan, struct TBMIterateResult* page);
bool rdmacc_scan_bitmap_next_tuple(TableScanDesc scan, struct TBMIterateResult* page,
                                   TupleTableSlot* slot);

/* The next row, stored in the slot under a new handle. */
bool rdmacc_scan_next(RdmaccScan* scan, TupleTableSlot* slot);
}
