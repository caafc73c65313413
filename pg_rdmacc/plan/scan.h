/* The custom scan RdmaccKeyLookup: rows by whole primary keys, all of a batch in one exchange with
 * the nodes. */
#pragma once
#include "pg_rdmacc/plan/planner.h"

extern "C" {
#include "nodes/plannodes.h"

void rdmacc_scan_init(void);

/* A path that does what the index path would do. */
Path* rdmacc_key_lookup_path(PlannerInfo* root, const IndexPath* path, const RdmaccKeyMatch* match);

/* What others may know of such a path, and its plan. */
typedef struct RdmaccLookupParts {
  List* values; /* as in RdmaccKeyMatch */
  bool is_array;
  /* The PARAM_EXEC parameter in which the node leaves its state for a RdmaccKeyPrefetch, which
   * looks keys up beforehand; -1 when no key depends on other tables. */
  int state_param;
} RdmaccLookupParts;

/* Is the node of a plan a key lookup? */
bool rdmacc_is_key_lookup(const Plan* plan);

/* False when the path is no key lookup. */
bool rdmacc_key_lookup_parts(const Path* path, RdmaccLookupParts* parts);
}
