/* The state of a RdmaccKeyLookup node, and its execution. */
#pragma once
#include "pg_rdmacc/handle.h"
#include "pg_rdmacc/relation.h"

extern "C" {
#include "nodes/execnodes.h"

typedef struct RdmaccKeyLookup {
  CustomScanState custom; /* first */
  List* values;           /* ExprStates: one per key column, or one of an array */
  List* types;            /* of the values; InvalidOid: the key column's own */
  ExprState* recheck;     /* the comparisons themselves */
  Oid index;
  bool is_array;
  LockWaitPolicy wait_policy;
  MemoryContext memory; /* of the present batch */
  BridgeRow* rows;
  BridgeBytes* keys;
  size_t count;
  size_t next;
  bool started; /* handles has begun */
  bool fetched;
  uint32 table;
  RdmaccHandleStream handles;
  Bitmapset* nodes; /* that had a row */
  uint64 round_trips;
} RdmaccKeyLookup;

void rdmacc_lookup_begin(CustomScanState* node, EState* estate, int eflags);
TupleTableSlot* rdmacc_lookup_exec(CustomScanState* node);
void rdmacc_lookup_end(CustomScanState* node);
void rdmacc_lookup_rescan(CustomScanState* node);
}
