/* Scans of secondary indexes: ambeginscan and the rest of PostgreSQL's index access method, so that
 * its own IndexScan runs over our entries. shadow_index.h says how it gets here. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "access/genam.h"
#include "access/sdir.h"
#include "access/skey.h"

void rdmacc_index_scan_begin(IndexScanDesc scan);
void rdmacc_index_scan_rescan(IndexScanDesc scan);
/* False for a scan of a secondary index that PostgreSQL's own routine has begun. */
bool rdmacc_index_scan_is_ours(IndexScanDesc scan);
bool rdmacc_index_scan_next(IndexScanDesc scan, ScanDirection direction);

/* The next entry alone, valid until the next call: for scans that do not return rows. */
bool rdmacc_index_scan_next_entry(IndexScanDesc scan, ScanDirection direction, BridgeBytes* entry);

/* True when entries that were found may be of rows that were not asked for. */
bool rdmacc_index_scan_is_lossy(IndexScanDesc scan);

void rdmacc_index_scan_end(IndexScanDesc scan);
}
