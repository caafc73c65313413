/* Files, sizes, statistics and copies: the callbacks of tableam.h that are not about single rows.
 *
 * ANALYZE samples blocks. An engine table has none, so it gets as many pseudo blocks as its rows
 * would need, which a sampling scan counts off in the order in which the engine gives the rows. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "access/tableam.h"
#include "commands/vacuum.h"

void rdmacc_relation_set_new_filenode(Relation rel, const RelFileNode* newrnode, char persistence,
                                      TransactionId* freezeXid, MultiXactId* minmulti);
void rdmacc_relation_nontransactional_truncate(Relation rel);
void rdmacc_relation_copy_data(Relation rel, const RelFileNode* newrnode);
/* tableam.h names the first two parameters the other way round than its caller fills them. */
void rdmacc_relation_copy_for_cluster(Relation OldTable, Relation NewTable, Relation OldIndex,
                                      bool use_sort, TransactionId OldestXmin,
                                      TransactionId* xid_cutoff, MultiXactId* multi_cutoff,
                                      double* num_tuples, double* tups_vacuumed,
                                      double* tups_recently_dead);
void rdmacc_relation_vacuum(Relation rel, struct VacuumParams* params,
                            BufferAccessStrategy bstrategy);
bool rdmacc_scan_analyze_next_block(TableScanDesc scan, BlockNumber blockno,
                                    BufferAccessStrategy bstrategy);
bool rdmacc_scan_analyze_next_tuple(TableScanDesc scan, TransactionId OldestXmin, double* liverows,
                                    double* deadrows, TupleTableSlot* slot);
double rdmacc_index_build_range_scan(Relation table_rel, Relation index_rel,
                                     struct IndexInfo* index_info, bool allow_sync, bool anyvisible,
                                     bool progress, BlockNumber start_blockno,
                                     BlockNumber numblocks, IndexBuildCallback callback,
                                     void* callback_state, TableScanDesc scan);
void rdmacc_index_validate_scan(Relation table_rel, Relation index_rel,
                                struct IndexInfo* index_info, Snapshot snapshot,
                                struct ValidateIndexState* state);
uint64 rdmacc_relation_size(Relation rel, ForkNumber forkNumber);
void rdmacc_relation_estimate_size(Relation rel, int32* attr_widths, BlockNumber* pages,
                                   double* tuples, double* allvisfrac);
}
