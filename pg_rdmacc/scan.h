/* The custom scan RdmaccKeyLookup: rows by whole primary keys, all of a batch in one exchange with
 * the nodes. */
#pragma once
#include "pg_rdmacc/planner.h"

extern "C" {

/* A path that does what the index path would do. */
Path* rdmacc_key_lookup_path(const IndexPath* path, const RdmaccKeyMatch* match);
}
