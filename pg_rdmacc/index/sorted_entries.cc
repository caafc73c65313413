#include "pg_rdmacc/index/sorted_entries.h"

#include "pg_rdmacc/codec/row_codec.h"
#include "pg_rdmacc/index/index_entries.h"
#include "pg_rdmacc/index/index_row.h"
#include "pg_rdmacc/relation/engine_table.h"
#include "pg_rdmacc/row/row_load.h"
#include "pg_rdmacc/row/scan_rows.h"

extern "C" {
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "port/pg_bswap.h"
#include "utils/memutils.h"
#include "utils/typcache.h"
}

namespace {

/* What is sorted: the beginning of an entry as a number, the entry, and whether one of its columns
 * is NULL. PostgreSQL's sort compares the first eight bytes of what it sorts as one number, and the
 * rest where they are the same. An entry's own first bytes are the first column's marker and mostly
 * the upper ones of an integer: rows would differ in none of them. The last byte does not change
 * the order, since no entry is the beginning of another one. */
constexpr size_t kBeginningBytes = sizeof(uint64), kNullByte = 1;

/* In the order of entries. The marker says no more than whether the column is NULL, of which those
 * of one index are either first or last. */
uint64 beginning_of(const RdmaccIndex* index, BridgeBytes entry) {
  CHECK(entry.size > 1 && index->column_count > 0);
  uint64 behind_marker = 0;
  memcpy(&behind_marker, entry.data + 1, Min(entry.size - 1, sizeof(behind_marker)));
  const bool has_value = entry.data[0] == RDMACC_INDEX_VALUE;
  const uint64 above = has_value == index->columns[0].nulls_first ? 1 : 0;
  return pg_hton64(above << 63 | pg_ntoh64(behind_marker) >> 1);
}

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
  const bool has_null = rdmacc_append_index_columns(&columns, relation, index, values, nulls);
  const BridgeBytes entry = rdmacc_index_entry(&columns, row->key);
  const uint64 beginning = beginning_of(index, entry);
  const Size size = VARHDRSZ + kBeginningBytes + entry.size + kNullByte;
  auto* bytes = static_cast<char*>(palloc(size));
  SET_VARSIZE(bytes, size);
  memcpy(VARDATA(bytes), &beginning, kBeginningBytes);
  memcpy(VARDATA(bytes) + kBeginningBytes, entry.data, entry.size);
  bytes[size - kNullByte] = static_cast<char>(has_null);
  tuplesort_putdatum(sort, PointerGetDatum(bytes), false);
}

double sort_rows(Tuplesortstate* sort, Relation relation, const RdmaccIndex* index) {
  double count = 0;
  const uint32 table = rdmacc_table(relation)->id;
  if (rdmacc_is_still_empty(table)) return count;
  MemoryContext workspace =
      AllocSetContextCreate(CurrentMemoryContext, "rdmacc index entries", ALLOCSET_DEFAULT_SIZES);
  rdmacc_rows_settle(relation);
  RdmaccRows rows;
  rdmacc_rows_begin(&rows, table, RDMACC_EVERY_COMMAND);
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
  CHECK(VARSIZE_ANY_EXHDR(bytes) > kBeginningBytes + kNullByte);
  const char* entry = VARDATA_ANY(bytes) + kBeginningBytes;
  const size_t size = VARSIZE_ANY_EXHDR(bytes) - kBeginningBytes - kNullByte;
  *out = {.entry = {entry, size}, .has_null = entry[size] != 0};
  return true;
}

void rdmacc_sorted_entries_end(RdmaccSortedEntries* sorted) {
  forget_present(sorted);
  tuplesort_end(sorted->sort);
}
