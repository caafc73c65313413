/* Index-only scans: values of columns out of entries. Entries are read by the protocol as rows are,
 * and written with them, so that the rows need not be read to know that they are there. */
#pragma once
#include "pg_rdmacc/index/index_entries.h"

extern "C" {
#include "nodes/pathnodes.h"

typedef struct RdmaccIndexOnly {
  TupleDesc descriptor; /* of the index's columns, as the table's types */
  MemoryContext memory; /* of the tuple at hand */
} RdmaccIndexOnly;

/* Which columns of an index entries hold whole: those up to the first one that they do not. */
void rdmacc_describe_index_only(IndexOptInfo* index);

void rdmacc_index_only_begin(RdmaccIndexOnly* state, Relation relation, Relation index);
void rdmacc_index_only_end(RdmaccIndexOnly* state);

/* The columns of an entry, valid until the next one; NULL for those that it does not hold whole. */
HeapTuple rdmacc_index_only_tuple(RdmaccIndexOnly* state, const RdmaccIndex* index,
                                  BridgeBytes entry);
}
