/* A sort of index entries: in memory as long as they fit into maintenance_work_mem, and with
 * PostgreSQL's sort, which has files, from then on. */
#pragma once
#include "pg_rdmacc/index/secondary_indexes.h"

extern "C" {

typedef struct RdmaccSortedEntry {
  BridgeBytes entry; /* valid until the next one */
  bool has_null;     /* one of its columns is */
} RdmaccSortedEntry;

typedef struct RdmaccEntrySort RdmaccEntrySort;

/* Its memory is in a context of its own, below the current one. */
RdmaccEntrySort* rdmacc_entry_sort_begin(const RdmaccIndex* index);
void rdmacc_entry_sort_add(RdmaccEntrySort* sort, const RdmaccSortedEntry* entry);
/* No more come. */
void rdmacc_entry_sort_perform(RdmaccEntrySort* sort);
/* False at the end. */
bool rdmacc_entry_sort_next(RdmaccEntrySort* sort, RdmaccSortedEntry* out);
void rdmacc_entry_sort_end(RdmaccEntrySort* sort);
}
