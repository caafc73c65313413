#include "pg_rdmacc/index/entry_sort.h"

#include <algorithm>

#include "pg_rdmacc/index/index_entries.h"

extern "C" {
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "port/pg_bswap.h"
#include "utils/memutils.h"
#include "utils/tuplesort.h"
#include "utils/typcache.h"
}

namespace {

/* An entry in memory, with its first bytes beside each other, so that a comparison mostly touches
 * nothing else. Its own first byte is the first column's marker. */
struct KeptEntry {
  uint64 first;  /* beginning_of() */
  uint64 second; /* bytes from kSecondAt on */
  const char* bytes;
  uint32 size;
  bool has_null;
};

constexpr size_t kSecondAt = 8, kFurtherAt = 16;
constexpr Size kBlockBytes = 256 * 1024; /* of entries; a longer one has a block of its own */
constexpr Size kEntriesAtFirst = 1024;
/* A sort in memory cannot be interrupted: it takes half a second for as much as this. */
constexpr Size kInMemoryMax = 256 * 1024 * 1024;
constexpr size_t kBeginningBytes = sizeof(uint64), kNullByte = 1;

uint64 number_at(BridgeBytes entry, size_t at) {
  uint64 number = 0;
  if (entry.size > at) memcpy(&number, entry.data + at, Min(entry.size - at, sizeof(number)));
  return pg_ntoh64(number);
}

/* In the order of entries. The marker says no more than whether the column is NULL, of which those
 * of one index are either first or last. */
uint64 beginning_of(const RdmaccIndex* index, BridgeBytes entry) {
  CHECK(entry.size > 1 && index->column_count > 0);
  const bool has_value = entry.data[0] == RDMACC_INDEX_VALUE;
  const uint64 above = has_value == index->columns[0].nulls_first ? 1 : 0;
  return above << 63 | number_at(entry, 1) >> 1;
}

/* No entry is the beginning of another one, but the same one may be there twice. */
bool comes_before(const KeptEntry& one, const KeptEntry& other) {
  if (one.first != other.first) return one.first < other.first;
  if (one.second != other.second) return one.second < other.second;
  if (one.size <= kFurtherAt || other.size <= kFurtherAt) return one.size < other.size;
  const int order = memcmp(one.bytes + kFurtherAt, other.bytes + kFurtherAt,
                           Min(one.size, other.size) - kFurtherAt);
  return order != 0 ? order < 0 : one.size < other.size;
}

}  // namespace

struct RdmaccEntrySort {
  const RdmaccIndex* index;
  MemoryContext memory;
  KeptEntry* entries;
  Size count;
  Size room;
  Size next;
  char* block; /* where the next entry's bytes go */
  Size block_left;
  Size bytes;            /* that were allocated */
  Tuplesortstate* files; /* NULL: in memory */
  Datum present;         /* of the files' sort, what the last one points into; 0: nothing */
};

namespace {

char* room_for(RdmaccEntrySort* sort, Size size) {
  CHECK(size > 0);
  if (size > sort->block_left) {
    const Size block = Max(size, kBlockBytes);
    sort->block = static_cast<char*>(MemoryContextAllocHuge(sort->memory, block));
    sort->block_left = block;
    sort->bytes += block;
  }
  char* room = sort->block;
  sort->block += size;
  sort->block_left -= size;
  return room;
}

KeptEntry* add_entry(RdmaccEntrySort* sort) {
  if (sort->count == sort->room) {
    const Size room = Max(sort->room * 2, kEntriesAtFirst);
    const Size size = room * sizeof(KeptEntry);
    sort->entries = static_cast<KeptEntry*>(sort->entries == nullptr
                                                ? MemoryContextAllocHuge(sort->memory, size)
                                                : repalloc_huge(sort->entries, size));
    sort->bytes += (room - sort->room) * sizeof(KeptEntry);
    sort->room = room;
  }
  return &sort->entries[sort->count++];
}

bool fits_in_memory(const RdmaccEntrySort* sort) {
  const Size allowed = Min(static_cast<Size>(maintenance_work_mem) * 1024, kInMemoryMax);
  return sort->bytes <= allowed;
}

/* What is sorted in files: the beginning of an entry as a number, the entry, and whether it has a
 * NULL. PostgreSQL's sort compares the first eight bytes of what it sorts as one number, in which
 * rows would hardly differ: an entry's own are a marker and mostly the upper bytes of an integer.
 * The last byte does not change the order. */
void add_to_files(RdmaccEntrySort* sort, BridgeBytes entry, uint64 beginning, bool has_null) {
  const Size size = VARHDRSZ + kBeginningBytes + entry.size + kNullByte;
  auto* bytes = static_cast<char*>(palloc(size));
  const uint64 ordered = pg_hton64(beginning);
  SET_VARSIZE(bytes, size);
  memcpy(VARDATA(bytes), &ordered, kBeginningBytes);
  memcpy(VARDATA(bytes) + kBeginningBytes, entry.data, entry.size);
  bytes[size - kNullByte] = static_cast<char>(has_null);
  tuplesort_putdatum(sort->files, PointerGetDatum(bytes), false);
  pfree(bytes);
}

void go_on_in_files(RdmaccEntrySort* sort) {
  /* A row's memory may be the current one. */
  const MemoryContext previous = MemoryContextSwitchTo(GetMemoryChunkContext(sort));
  CHECK(sort->files == nullptr);
  const TypeCacheEntry* type = lookup_type_cache(BYTEAOID, TYPECACHE_LT_OPR);
  sort->files = tuplesort_begin_datum(BYTEAOID, type->lt_opr, InvalidOid, false,
                                      maintenance_work_mem, nullptr, TUPLESORT_NONE);
  MemoryContextSwitchTo(previous);
  for (Size i = 0; i < sort->count; i++) {
    CHECK_FOR_INTERRUPTS();
    const KeptEntry* kept = &sort->entries[i];
    add_to_files(sort, {kept->bytes, kept->size}, kept->first, kept->has_null);
  }
  MemoryContextReset(sort->memory);
  sort->entries = nullptr;
  sort->count = sort->room = sort->block_left = 0;
}

void forget_present(RdmaccEntrySort* sort) {
  if (sort->present != 0) pfree(DatumGetPointer(sort->present));
  sort->present = 0;
}

bool next_of_files(RdmaccEntrySort* sort, RdmaccSortedEntry* out) {
  forget_present(sort);
  bool is_null = false;
  if (!tuplesort_getdatum(sort->files, true, &sort->present, &is_null, nullptr)) {
    sort->present = 0;
    return false;
  }
  /* A copy for each call, which was never stored elsewhere: detoasting returns it as it is. */
  struct varlena* bytes = PG_DETOAST_DATUM_PACKED(sort->present);
  CHECK(VARSIZE_ANY_EXHDR(bytes) > kBeginningBytes + kNullByte);
  const char* entry = VARDATA_ANY(bytes) + kBeginningBytes;
  const size_t size = VARSIZE_ANY_EXHDR(bytes) - kBeginningBytes - kNullByte;
  *out = {.entry = {entry, size}, .has_null = entry[size] != 0};
  return true;
}

}  // namespace

RdmaccEntrySort* rdmacc_entry_sort_begin(const RdmaccIndex* index) {
  auto* sort = static_cast<RdmaccEntrySort*>(palloc0(sizeof(RdmaccEntrySort)));
  sort->index = index;
  sort->memory =
      AllocSetContextCreate(CurrentMemoryContext, "rdmacc entry sort", ALLOCSET_DEFAULT_SIZES);
  return sort;
}

void rdmacc_entry_sort_add(RdmaccEntrySort* sort, const RdmaccSortedEntry* entry) {
  CHECK(sort->next == 0 && entry->entry.size <= PG_UINT32_MAX);
  const BridgeBytes bytes = entry->entry;
  const uint64 beginning = beginning_of(sort->index, bytes);
  if (sort->files != nullptr) return add_to_files(sort, bytes, beginning, entry->has_null);
  char* copy = room_for(sort, bytes.size);
  memcpy(copy, bytes.data, bytes.size);
  *add_entry(sort) = {.first = beginning,
                      .second = number_at(bytes, kSecondAt),
                      .bytes = copy,
                      .size = static_cast<uint32>(bytes.size),
                      .has_null = entry->has_null};
  if (!fits_in_memory(sort)) go_on_in_files(sort);
}

void rdmacc_entry_sort_perform(RdmaccEntrySort* sort) {
  CHECK(sort->next == 0 && sort->count <= sort->room);
  if (sort->files != nullptr) return tuplesort_performsort(sort->files);
  std::sort(sort->entries, sort->entries + sort->count, comes_before);
}

bool rdmacc_entry_sort_next(RdmaccEntrySort* sort, RdmaccSortedEntry* out) {
  if (sort->files != nullptr) return next_of_files(sort, out);
  if (sort->next == sort->count) return false;
  const KeptEntry* kept = &sort->entries[sort->next++];
  *out = {.entry = {kept->bytes, kept->size}, .has_null = kept->has_null};
  return true;
}

void rdmacc_entry_sort_end(RdmaccEntrySort* sort) {
  forget_present(sort);
  if (sort->files != nullptr) tuplesort_end(sort->files);
  MemoryContextDelete(sort->memory);
  pfree(sort);
}
