/* Scans of secondary indexes: ambeginscan and the rest of PostgreSQL's index access method, so that
 * its own IndexScan runs over our entries. shadow_index.h says how it gets here. */
#pragma once
#include "pg_rdmacc/pg_rdmacc.h"

extern "C" {
#include "access/genam.h"
#include "access/sdir.h"
#include "access/skey.h"

void rdmacc_index_scan_begin(IndexScanDesc scan);
void rdmacc_index_scan_rescan(IndexScanDesc scan);
bool rdmacc_index_scan_next(IndexScanDesc scan, ScanDirection direction);
void rdmacc_index_scan_end(IndexScanDesc scan);
}
