/* Bitmap scans. PostgreSQL collects TIDs in a bitmap, combines bitmaps, and asks the table for what
 * is left. Rows have no place in a file, so each key that an index finds gets a number, the same
 * one from every index, as long as a bitmap scan of the table is open; a TID is such a number.
 *
 * A bitmap's last page, which every index adds, stands for no row: when the scan comes to it, it
 * knows all that it has to return, and fetches rows many at a time, however few of a page's there
 * are. */
#pragma once
#include "pg_rdmacc/xact/transaction_part.h"

extern "C" {
#include "access/genam.h"
#include "access/relscan.h"
#include "access/tableam.h"
#include "nodes/tidbitmap.h"

typedef struct RdmaccBitmapScan RdmaccBitmapScan;

/* Of a table's scan; one that is reset looks at another bitmap. */
RdmaccBitmapScan* rdmacc_bitmap_scan_begin(Relation relation);
void rdmacc_bitmap_scan_reset(RdmaccBitmapScan* scan);
void rdmacc_bitmap_scan_end(RdmaccBitmapScan* scan, Relation relation);

/* amgetbitmap of a secondary index. */
int64 rdmacc_index_bitmap(IndexScanDesc scan, TIDBitmap* bitmap);

/* The callbacks of tableam.h, for the table's scan that has begun this one. */
bool rdmacc_bitmap_scan_next_block(RdmaccBitmapScan* state, TableScanDesc scan,
                                   struct TBMIterateResult* page);
bool rdmacc_bitmap_scan_next_tuple(RdmaccBitmapScan* state, TableScanDesc scan,
                                   struct TBMIterateResult* page, TupleTableSlot* slot);

extern const RdmaccTransactionPart rdmacc_bitmap_scans_part;
}
