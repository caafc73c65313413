/* The table access method: which function does what. See tableam.h of PostgreSQL for the contract
 * of each callback. The members that are null are optional ones, and say so. */
#include "pg_rdmacc/table/tableam.h"

#include "pg_rdmacc/index/index_fetch.h"
#include "pg_rdmacc/index/shadow_index.h"
#include "pg_rdmacc/row/fetch.h"
#include "pg_rdmacc/table/bulk_insert.h"
#include "pg_rdmacc/table/maintenance.h"
#include "pg_rdmacc/table/modify.h"
#include "pg_rdmacc/table/seq_scan.h"
#include "pg_rdmacc/table/tuple_lock.h"

extern "C" {
#include "fmgr.h"
#include "utils/rel.h"

PGDLLEXPORT Datum rdmacc_tableam_handler(PG_FUNCTION_ARGS);
PG_FUNCTION_INFO_V1(rdmacc_tableam_handler);
}

namespace {

/* Made before a table's indexes are used for anything: where they are overridden. */
const TupleTableSlotOps* rdmacc_slot_callbacks(Relation rel) {
  rdmacc_override_all_indexes(rel);
  return &TTSOpsHeapTuple;
}

TransactionId rdmacc_index_delete_tuples(Relation, TM_IndexDeleteOp*) {
  return InvalidTransactionId; /* no index has tuples */
}

bool rdmacc_relation_needs_toast_table(Relation) { return false; }

[[noreturn]] void refuse_sample(TableScanDesc scan) {
  ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                  errmsg("TABLESAMPLE is not supported on rdmacc table \"%s\"",
                         RelationGetRelationName(scan->rs_rd)),
                  errhint("Use WHERE random() < fraction.")));
}

bool rdmacc_scan_sample_next_block(TableScanDesc scan, struct SampleScanState*) {
  refuse_sample(scan);
}

bool rdmacc_scan_sample_next_tuple(TableScanDesc scan, struct SampleScanState*, TupleTableSlot*) {
  refuse_sample(scan);
}

}  // namespace

const TableAmRoutine rdmacc_routine = {
    .type = T_TableAmRoutine,
    .slot_callbacks = rdmacc_slot_callbacks,
    .scan_begin = rdmacc_scan_begin,
    .scan_end = rdmacc_scan_end,
    .scan_rescan = rdmacc_scan_rescan,
    .scan_getnextslot = rdmacc_scan_getnextslot,
    .scan_set_tidrange = nullptr,         /* optional: TIDs have no order */
    .scan_getnextslot_tidrange = nullptr, /* optional */
    .parallelscan_estimate = rdmacc_parallelscan_estimate,
    .parallelscan_initialize = rdmacc_parallelscan_initialize,
    .parallelscan_reinitialize = rdmacc_parallelscan_reinitialize,
    .index_fetch_begin = rdmacc_index_fetch_begin,
    .index_fetch_reset = rdmacc_index_fetch_reset,
    .index_fetch_end = rdmacc_index_fetch_end,
    .index_fetch_tuple = rdmacc_index_fetch_tuple,
    .tuple_fetch_row_version = rdmacc_tuple_fetch_row_version,
    .tuple_tid_valid = rdmacc_tuple_tid_valid,
    .tuple_get_latest_tid = rdmacc_tuple_get_latest_tid,
    .tuple_satisfies_snapshot = rdmacc_tuple_satisfies_snapshot,
    .index_delete_tuples = rdmacc_index_delete_tuples,
    .tuple_insert = rdmacc_tuple_insert,
    .tuple_insert_speculative = rdmacc_tuple_insert_speculative,
    .tuple_complete_speculative = rdmacc_tuple_complete_speculative,
    .multi_insert = rdmacc_multi_insert,
    .tuple_delete = rdmacc_tuple_delete,
    .tuple_update = rdmacc_tuple_update,
    .tuple_lock = rdmacc_tuple_lock,
    .finish_bulk_insert = rdmacc_finish_bulk_insert,
    .relation_set_new_filenode = rdmacc_relation_set_new_filenode,
    .relation_nontransactional_truncate = rdmacc_relation_nontransactional_truncate,
    .relation_copy_data = rdmacc_relation_copy_data,
    .relation_copy_for_cluster = rdmacc_relation_copy_for_cluster,
    .relation_vacuum = rdmacc_relation_vacuum,
    .scan_analyze_next_block = rdmacc_scan_analyze_next_block,
    .scan_analyze_next_tuple = rdmacc_scan_analyze_next_tuple,
    .index_build_range_scan = rdmacc_index_build_range_scan,
    .index_validate_scan = rdmacc_index_validate_scan,
    .relation_size = rdmacc_relation_size,
    .relation_needs_toast_table = rdmacc_relation_needs_toast_table,
    .relation_toast_am = nullptr,          /* only with a TOAST table */
    .relation_fetch_toast_slice = nullptr, /* only with a TOAST table */
    .relation_estimate_size = rdmacc_relation_estimate_size,
    .scan_bitmap_next_block = rdmacc_scan_bitmap_next_block,
    .scan_bitmap_next_tuple = rdmacc_scan_bitmap_next_tuple,
    .scan_sample_next_block = rdmacc_scan_sample_next_block,
    .scan_sample_next_tuple = rdmacc_scan_sample_next_tuple,
};

Datum rdmacc_tableam_handler(PG_FUNCTION_ARGS) {
  (void)fcinfo;
  PG_RETURN_POINTER(&rdmacc_routine);
}
