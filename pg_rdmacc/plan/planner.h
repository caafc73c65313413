/* How queries on rdmacc tables are planned: key lookups in place of index scans, parallel
 * workers for scans of whole tables. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "nodes/pathnodes.h"

void rdmacc_planner_init(void);

/* The key lookup that an index path of PostgreSQL stands for. */
typedef struct RdmaccKeyMatch {
  List* values;       /* one expression per key column; of a single column perhaps an array */
  List* types;        /* OIDs of the values' types; InvalidOid: the key column's own */
  List* clauses;      /* the comparisons, for EXPLAIN and for rechecks */
  List* restrictions; /* RestrictInfos that the lookup makes good */
  bool is_array;
  bool compares; /* rows with the same key may have other values, as those that are hashed */
} RdmaccKeyMatch;

/* False when the path does not fix every key column by equality. */
bool rdmacc_match_key(const IndexPath* path, RdmaccKeyMatch* match);

/* ---- Aggregates over a whole table, whose rows they take as the nodes hold them. */
void rdmacc_aggregate_planner_init(void);

/* ---- Parallel workers: they share scans of their leader's plan, and read no other table of ours,
 * as functions in them would. */

/* False: no plan for the query may count on them. `ours`: it names a table of ours. */
bool rdmacc_may_have_workers(Query* query, int options, bool ours);

/* ---- Joins to a table by its whole primary key: nested loops whose keys are looked up in
 * batches. */
void rdmacc_join_planner_init(void);

/* ---- What PostgreSQL's planner may know of secondary indexes, so that it makes its own index
 * paths of them at realistic costs. */

/* `table`: the index's. */
void rdmacc_describe_to_planner(IndexOptInfo* index, Oid table);

/* amcostestimate of what has been described. */
void rdmacc_index_scan_cost(PlannerInfo* root, IndexPath* path, double loop_count, Cost* startup,
                            Cost* total, Selectivity* selectivity, double* correlation,
                            double* pages);
}
