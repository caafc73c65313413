/* Scans of tables that a leader shares with its parallel workers, its guests (xact/guests.h): each
 * row comes to one of them. Whether it may have any is decided before a plan for workers runs:
 * otherwise that runs without, since they could read nothing. */
#pragma once
#include "pg_rdmacc/row/scan_rows.h"

extern "C" {
#include "nodes/plannodes.h"

/* A plan for workers is about to run. False: it has to run without. */
bool rdmacc_may_share_scans(const PlannedStmt* plan);

/* In their memory. */
typedef struct RdmaccSharedScan {
  uint32 table;
  bool shared; /* or nothing is */
  uint64 walk; /* of all of them together; 8 bytes in one piece */
} RdmaccSharedScan;

/* The leader, before PostgreSQL starts workers; and before it starts others, for the same scan from
 * its beginning. */
void rdmacc_share_scan(RdmaccSharedScan* scan, Relation relation);
void rdmacc_share_scan_again(RdmaccSharedScan* scan);
/* What is asked for and is not used. */
void rdmacc_share_no_scan(RdmaccSharedScan* scan);

/* In place of rdmacc_rows_begin(), in leader and workers; NULL: the scan is not shared. */
void rdmacc_rows_begin_shared(RdmaccRows* rows, RdmaccSharedScan* scan, Relation relation,
                              uint32 visible_before);
}
