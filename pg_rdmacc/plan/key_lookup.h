/* The state of a RdmaccKeyLookup node, and its execution. */
#pragma once
#include "pg_rdmacc/relation/engine_table.h"
#include "pg_rdmacc/relation/key_layout.h"
#include "pg_rdmacc/row/handle.h"
#include "pg_rdmacc/row/row_lock.h"

extern "C" {
#include "nodes/execnodes.h"

/* A row that was looked up beforehand, by its key. */
typedef struct RdmaccPrefetchedRow {
  uint32 table; /* 0: there is none */
  BridgeBytes key;
  BridgeRow row;
} RdmaccPrefetchedRow;

typedef struct RdmaccKeyLookup {
  CustomScanState custom; /* first */
  List* values;           /* ExprStates: one per key column, or one of an array */
  List* types;            /* of the values; InvalidOid: the key column's own */
  ExprState* recheck;     /* the comparisons themselves, if it compares */
  Oid index;
  bool is_array;
  bool compares; /* a row's values with those it is wanted by */
  RdmaccRowMark mark;
  bool to_write;                  /* rows that others have locked are in its way */
  MemoryContext memory;           /* of the present batch */
  StringInfoData key;             /* the only one, without an array */
  RdmaccPrefetchedRow prefetched; /* by a RdmaccKeyPrefetch, which owns the bytes */
  BridgeRow* rows;
  BridgeBytes* keys;
  size_t count;
  int64 place; /* of the row that was returned last; -1: before all, count: behind them */
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

/* Between two executions of the same plan: it holds nothing of the first. */
void rdmacc_lookup_pause(RdmaccKeyLookup* lookup);

/* The engine table, which must be keyed as the lookup's plan says. Enters the engine. */
RdmaccTable rdmacc_lookup_table(const RdmaccKeyLookup* lookup);

/* Makes the key of the values, in a `key` that is empty; false when one of them is null: then no
 * row matches. `values` are evaluated in `context`. */
bool rdmacc_lookup_make_key(const RdmaccKeyLookup* lookup, const RdmaccKeyLayout* layout,
                            const List* values, ExprContext* context, StringInfo key);

/* Looks up keys that are given, `rows` one by one, all requests outstanding; returns the number of
 * round trips that it took. */
uint64 rdmacc_lookup_many(const RdmaccKeyLookup* lookup, uint32 table, const BridgeBytes* keys,
                          size_t count, BridgeRow* rows);

/* Notes scans of the primary key's index in PostgreSQL's statistics. */
void rdmacc_lookup_count_scans(const RdmaccKeyLookup* lookup, size_t count);
}
