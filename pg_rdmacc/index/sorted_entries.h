/* The entries that an index has to have: of all rows of its table, in the index's order. For
 * building an index, and for comparing one with the rows. */
#pragma once
#include "pg_rdmacc/index/entry_sort.h"

extern "C" {

typedef struct RdmaccSortedEntries {
  RdmaccEntrySort* sort;
  double rows; /* of the table, those that a partial index leaves out included */
} RdmaccSortedEntries;

/* Reads all rows in the caller's transaction; sorts within maintenance_work_mem and in files. */
void rdmacc_sort_entries(Relation relation, const RdmaccIndex* index, RdmaccSortedEntries* sorted);
/* False at the end. */
bool rdmacc_next_sorted_entry(RdmaccSortedEntries* sorted, RdmaccSortedEntry* out);
void rdmacc_sorted_entries_end(RdmaccSortedEntries* sorted);
}
