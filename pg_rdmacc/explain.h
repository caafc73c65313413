/* What EXPLAIN says of a RdmaccKeyLookup and of a RdmaccKeyPrefetch. */
#pragma once
#include "pg_rdmacc/key_lookup.h"

extern "C" {
#include "commands/explain.h"

void rdmacc_explain_lookup(CustomScanState* node, List* ancestors, ExplainState* es);
void rdmacc_explain_prefetch(CustomScanState* node, List* ancestors, ExplainState* es);
}
