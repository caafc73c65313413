#include "pg_rdmacc/index/sorted_entries.h"

#include "pg_rdmacc/codec/row_codec.h"
#include "pg_rdmacc/index/index_entries.h"
#include "pg_rdmacc/index/index_row.h"
#include "pg_rdmacc/relation/engine_table.h"
#include "pg_rdmacc/row/scan_rows.h"

extern "C" {
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/typcache.h"
}

namespace {

/* What is sorted: an entry, then the size of its columns and whether one of them is NULL. It does
 * not change the order, since no entry is the beginning of another one. */
struct Trailer {
  int32 columns_size;
  bool has_null;
};

/* Nothing for a row that a partial index leaves out. */
void sort_row(Tuplesortstate* sort, Relation relation, const RdmaccIndex* index,
              const BridgeRow* row) {
  Datum values[INDEX_MAX_KEYS];
  bool nulls[INDEX_MAX_KEYS];
  if (!rdmacc_index_row_of_tuple(index, relation, rdmacc_row_decode(row->row), values, nulls)) {
    return;
  }
  StringInfoData columns;
  initStringInfo(&columns);
  Trailer trailer = {};
  trailer.has_null = rdmacc_append_index_columns(&columns, relation, index, values, nulls);
  trailer.columns_size = columns.len;
  const BridgeBytes entry = rdmacc_index_entry(&columns, row->key);
  const Size size = VARHDRSZ + entry.size + sizeof(Trailer);
  auto* bytes = static_cast<char*>(palloc(size));
  SET_VARSIZE(bytes, size);
  memcpy(bytes + VARHDRSZ, entry.data, entry.size);
  memcpy(bytes + VARHDRSZ + entry.size, &trailer, sizeof(Trailer));
  tuplesort_putdatum(sort, PointerGetDatum(bytes), false);
}

double sort_rows(Tuplesortstate* sort, Relation relation, const RdmaccIndex* index) {
  double count = 0;
  MemoryContext workspace =
      AllocSetContextCreate(CurrentMemoryContext, "rdmacc index entries", ALLOCSET_DEFAULT_SIZES);
  rdmacc_rows_settle(relation);
  RdmaccRows rows;
  rdmacc_rows_begin(&rows, rdmacc_table(relation)->id, RDMACC_EVERY_COMMAND);
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

void forget_present(RdmaccSortedEntries* sorted) {
  if (sorted->present != 0) pfree(DatumGetPointer(sorted->present));
  sorted->present = 0;
}

}  // namespace

void rdmacc_sort_entries(Relation relation, const RdmaccIndex* index, RdmaccSortedEntries* sorted) {
  const TypeCacheEntry* type = lookup_type_cache(BYTEAOID, TYPECACHE_LT_OPR);
  sorted->sort = tuplesort_begin_datum(BYTEAOID, type->lt_opr, InvalidOid, false,
                                       maintenance_work_mem, nullptr, TUPLESORT_NONE);
  sorted->present = 0;
  sorted->rows = sort_rows(sorted->sort, relation, index);
  tuplesort_performsort(sorted->sort);
}

bool rdmacc_next_sorted_entry(RdmaccSortedEntries* sorted, RdmaccSortedEntry* out) {
  forget_present(sorted);
  bool is_null = false;
  if (!tuplesort_getdatum(sorted->sort, true, &sorted->present, &is_null, nullptr)) {
    sorted->present = 0;
    return false;
  }
  /* A copy for each call, which was never stored elsewhere: detoasting returns it as it is. */
  struct varlena* bytes = PG_DETOAST_DATUM_PACKED(sorted->present);
  CHECK(VARSIZE_ANY_EXHDR(bytes) > sizeof(Trailer));
  const size_t size = VARSIZE_ANY_EXHDR(bytes) - sizeof(Trailer);
  Trailer trailer;
  memcpy(&trailer, VARDATA_ANY(bytes) + size, sizeof(Trailer));
  *out = {.entry = {VARDATA_ANY(bytes), size},
          .columns_size = trailer.columns_size,
          .has_null = trailer.has_null};
  return true;
}

void rdmacc_sorted_entries_end(RdmaccSortedEntries* sorted) {
  forget_present(sorted);
  tuplesort_end(sorted->sort);
}
