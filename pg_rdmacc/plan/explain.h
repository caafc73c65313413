/* What EXPLAIN says of the custom scans. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "commands/explain.h"

/* What every scan says, with the round trips that it took. */
void rdmacc_explain_scan(uint64 round_trips, ExplainState* es);

void rdmacc_explain_lookup(CustomScanState* node, List* ancestors, ExplainState* es);
void rdmacc_explain_prefetch(CustomScanState* node, List* ancestors, ExplainState* es);
}
