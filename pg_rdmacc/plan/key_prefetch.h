/* The custom scan RdmaccKeyPrefetch: the outer side of a nested loop whose inner side is a
 * RdmaccKeyLookup. It reads outer rows ahead, looks the keys of all of them up in one exchange with
 * the nodes, and then returns the rows one by one, in their order; the lookup, which the loop asks
 * for each of them, finds its row prefetched. So PostgreSQL's nested loop does the joining, of
 * every kind that it knows, with all its conditions.
 *
 * Batches grow from one row to kRowsMax, so that a LIMIT above reads at most as much in vain as it
 * has used. Under EvalPlanQual rows pass one by one, and the lookup does its work itself. */
#pragma once
#include "pg_rdmacc/plan/key_lookup.h"
#include "pg_rdmacc/plan/scan.h"

extern "C" {

typedef struct RdmaccKeyPrefetch {
  CustomScanState custom; /* first */
  List* values;           /* ExprStates of the key's columns, over an outer row */
  int state_param;        /* where the lookup is found */
  RdmaccKeyLookup* lookup;
  MemoryContext memory; /* of the present batch */
  MinimalTuple* outer_rows;
  int* key_numbers; /* by outer row; -1: its key is null or too long to be there */
  BridgeBytes* keys;
  BridgeRow* rows; /* by key */
  uint32 table;
  size_t count; /* of outer rows */
  size_t next;
  size_t wanted; /* of the next batch */
  bool ended;    /* the outer side has no more rows */
  uint64 batches;
  uint64 lookups;
  uint64 round_trips;
} RdmaccKeyPrefetch;

/* A path that gives the rows of `outer`, for a lookup of those parts. */
Path* rdmacc_key_prefetch_path(Path* outer, const RdmaccLookupParts* parts);

void rdmacc_key_prefetch_init(void);
}
