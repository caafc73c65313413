#include "pg_rdmacc/index/sorted_entries.h"

#include "pg_rdmacc/codec/row_codec.h"
#include "pg_rdmacc/index/index_entries.h"
#include "pg_rdmacc/index/index_row.h"
#include "pg_rdmacc/relation/engine_table.h"
#include "pg_rdmacc/row/row_load.h"
#include "pg_rdmacc/row/scan_rows.h"

extern "C" {
#include "miscadmin.h"
#include "utils/memutils.h"
}

namespace {

/* Nothing for a row that a partial index leaves out. */
void sort_row(RdmaccEntrySort* sort, Relation relation, const RdmaccIndex* index,
              const BridgeRow* row) {
  Datum values[INDEX_MAX_KEYS];
  bool nulls[INDEX_MAX_KEYS];
  if (!rdmacc_index_row_of_tuple(index, relation, rdmacc_row_decode(row->row), values, nulls)) {
    return;
  }
  StringInfoData columns;
  initStringInfo(&columns);
  const bool has_null = rdmacc_append_index_columns(&columns, relation, index, values, nulls);
  const RdmaccSortedEntry entry = {.entry = rdmacc_index_entry(&columns, row->key),
                                   .has_null = has_null};
  rdmacc_entry_sort_add(sort, &entry);
}

double sort_rows(RdmaccEntrySort* sort, Relation relation, const RdmaccIndex* index) {
  double count = 0;
  const uint32 table = rdmacc_table(relation)->id;
  if (rdmacc_is_still_empty(table)) return count;
  MemoryContext workspace =
      AllocSetContextCreate(CurrentMemoryContext, "rdmacc index entries", ALLOCSET_DEFAULT_SIZES);
  rdmacc_rows_settle(relation);
  RdmaccRows rows;
  rdmacc_rows_begin(&rows, table, RDMACC_EVERY_COMMAND);
  rows.quiet = rdmacc_is_quiet(relation);
  for (const BridgeRow* row = rdmacc_rows_next(&rows, relation); row != nullptr;
       row = rdmacc_rows_next(&rows, relation)) {
    CHECK_FOR_INTERRUPTS();
    const MemoryContext previous = MemoryContextSwitchTo(workspace);
    sort_row(sort, relation, index, row);
    MemoryContextSwitchTo(previous);
    MemoryContextReset(workspace);
    count += 1;
  }
  rdmacc_rows_end(&rows);
  MemoryContextDelete(workspace);
  return count;
}

}  // namespace

RdmaccEntrySort* rdmacc_sort_entries(Relation relation, const RdmaccIndex* index, double* rows) {
  RdmaccEntrySort* sort = rdmacc_entry_sort_begin(index);
  const double count = sort_rows(sort, relation, index);
  if (rows != nullptr) *rows = count;
  rdmacc_entry_sort_perform(sort);
  return sort;
}
