#include "pg_rdmacc/index/entry_sort.h"

#include <algorithm>
#include <boost/sort/pdqsort/pdqsort.hpp>

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

/* An entry in memory, with the bytes beside it that most likely tell it from others, so that a
 * comparison mostly touches nothing else: those behind the beginning that all entries have in
 * common, which is a marker and, of integers, the upper bytes. */
struct KeptEntry {
  uint64 first; /* set by mark_differences() */
  uint64 second;
  const char* bytes;
  uint32 size;
  bool has_null;
};

constexpr Size kBlockBytes = 256 * 1024; /* of entries; a longer one has a block of its own */
constexpr Size kEntriesAtFirst = 1024;
/* A sort in memory cannot be interrupted: it takes half a second for as much as this. */
constexpr Size kInMemoryMax = 256 * 1024 * 1024;
constexpr size_t kBeginningBytes = sizeof(uint64), kNullByte = 1;
/* Sorted entries lie anywhere: so many are fetched ahead of the one that is asked for. */
constexpr Size kFetchedAhead = 16;

/* 0 behind its end: no entry is the beginning of another one. */
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

/* One number, compared without a branch, which would be guessed wrong every other time. A lambda: a
 * function would be called by its pointer. */
constexpr auto is_marked_before = [](const KeptEntry& one, const KeptEntry& other) {
  using Marks = unsigned __int128;
  return (static_cast<Marks>(one.first) << 64 | one.second) <
         (static_cast<Marks>(other.first) << 64 | other.second);
};

bool is_marked_alike(const KeptEntry& one, const KeptEntry& other) {
  return one.first == other.first && one.second == other.second;
}

/* Of whole entries, of which the same one may be there twice. */
bool comes_before(const KeptEntry& one, const KeptEntry& other) {
  const int order = memcmp(one.bytes, other.bytes, Min(one.size, other.size));
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
  Size in_common; /* bytes with which all entries begin */
  char* block;    /* where the next entry's bytes go */
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
void add_to_files(RdmaccEntrySort* sort, BridgeBytes entry, bool has_null) {
  const Size size = VARHDRSZ + kBeginningBytes + entry.size + kNullByte;
  auto* bytes = static_cast<char*>(palloc(size));
  const uint64 ordered = pg_hton64(beginning_of(sort->index, entry));
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
    add_to_files(sort, {kept->bytes, kept->size}, kept->has_null);
  }
  MemoryContextReset(sort->memory);
  sort->entries = nullptr;
  sort->count = sort->room = sort->block_left = 0;
}

void forget_present(RdmaccEntrySort* sort) {
  if (sort->present != 0) pfree(DatumGetPointer(sort->present));
  sort->present = 0;
}

void note_in_common(RdmaccEntrySort* sort, BridgeBytes entry) {
  if (sort->count == 0) {
    sort->in_common = entry.size;
    return;
  }
  const char* first = sort->entries[0].bytes;
  const Size most = Min(sort->in_common, entry.size);
  if (most == sort->in_common && memcmp(first, entry.data, most) == 0) return;
  sort->in_common = static_cast<Size>(std::mismatch(first, first + most, entry.data).first - first);
}

void mark_differences(RdmaccEntrySort* sort) {
  for (Size i = 0; i < sort->count; i++) {
    KeptEntry* kept = &sort->entries[i];
    const BridgeBytes bytes = {kept->bytes, kept->size};
    kept->first = number_at(bytes, sort->in_common);
    kept->second = number_at(bytes, sort->in_common + sizeof(uint64));
  }
}

/* Those that their marks do not tell from each other, by what is behind. */
void sort_marked_alike(KeptEntry* begin, KeptEntry* end) {
  while (begin != end) {
    KeptEntry* alike_end = begin + 1;
    while (alike_end != end && is_marked_alike(*begin, *alike_end)) ++alike_end;
    if (alike_end - begin > 1) boost::sort::pdqsort(begin, alike_end, comes_before);
    begin = alike_end;
  }
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
  if (sort->files != nullptr) return add_to_files(sort, bytes, entry->has_null);
  note_in_common(sort, bytes);
  char* copy = room_for(sort, bytes.size);
  memcpy(copy, bytes.data, bytes.size);
  *add_entry(sort) = {.first = 0,
                      .second = 0,
                      .bytes = copy,
                      .size = static_cast<uint32>(bytes.size),
                      .has_null = entry->has_null};
  if (!fits_in_memory(sort)) go_on_in_files(sort);
}

void rdmacc_entry_sort_perform(RdmaccEntrySort* sort) {
  CHECK(sort->next == 0 && sort->count <= sort->room);
  if (sort->files != nullptr) return tuplesort_performsort(sort->files);
  mark_differences(sort);
  KeptEntry* end = sort->entries + sort->count;
  boost::sort::pdqsort_branchless(sort->entries, end, is_marked_before);
  sort_marked_alike(sort->entries, end);
}

bool rdmacc_entry_sort_next(RdmaccEntrySort* sort, RdmaccSortedEntry* out) {
  if (sort->files != nullptr) return next_of_files(sort, out);
  if (sort->next == sort->count) return false;
  if (sort->next + kFetchedAhead < sort->count) {
    __builtin_prefetch(sort->entries[sort->next + kFetchedAhead].bytes);
  }
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
