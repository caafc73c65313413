#include "pg_rdmacc/index/bitmap_scan.h"

#include "pg_rdmacc/index/index_entries.h"
#include "pg_rdmacc/index/index_scan.h"
#include "pg_rdmacc/relation/engine_table.h"
#include "pg_rdmacc/row/handle.h"
#include "pg_rdmacc/row/slot.h"
#include "pg_rdmacc/server/error.h"
#include "pg_rdmacc/xact/running_query.h"
#include "pg_rdmacc/xact/xact.h"

extern "C" {
#include "access/xact.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
}

namespace {

constexpr uint32 kRowsPerPage = 256; /* a bitmap takes 291 at most */
/* Within the first segment of the table's file, which PostgreSQL may prefetch from. */
constexpr BlockNumber kLastPage = 131070;
constexpr uint32 kNumbersAtFirst = 256;
constexpr int64 kHashSizeAtFirst = 1024;
constexpr size_t kRowsOfBatch = 256;

/* ---- Numbers of a table's keys */

struct NumberedKey {
  BridgeBytes key; /* the hash table's key: its bytes */
  uint32 number;
};

struct Numbering {
  Oid relation;
  int open_scans;
  MemoryContext memory;
  HTAB* numbers;
  BridgeBytes* keys; /* by number */
  uint32 count;
  uint32 room;
};

List* numberings; /* of this transaction's open bitmap scans */

uint32 hash_of_key(const void* key, Size) {
  const auto* bytes = static_cast<const BridgeBytes*>(key);
  return hash_bytes(reinterpret_cast<const unsigned char*>(bytes->data),
                    static_cast<int>(bytes->size));
}

int compare_keys(const void* one, const void* other, Size) {
  const auto* a = static_cast<const BridgeBytes*>(one);
  const auto* b = static_cast<const BridgeBytes*>(other);
  return a->size == b->size ? memcmp(a->data, b->data, a->size) : 1;
}

Numbering* find_numbering(Oid relation) {
  ListCell* cell;
  foreach (cell, numberings) {
    auto* numbering = static_cast<Numbering*>(lfirst(cell));
    if (numbering->relation == relation) return numbering;
  }
  return nullptr;
}

Numbering* make_numbering(Oid relation) {
  CHECK(TopTransactionContext != nullptr && OidIsValid(relation));
  MemoryContext memory =
      AllocSetContextCreate(TopTransactionContext, "rdmacc bitmap scan", ALLOCSET_DEFAULT_SIZES);
  const MemoryContext previous = MemoryContextSwitchTo(memory);
  auto* numbering = static_cast<Numbering*>(palloc0(sizeof(Numbering)));
  numbering->relation = relation;
  numbering->memory = memory;
  numbering->room = kNumbersAtFirst;
  numbering->keys = static_cast<BridgeBytes*>(palloc(sizeof(BridgeBytes) * kNumbersAtFirst));
  HASHCTL control = {};
  control.keysize = sizeof(BridgeBytes);
  control.entrysize = sizeof(NumberedKey);
  control.hash = hash_of_key;
  control.match = compare_keys;
  control.hcxt = memory;
  numbering->numbers = hash_create("rdmacc numbers of keys", kHashSizeAtFirst, &control,
                                   HASH_ELEM | HASH_FUNCTION | HASH_COMPARE | HASH_CONTEXT);
  MemoryContextSwitchTo(TopTransactionContext);
  numberings = lappend(numberings, numbering);
  MemoryContextSwitchTo(previous);
  return numbering;
}

uint32 number_of(Numbering* numbering, BridgeBytes key) {
  auto* entry =
      static_cast<NumberedKey*>(hash_search(numbering->numbers, &key, HASH_FIND, nullptr));
  if (entry != nullptr) return entry->number;
  if (numbering->count == numbering->room) {
    numbering->room *= 2;
    numbering->keys = static_cast<BridgeBytes*>(
        repalloc_huge(numbering->keys, sizeof(BridgeBytes) * numbering->room));
  }
  auto* bytes = static_cast<char*>(MemoryContextAlloc(numbering->memory, Max(key.size, 1)));
  memcpy(bytes, key.data, key.size);
  key.data = bytes;
  bool found = false;
  entry = static_cast<NumberedKey*>(hash_search(numbering->numbers, &key, HASH_ENTER, &found));
  CHECK(!found && numbering->count < numbering->room);
  entry->number = numbering->count;
  numbering->keys[numbering->count] = key;
  return numbering->count++;
}

/* ---- Filling a bitmap */

void add_number(TIDBitmap* bitmap, uint32 number, bool recheck) {
  const BlockNumber page = number / kRowsPerPage;
  if (page >= kLastPage) {
    ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                    errmsg("a bitmap scan of an rdmacc table cannot find more than %u rows",
                           kLastPage * kRowsPerPage),
                    errhint("Set enable_bitmapscan to off.")));
  }
  ItemPointerData tid;
  const auto offset = static_cast<OffsetNumber>(number % kRowsPerPage + 1);
  tid.ip_blkid.bi_hi = static_cast<uint16>(page >> 16);
  tid.ip_blkid.bi_lo = static_cast<uint16>(page & 0xffff);
  tid.ip_posid = offset;
  tbm_add_tuples(bitmap, &tid, 1, recheck);
}

}  // namespace

/* ---- Returning what a bitmap holds */

struct FoundRow {
  uint32 number;
  BridgeRow row;
};

struct RdmaccBitmapScan {
  MemoryContext memory;
  Numbering* numbering;
  uint32* numbers; /* what the bitmap's pages stand for */
  size_t number_count;
  size_t number_room;
  size_t numbers_fetched;
  FoundRow* rows; /* fetched, and not returned from row_next on */
  size_t row_count;
  size_t row_next;
  uint32 table;
  uint32 visible_before;
  RdmaccHandleStream handles;
  BridgeReadBatch* batch; /* of rows that are only read; NULL before the first */
  bool started;
  bool only_reads; /* and each row once */
};

namespace {

void start(RdmaccBitmapScan* state, TableScanDesc scan) {
  CHECK(!state->started && scan->rs_snapshot != nullptr);
  Relation relation = scan->rs_rd;
  const bool writes = rdmacc_query_needs_handles(relation);
  state->table = (writes ? rdmacc_table_to_write(relation) : rdmacc_table(relation))->id;
  state->visible_before =
      IsMVCCSnapshot(scan->rs_snapshot) ? scan->rs_snapshot->curcid : RDMACC_EVERY_COMMAND;
  rdmacc_handle_stream_begin(&state->handles, rdmacc_query_keeps_handles(relation));
  state->only_reads = !writes && IsMVCCSnapshot(scan->rs_snapshot);
  state->started = true;
}

void note_number(RdmaccBitmapScan* state, uint32 number) {
  if (number >= state->numbering->count) return;
  if (state->number_count == state->number_room) {
    state->number_room = Max(state->number_room * 2, kNumbersAtFirst);
    const Size size = sizeof(uint32) * state->number_room;
    state->numbers =
        static_cast<uint32*>(state->numbers == nullptr ? MemoryContextAllocHuge(state->memory, size)
                                                       : repalloc_huge(state->numbers, size));
  }
  state->numbers[state->number_count++] = number;
}

/* The next batch of rows. One that is not there was removed by others meanwhile: the commit will
 * find out. */
void fetch_batch(RdmaccBitmapScan* state, Relation relation) {
  CHECK(state->numbers_fetched < state->number_count);
  CHECK(state->row_next == state->row_count); /* what was fetched before has been returned */
  if (state->rows == nullptr) {
    state->rows =
        static_cast<FoundRow*>(MemoryContextAlloc(state->memory, sizeof(FoundRow) * kRowsOfBatch));
  }
  BridgeBytes keys[kRowsOfBatch];
  BridgeRow rows[kRowsOfBatch] = {};
  const size_t count = Min(kRowsOfBatch, state->number_count - state->numbers_fetched);
  const uint32* numbers = &state->numbers[state->numbers_fetched];
  for (size_t i = 0; i < count; i++) keys[i] = state->numbering->keys[numbers[i]];
  state->row_next = state->row_count = 0;
  rdmacc_enter();
  if (state->only_reads) {
    if (state->batch == nullptr) state->batch = bridge_read_batch_create(CurrentResourceOwner);
    bridge_start_read_batch(state->batch, state->table, keys, count, state->visible_before, rows);
  } else {
    bridge_start_get_many(state->table, keys, count, state->visible_before,
                          rdmacc_query_needs_handles(relation), rows);
  }
  rdmacc_pump();
  rdmacc_check("could not read the rows of a bitmap", RelationGetRelationName(relation));
  for (size_t i = 0; i < count; i++) {
    if (!rows[i].found) continue;
    state->rows[state->row_count++] = {numbers[i], rows[i]};
  }
  state->numbers_fetched += count;
}

/* False at the end. */
bool have_row(RdmaccBitmapScan* state, Relation relation) {
  while (state->row_next == state->row_count) {
    if (state->numbers_fetched == state->number_count) return false;
    CHECK_FOR_INTERRUPTS();
    fetch_batch(state, relation);
  }
  return true;
}

void forget(void) { numberings = NIL; }

}  // namespace

RdmaccBitmapScan* rdmacc_bitmap_scan_begin(Relation relation) {
  Numbering* numbering = find_numbering(RelationGetRelid(relation));
  if (numbering == nullptr) numbering = make_numbering(RelationGetRelid(relation));
  CHECK(numbering->open_scans >= 0);
  numbering->open_scans++;
  auto* state = static_cast<RdmaccBitmapScan*>(palloc0(sizeof(RdmaccBitmapScan)));
  state->numbering = numbering;
  state->memory = AllocSetContextCreate(CurrentMemoryContext, "rows of an rdmacc bitmap scan",
                                        ALLOCSET_DEFAULT_SIZES);
  return state;
}

void rdmacc_bitmap_scan_reset(RdmaccBitmapScan* state) {
  MemoryContextReset(state->memory);
  state->numbers = nullptr;
  state->rows = nullptr;
  state->number_count = state->number_room = state->numbers_fetched = 0;
  state->row_count = state->row_next = 0;
  state->only_reads = false; /* rows may come again */
}

void rdmacc_bitmap_scan_end(RdmaccBitmapScan* state, Relation relation) {
  if (state->started) rdmacc_handle_stream_end(&state->handles);
  if (state->batch != nullptr) bridge_read_batch_free(state->batch);
  MemoryContextDelete(state->memory);
  pfree(state);
  /* By its name: the transaction that numbered may be over. */
  Numbering* numbering = find_numbering(RelationGetRelid(relation));
  if (numbering == nullptr || --numbering->open_scans > 0) return;
  numberings = list_delete_ptr(numberings, numbering);
  MemoryContextDelete(numbering->memory);
}

int64 rdmacc_index_bitmap(IndexScanDesc scan, TIDBitmap* bitmap) {
  CHECK(scan->heapRelation == nullptr && bitmap != nullptr);
  Relation relation = RelationIdGetRelation(scan->indexRelation->rd_index->indrelid);
  Numbering* numbering =
      RelationIsValid(relation) ? find_numbering(RelationGetRelid(relation)) : nullptr;
  if (numbering == nullptr) elog(ERROR, "a bitmap is made for no scan of an rdmacc table");
  scan->heapRelation = relation; /* which bitmap scans of indexes lack */
  int64 count = 0;
  BridgeBytes entry = {};
  while (rdmacc_index_scan_next_entry(scan, ForwardScanDirection, &entry)) {
    add_number(bitmap, number_of(numbering, rdmacc_entry_key(entry)),
               rdmacc_index_scan_is_lossy(scan));
    count++;
  }
  tbm_add_page(bitmap, kLastPage);
  scan->heapRelation = nullptr;
  RelationClose(relation);
  return count;
}

bool rdmacc_bitmap_scan_next_block(RdmaccBitmapScan* state, TableScanDesc scan,
                                   struct TBMIterateResult* page) {
  if (!state->started) start(state, scan);
  const uint32 first = page->blockno * kRowsPerPage;
  if (page->blockno == kLastPage) return true;
  if (page->ntuples < 0) {
    for (uint32 i = 0; i < kRowsPerPage; i++) note_number(state, first + i);
  }
  for (int i = 0; i < page->ntuples; i++) note_number(state, first + page->offsets[i] - 1U);
  return false; /* not yet */
}

bool rdmacc_bitmap_scan_next_tuple(RdmaccBitmapScan* state, TableScanDesc scan,
                                   struct TBMIterateResult* page, TupleTableSlot* slot) {
  if (page->blockno != kLastPage) return false; /* PostgreSQL asks even where next_block has none */
  if (!have_row(state, scan->rs_rd)) return false;
  CHECK(state->row_next < state->row_count);
  const FoundRow* found = &state->rows[state->row_next++];
  const RdmaccHandle handle = {
      .relation = RelationGetRelid(scan->rs_rd),
      .table = state->table,
      .visible_before = state->visible_before,
      .key = state->numbering->keys[found->number],
      .row = {.found = false, .key = {}, .row = {}, .version = found->row.version, .node = 0}};
  ItemPointerData tid;
  rdmacc_handle_assign(&state->handles, &handle, &tid);
  rdmacc_slot_store(slot, scan->rs_rd, &found->row, &tid);
  pgstat_count_heap_fetch(scan->rs_rd);
  return true;
}

const RdmaccTransactionPart rdmacc_bitmap_scans_part = {.forget = forget};
