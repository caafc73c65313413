#include "pg_rdmacc/relation/row_estimate.h"

extern "C" {
#include "access/xact.h"
#include "pgstat.h"
#include "storage/proc.h"
}

namespace {

/* Rows that this session has added, or removed, and not reported yet. */
double pending_rows(Relation relation) {
  if (!pgstat_should_count_relation(relation)) return 0;
  const PgStat_TableStatus* status = relation->pgstat_info;
  auto rows = static_cast<double>(status->t_counts.t_delta_live_tuples);
  for (const PgStat_TableXactStatus* level = status->trans; level != nullptr;
       level = level->upper) {
    rows += static_cast<double>(level->tuples_inserted - level->tuples_deleted);
  }
  return rows;
}

/* What VACUUM or ANALYZE is about to report of a table. Until it has, in the same command, neither
 * this session nor PostgreSQL's statistics count those rows. */
struct Reported {
  Oid relation;
  LocalTransactionId transaction;
  CommandId command;
  double rows;
};

Reported reported;

}  // namespace

double rdmacc_estimated_rows(Relation relation) {
  if (reported.relation == RelationGetRelid(relation) && reported.transaction == MyProc->lxid &&
      reported.command == GetCurrentCommandId(false)) {
    return reported.rows;
  }
  const PgStat_StatTabEntry* statistics = pgstat_fetch_stat_tabentry(RelationGetRelid(relation));
  const double pending = pending_rows(relation);
  /* After a crash PostgreSQL's statistics begin anew. */
  const bool known =
      statistics != nullptr && (statistics->n_live_tuples > 0 || statistics->tuples_inserted > 0 ||
                                statistics->tuples_deleted > 0 || statistics->vacuum_count > 0 ||
                                statistics->analyze_count > 0);
  if (!known) return Max(Max(relation->rd_rel->reltuples, pending), 0.0);
  return Max(static_cast<double>(statistics->n_live_tuples) + pending, 0.0);
}

void rdmacc_rows_reported(Relation relation) {
  const double rows = rdmacc_estimated_rows(relation);
  if (!pgstat_should_count_relation(relation)) return;
  reported = {RelationGetRelid(relation), MyProc->lxid, GetCurrentCommandId(false), rows};
  relation->pgstat_info->t_counts.t_delta_live_tuples = 0;
}
