#include "pg_rdmacc/table/maintenance.h"

#include <math.h>

#include "pg_rdmacc/ddl/index_statements.h"
#include "pg_rdmacc/ddl/table_files.h"
#include "pg_rdmacc/index/index_build.h"
#include "pg_rdmacc/index/secondary_indexes.h"
#include "pg_rdmacc/relation/access_method.h"
#include "pg_rdmacc/relation/row_estimate.h"
#include "pg_rdmacc/table/bulk_insert.h"
#include "pg_rdmacc/table/modify.h"
#include "pg_rdmacc/table/seq_scan.h"

extern "C" {
#include "access/htup_details.h"
#include "access/multixact.h"
#include "access/parallel.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "catalog/pg_class.h"
#include "catalog/storage.h"
#include "catalog/storage_xlog.h"
#include "miscadmin.h"
#include "optimizer/plancat.h"
#include "pgstat.h"
#include "storage/bufpage.h"
#include "storage/procarray.h"
#include "storage/smgr.h"
#include "utils/snapmgr.h"
}

namespace {

/* ANALYZE prefetches blocks of the empty main file, which must not lie beyond its first segment. */
constexpr uint64 kBlocksMax = 131071;
/* Of a table with a primary key. A scan visits every node's index, and conflicts with every
 * writer of any row: even an empty table is not cheaper than a key lookup. */
constexpr BlockNumber kPagesMin = 64;
/* PostgreSQL's costs count pages read from a disk, and one page for each row that lies apart. Rows
 * here are in memory: by measurement, reading 1000 of them, however they are found, takes what the
 * planner means by one page. */
constexpr double kRowsPerPageRead = 1000;
constexpr Size kRowOverhead = MAXALIGN(SizeofHeapTupleHeader) + sizeof(ItemIdData);
constexpr Size kPageUsable = BLCKSZ - SizeOfPageHeaderData;

/* As many as a page of PostgreSQL's own tables would hold: costs and statistics by the page then
 * come to the same. */
uint64 rows_per_block(Relation relation) {
  const auto rows = static_cast<uint64>(rdmacc_estimated_rows(relation));
  const auto width = static_cast<Size>(Max(get_rel_data_width(relation, nullptr), 0));
  const uint64 fitting = kPageUsable / (MAXALIGN(width) + kRowOverhead);
  return Max(Max(fitting, 1), rows / kBlocksMax + 1);
}

uint64 block_count(Relation relation) {
  const auto rows = static_cast<uint64>(rdmacc_estimated_rows(relation));
  const uint64 per_block = rows_per_block(relation);
  return Min(Max((rows + per_block - 1) / per_block, 1), kBlocksMax);
}

/* Does not name the relation: ALTER TABLE fills one with a name of its own. */
[[noreturn]] void refuse_temporary(void) {
  ereport(ERROR,
          (errcode(ERRCODE_FEATURE_NOT_SUPPORTED), errmsg("an rdmacc table cannot be temporary"),
           errhint("Use CREATE TEMPORARY TABLE ... USING heap.")));
}

/* What PostgreSQL makes the file of an unlogged table from after a crash: an empty one, as it is
 * now. Rows, which are in no log either way, are kept by the nodes. */
void create_init_fork(SMgrRelation file, const RelFileNode* node) {
  smgrcreate(file, INIT_FORKNUM, false);
  log_smgrcreate(node, INIT_FORKNUM);
  smgrimmedsync(file, INIT_FORKNUM);
}

}  // namespace

void rdmacc_relation_set_new_filenode(Relation rel, const RelFileNode* newrnode, char persistence,
                                      TransactionId* freezeXid, MultiXactId* minmulti) {
  if (persistence == RELPERSISTENCE_TEMP) refuse_temporary();
  CHECK(OidIsValid(newrnode->relNode));
  *freezeXid = InvalidTransactionId;
  *minmulti = InvalidMultiXactId;
  SMgrRelation file = RelationCreateStorage(*newrnode, persistence, true);
  if (persistence == RELPERSISTENCE_UNLOGGED) create_init_fork(file, newrnode);
  smgrclose(file);
  rdmacc_new_file(rel, newrnode);
}

void rdmacc_relation_nontransactional_truncate(Relation rel) {
  rdmacc_remove_all_rows(rel, GetCurrentCommandId(true));
}

void rdmacc_relation_copy_data(Relation rel, const RelFileNode*) {
  ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                  errmsg("cannot move rdmacc table \"%s\" to another tablespace",
                         RelationGetRelationName(rel)),
                  errhint("Its rows are kept in memory; the tablespace makes no difference.")));
}

/* The index is empty: the order it stands for does not exist here, so rows are copied as they
 * come. */
void rdmacc_relation_copy_for_cluster(Relation OldTable, Relation NewTable, Relation, bool,
                                      TransactionId, TransactionId* xid_cutoff,
                                      MultiXactId* multi_cutoff, double* num_tuples,
                                      double* tups_vacuumed, double* tups_recently_dead) {
  *xid_cutoff = InvalidTransactionId; /* rows have no transaction ids */
  *multi_cutoff = InvalidMultiXactId;
  *num_tuples = *tups_vacuumed = *tups_recently_dead = 0;
  CHECK(rdmacc_is_ours(OldTable) && rdmacc_is_ours(NewTable));
  *num_tuples = rdmacc_copy_all_rows(OldTable, NewTable, GetCurrentCommandId(true));
}

/* The engine frees what no transaction sees any more by itself. ALTER TABLE may have given the
 * relation a relfrozenxid though it has no transaction ids: it is kept from growing old. */
void rdmacc_relation_vacuum(Relation rel, struct VacuumParams*, BufferAccessStrategy) {
  const double rows = rdmacc_estimated_rows(rel);
  TransactionId frozen = InvalidTransactionId;
  MultiXactId multi = InvalidMultiXactId;
  if (TransactionIdIsNormal(rel->rd_rel->relfrozenxid))
    frozen = GetOldestNonRemovableTransactionId(rel);
  if (MultiXactIdIsValid(rel->rd_rel->relminmxid)) multi = GetOldestMultiXactId();
  vac_update_relstats(rel, static_cast<BlockNumber>(block_count(rel)), rows, 0,
                      rel->rd_rel->relhasindex, frozen, multi, nullptr, nullptr, false);
  pgstat_report_vacuum(RelationGetRelid(rel), false, static_cast<PgStat_Counter>(rows), 0);
  rdmacc_rows_reported(rel);
}

bool rdmacc_scan_analyze_next_block(TableScanDesc base, BlockNumber blockno, BufferAccessStrategy) {
  auto* scan = reinterpret_cast<RdmaccScan*>(base);
  Relation relation = base->rs_rd;
  if (scan->sample_rows_per_block == 0) {
    scan->sample_rows_per_block = rows_per_block(relation);
    TupleTableSlot* slot = MakeSingleTupleTableSlot(RelationGetDescr(relation), &TTSOpsHeapTuple);
    for (uint64 i = 0; i < scan->sample_rows_per_block * blockno; i++) {
      if (!rdmacc_scan_next(scan, slot)) break;
    }
    ExecDropSingleTupleTableSlot(slot);
  } else {
    scan->sample_rows_left = 0;
  }
  scan->sample_rows_left = scan->sample_rows_per_block;
  scan->sample_last_block = blockno + 1 >= block_count(relation);
  return true;
}

bool rdmacc_scan_analyze_next_tuple(TableScanDesc base, TransactionId, double* liverows,
                                    double* deadrows, TupleTableSlot* slot) {
  auto* scan = reinterpret_cast<RdmaccScan*>(base);
  (void)deadrows;
  CHECK(scan->sample_rows_per_block > 0); /* a block was begun */
  if (!scan->sample_last_block && scan->sample_rows_left == 0) return false;
  if (!rdmacc_scan_next(scan, slot)) return false;
  if (scan->sample_rows_left > 0) scan->sample_rows_left--;
  *liverows += 1;
  return true;
}

double rdmacc_index_build_range_scan(Relation table_rel, Relation index_rel,
                                     struct IndexInfo* index_info, bool, bool, bool, BlockNumber,
                                     BlockNumber, IndexBuildCallback, void*, TableScanDesc scan) {
  if (IsParallelWorker()) return 0;
  /* No tuple goes into the btree; what is reported becomes the table's row count. A scan that the
   * caller has begun only checks whether the file has what it should. */
  const double unchanged = Max(table_rel->rd_rel->reltuples, 0.0);
  if (scan != nullptr) {
    rdmacc_scan_end(scan);
    return unchanged;
  }
  rdmacc_check_index(table_rel, index_rel);
  if (index_rel->rd_index->indisprimary) {
    const double rows = rdmacc_key_by_index(table_rel, index_rel);
    if (!rdmacc_should_have_entries(table_rel, index_rel)) return rows;
  }
  return rdmacc_build_index(table_rel, index_rel, index_info);
}

void rdmacc_index_validate_scan(Relation table_rel, Relation index_rel, struct IndexInfo*, Snapshot,
                                struct ValidateIndexState*) {
  rdmacc_complete_index(table_rel, index_rel);
}

uint64 rdmacc_relation_size(Relation rel, ForkNumber forkNumber) {
  if (forkNumber != MAIN_FORKNUM && forkNumber != InvalidForkNumber) return 0;
  return block_count(rel) * BLCKSZ;
}

void rdmacc_relation_estimate_size(Relation rel, int32* attr_widths, BlockNumber* pages,
                                   double* tuples, double* allvisfrac) {
  table_block_relation_estimate_size(rel, attr_widths, pages, tuples, allvisfrac, kRowOverhead,
                                     kPageUsable);
  /* How many rows there are is known better than by their density in pages that are none; of a
   * table that was never looked at PostgreSQL expects some. */
  const double rows = rdmacc_estimated_rows(rel);
  if (rel->rd_rel->reltuples >= 0 || rows > *tuples) *tuples = rows;
  const double memory_pages = ceil(*tuples / kRowsPerPageRead);
  *pages = Min(*pages, static_cast<BlockNumber>(Min(memory_pages, MaxBlockNumber)));
  if (rel->rd_rel->relhasindex && OidIsValid(RelationGetPrimaryKeyIndex(rel))) {
    *pages = Max(*pages, kPagesMin);
  }
  *allvisfrac = 1; /* index-only scans never look at rows */
}
