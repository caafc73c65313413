/* What PostgreSQL's planner may know of secondary indexes, so that it makes its own index paths of
 * them at honest prices. */
#pragma once
#include "pg_rdmacc/pg_rdmacc.h"

extern "C" {
#include "nodes/pathnodes.h"

/* `table`: the index's. */
void rdmacc_describe_to_planner(IndexOptInfo* index, Oid table);

/* True for a path over a secondary index. */
bool rdmacc_is_secondary_path(const IndexPath* path);
}
