/* What PostgreSQL's planner may know of secondary indexes, so that it makes its own index paths of
 * them at honest prices. */
#pragma once
#include "pg_rdmacc/pg_rdmacc.h"

extern "C" {
#include "nodes/pathnodes.h"

/* `table`: the index's. */
void rdmacc_describe_to_planner(IndexOptInfo* index, Oid table);

/* amcostestimate of what has been described. */
void rdmacc_index_scan_cost(PlannerInfo* root, IndexPath* path, double loop_count, Cost* startup,
                            Cost* total, Selectivity* selectivity, double* correlation,
                            double* pages);
}
