/* The entries that an index has to have: of all rows of its table, in the index's order. For
 * building an index, and for comparing one with the rows. */
#pragma once
#include "pg_rdmacc/index/entry_sort.h"

extern "C" {

/* Reads all rows in the caller's transaction; *rows (NULL: not wanted): how many the table has,
 * those that a partial index leaves out included. */
RdmaccEntrySort* rdmacc_sort_entries(Relation relation, const RdmaccIndex* index, double* rows);
}
