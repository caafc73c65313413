#include "pg_rdmacc/relation/row_estimate.h"

extern "C" {
#include "access/xact.h"
#include "pgstat.h"
#include "storage/proc.h"
}

namespace {

/* What this session has done and not reported yet. */
struct Pending {
  double rows = 0;        /* that it has added, or removed */
  bool truncated = false; /* first; counts from before do not hold */
};

Pending pending_rows(Relation relation) {
  Pending pending;
  if (!pgstat_should_count_relation(relation)) return pending;
  const PgStat_TableStatus* status = relation->pgstat_info;
  for (const PgStat_TableXactStatus* level = status->trans; level != nullptr && !pending.truncated;
       level = level->upper) {
    pending.rows += static_cast<double>(level->tuples_inserted - level->tuples_deleted);
    pending.truncated = level->truncdropped;
  }
  if (pending.truncated) return pending;
  pending.rows += static_cast<double>(status->t_counts.t_delta_live_tuples);
  pending.truncated = status->t_counts.t_truncdropped;
  return pending;
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

/* ---- What PostgreSQL's statistics say: to read them costs a fifth of planning a small statement,
 * so that they are asked once a second, or when this session's own share has changed or been
 * reported, which takes the relation's counts from it. */

constexpr int kReadingsKept = 64;
constexpr int64 kReadingUsecs = 1000000;

struct Reading {
  Oid relation;
  TimestampTz at;
  const PgStat_TableStatus* counts; /* of this session; they only grow until they are reported */
  int64 counted;
  double pending;
  double live; /* < 0: not known */
};

Reading readings[kReadingsKept]; /* by OID */

int64 counted(const PgStat_TableStatus* status) {
  const PgStat_TableCounts* counts = &status->t_counts;
  return counts->t_numscans + counts->t_tuples_returned + counts->t_tuples_fetched +
         counts->t_tuples_inserted + counts->t_tuples_updated + counts->t_tuples_deleted;
}

/* Live rows; < 0: not known, as after a crash, when PostgreSQL's statistics begin anew. */
double read_statistics(Oid relation) {
  const PgStat_StatTabEntry* statistics = pgstat_fetch_stat_tabentry(relation);
  const bool known =
      statistics != nullptr && (statistics->n_live_tuples > 0 || statistics->tuples_inserted > 0 ||
                                statistics->tuples_deleted > 0 || statistics->vacuum_count > 0 ||
                                statistics->analyze_count > 0);
  return known ? static_cast<double>(statistics->n_live_tuples) : -1;
}

double live_rows(Relation relation, double pending) {
  const Oid oid = RelationGetRelid(relation);
  if (!pgstat_should_count_relation(relation)) return read_statistics(oid);
  const PgStat_TableStatus* counts = relation->pgstat_info;
  const TimestampTz now = GetCurrentTimestamp();
  Reading* reading = &readings[oid % kReadingsKept];
  const bool holds = reading->relation == oid && reading->counts == counts &&
                     reading->counted <= counted(counts) && reading->pending == pending &&
                     now >= reading->at && now - reading->at < kReadingUsecs;
  if (!holds) *reading = {oid, now, counts, counted(counts), pending, read_statistics(oid)};
  reading->counted = counted(counts);
  return reading->live;
}

}  // namespace

double rdmacc_estimated_rows(Relation relation) {
  if (reported.relation == RelationGetRelid(relation) && reported.transaction == MyProc->lxid &&
      reported.command == GetCurrentCommandId(false)) {
    return reported.rows;
  }
  const Pending pending = pending_rows(relation);
  if (pending.truncated) return Max(pending.rows, 0.0);
  const double live = live_rows(relation, pending.rows);
  const double known = relation->rd_rel->reltuples;
  return Max(live < 0 ? Max(known, pending.rows) : live + pending.rows, 0.0);
}

void rdmacc_rows_reported(Relation relation) {
  const double rows = rdmacc_estimated_rows(relation);
  if (!pgstat_should_count_relation(relation)) return;
  reported = {RelationGetRelid(relation), MyProc->lxid, GetCurrentCommandId(false), rows};
  readings[RelationGetRelid(relation) % kReadingsKept] = {};
  PgStat_TableCounts* counts = &relation->pgstat_info->t_counts;
  /* A truncation that is reported later takes away whatever was reported before. */
  if (!counts->t_truncdropped) counts->t_delta_live_tuples = 0;
}
