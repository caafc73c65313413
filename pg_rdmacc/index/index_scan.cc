#include "pg_rdmacc/index/index_scan.h"

#include "pg_rdmacc/index/arbiter.h"
#include "pg_rdmacc/index/index_entries.h"
#include "pg_rdmacc/index/index_fetch.h"
#include "pg_rdmacc/index/index_only.h"
#include "pg_rdmacc/index/index_ranges.h"
#include "pg_rdmacc/index/secondary_indexes.h"
#include "pg_rdmacc/relation/engine_table.h"
#include "pg_rdmacc/row/handle.h"
#include "pg_rdmacc/row/row_lock.h"
#include "pg_rdmacc/server/error.h"
#include "pg_rdmacc/xact/exported_snapshot.h"
#include "pg_rdmacc/xact/running_query.h"
#include "pg_rdmacc/xact/xact.h"

extern "C" {
#include "access/relscan.h"
#include "pgstat.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"
}

namespace {

/* Rows are fetched together, one at first and then more and more at a time: what a LIMIT leaves out
 * should not have been read. */
constexpr size_t kRowsGrowth = 4;
constexpr size_t kRowsMax = 256;

/* Where the scan stands: before all entries, at one, or behind all of them. */
enum class Place { kStart, kWithin, kEnd };

struct EntryScan {
  RdmaccIndex index;
  uint32 table;
  uint32 visible_before;
  RdmaccRowMark mark;
  RdmaccIndexRanges ranges;
  MemoryContext memory;      /* of the ranges, until the next rescan */
  MemoryContext rows_memory; /* of the rows at hand */
  BridgeIndexScan* entries;  /* NULL before the first seek */
  const BridgeBytes* batch;  /* entries of the nodes' last answer */
  size_t batch_count;
  size_t batch_next;
  BridgeBytes* keys; /* of the rows at hand, in the batch's bytes */
  BridgeRow* rows;
  size_t row_count;
  size_t row_next;
  size_t rows_wanted;         /* next time */
  BridgeBytes last;           /* the entry returned last, of the batch */
  StringInfoData bound;       /* where the scan has turned round */
  BridgeReadBatch* row_batch; /* NULL before rows are read that are not asked for again */
  int runs;                   /* that have begun */
  RdmaccIndexOnly only;       /* of an index-only scan */
  bool looks_at_rows;         /* whether they are what the scan keys want */
  bool only_reads;            /* and no row is asked for again */
  bool names_rows;            /* those at hand are named as a batch */
  bool backward;
  bool started;
  Place place;
  RdmaccHandleStream handles;
  RdmaccHandleStream* stream; /* NULL before the first row */
};

EntryScan* state_of(IndexScanDesc scan) { return static_cast<EntryScan*>(scan->opaque); }

void forget_rows(EntryScan* state) {
  state->batch_count = state->batch_next = 0;
  state->row_count = state->row_next = 0;
}

/* Rows that are named as a batch go, or their bytes. */
void unname_rows(EntryScan* state) {
  if (!state->names_rows) return;
  CHECK(state->stream == &state->handles);
  rdmacc_handle_stream_end(state->stream);
  state->names_rows = false;
}

/* What is known only once the scan has a table and a snapshot. */
void start(IndexScanDesc scan) {
  CHECK(RelationIsValid(scan->heapRelation) && scan->xs_snapshot != nullptr);
  EntryScan* state = state_of(scan);
  Relation relation = scan->heapRelation;
  const bool writes = rdmacc_query_needs_handles(relation);
  state->table = (writes ? rdmacc_table_to_write(relation) : rdmacc_table(relation))->id;
  const RdmaccIndex* index = rdmacc_secondary_index(relation, scan->indexRelation);
  if (index == nullptr) rdmacc_raise_no_entries(RelationGetRelationName(scan->indexRelation));
  state->index = *index;
  const Snapshot snapshot = scan->xs_snapshot;
  state->visible_before = IsMVCCSnapshot(snapshot) ? snapshot->curcid : RDMACC_EVERY_COMMAND;
  const MemoryContext previous = MemoryContextSwitchTo(state->memory);
  rdmacc_index_ranges_begin(&state->ranges, &state->index, scan->keyData, scan->numberOfKeys);
  MemoryContextSwitchTo(previous);
  state->looks_at_rows = state->ranges.lossy && rdmacc_arbiter_wants_nulls(scan);
  if (snapshot->snapshot_type == SNAPSHOT_DIRTY) {
    /* ON CONFLICT ends its search before it uses what it has found. */
    state->stream = rdmacc_handle_write_stream(false);
  } else if (state->stream == nullptr) {
    state->stream = &state->handles;
    rdmacc_handle_stream_begin(&state->handles, rdmacc_query_keeps_handles(relation));
  }
  state->mark = rdmacc_row_mark_of_index_scan(scan);
  state->only_reads = IsMVCCSnapshot(snapshot) && !state->stream->keep && !writes &&
                      !state->mark.locks && state->mark.wait_policy == LockWaitBlock;
  state->rows_wanted = 1;
  state->started = true;
  pgstat_count_index_scan(scan->indexRelation);
}

void take_batch(IndexScanDesc scan) {
  EntryScan* state = state_of(scan);
  rdmacc_pump();
  rdmacc_check("could not scan an index", RelationGetRelationName(scan->heapRelation));
  forget_rows(state);
  state->batch_count = bridge_index_entries(state->entries, &state->batch);
}

void seek(IndexScanDesc scan, BridgeRange range) {
  EntryScan* state = state_of(scan);
  unname_rows(state);
  rdmacc_check_reads_by_key();
  rdmacc_enter();
  if (state->entries == nullptr) state->entries = bridge_index_scan_create(CurrentResourceOwner);
  bridge_start_index_seek(state->entries, state->index.id, &range, state->backward,
                          state->visible_before);
  take_batch(scan);
}

/* ---- Turning round in a scrollable cursor */

/* What is left of the present range in the new direction: nothing of it has been passed twice. */
BridgeRange beyond_last(EntryScan* state) {
  CHECK(state->last.size > 0); /* it stands within the range */
  resetStringInfo(&state->bound);
  appendBinaryStringInfo(&state->bound, state->last.data, static_cast<int>(state->last.size));
  BridgeRange range = rdmacc_index_range(&state->ranges);
  if (state->backward) {
    range.high = {state->bound.data, static_cast<size_t>(state->bound.len)};
    range.high_bounded = true;
  } else {
    appendStringInfoCharMacro(&state->bound, '\0');
    range.low = {state->bound.data, static_cast<size_t>(state->bound.len)};
  }
  return range;
}

/* ---- The next rows */

bool seek_first(IndexScanDesc scan) {
  EntryScan* state = state_of(scan);
  if (!rdmacc_index_ranges_first(&state->ranges, state->backward)) return false;
  seek(scan, rdmacc_index_range(&state->ranges));
  return true;
}

/* Entries to look at, from this batch, the next one, or the next range. */
bool have_entries(IndexScanDesc scan) {
  EntryScan* state = state_of(scan);
  while (state->batch_next == state->batch_count) {
    CHECK_FOR_INTERRUPTS();
    if (state->batch_count > 0) {
      unname_rows(state);
      rdmacc_enter();
      bridge_start_index_next(state->entries);
      take_batch(scan);
    } else {
      if (!rdmacc_index_ranges_next(&state->ranges, state->backward)) return false;
      seek(scan, rdmacc_index_range(&state->ranges));
    }
  }
  return true;
}

/* Of rows that are asked for by values the transaction keeps what it has found: statements within
 * functions and loops ask for such a row again and again. So may those of a scan that is repeated.
 */
bool reads_batch(const EntryScan* state, size_t count) {
  const bool range = state->ranges.choice_count < state->index.column_count;
  return state->only_reads && state->runs == 1 && (range || count > 1);
}

RdmaccHandle handle_of(IndexScanDesc scan, const BridgeRow* row, BridgeBytes key) {
  const EntryScan* state = state_of(scan);
  return {.relation = RelationGetRelid(scan->heapRelation),
          .table = state->table,
          .visible_before = state->visible_before,
          .key = key,
          .row = *row};
}

void fetch_rows(IndexScanDesc scan) {
  EntryScan* state = state_of(scan);
  CHECK(state->batch_next < state->batch_count && state->rows_wanted > 0);
  const size_t count = Min(state->rows_wanted, state->batch_count - state->batch_next);
  MemoryContextReset(state->rows_memory);
  const MemoryContext previous = MemoryContextSwitchTo(state->rows_memory);
  state->keys = static_cast<BridgeBytes*>(palloc(sizeof(BridgeBytes) * count));
  state->rows = static_cast<BridgeRow*>(palloc0(sizeof(BridgeRow) * count));
  MemoryContextSwitchTo(previous);
  for (size_t i = 0; i < count; i++) {
    state->keys[i] = rdmacc_entry_key(state->batch[state->batch_next + i]);
  }
  unname_rows(state);
  const bool in_batch = reads_batch(state, count);
  if (in_batch && state->row_batch == nullptr) {
    state->row_batch = bridge_read_batch_create(CurrentResourceOwner);
  }
  const RdmaccRead read = {.relation = scan->heapRelation,
                           .table = state->table,
                           .visible_before = state->visible_before,
                           .mark = state->mark,
                           .to_write = rdmacc_query_needs_handles(scan->heapRelation),
                           .lock_command = InvalidCommandId,
                           .batch = in_batch ? state->row_batch : nullptr};
  rdmacc_read_rows(&read, state->keys, count, state->rows);
  state->row_count = count;
  state->row_next = 0;
  state->rows_wanted = Min(state->rows_wanted * kRowsGrowth, kRowsMax);
  if (!in_batch) return;
  const RdmaccHandle all = handle_of(scan, state->rows, state->keys[0]);
  rdmacc_handle_name_rows(state->stream, &all, state->rows, static_cast<uint32>(count));
  state->names_rows = true;
}

void return_row(IndexScanDesc scan, size_t at) {
  EntryScan* state = state_of(scan);
  const BridgeRow* row = &state->rows[at];
  if (state->names_rows) {
    rdmacc_handle_of_named(state->stream, static_cast<uint32>(at), &scan->xs_heaptid);
    rdmacc_index_fetch_this(scan->xs_heapfetch, row);
  } else {
    const RdmaccHandle handle = handle_of(scan, row, state->keys[at]);
    rdmacc_handle_assign(state->stream, &handle, &scan->xs_heaptid);
    rdmacc_index_fetch_this(scan->xs_heapfetch, nullptr);
  }
  scan->xs_recheck = state->ranges.lossy && !state->looks_at_rows;
  scan->xs_recheckorderby = false;
}

bool next_row(IndexScanDesc scan) {
  EntryScan* state = state_of(scan);
  for (;;) {
    while (state->row_next < state->row_count) {
      const size_t at = state->row_next++;
      CHECK(state->batch_next < state->batch_count); /* rows are those of the batch's entries */
      state->last = state->batch[state->batch_next++];
      const BridgeRow* row = &state->rows[at];
      /* One that is not there was removed by others meanwhile: the commit will find out. */
      if (!row->found) continue;
      if (state->looks_at_rows && !rdmacc_arbiter_takes(scan, &state->index, row)) continue;
      return_row(scan, at);
      return true;
    }
    if (!have_entries(scan)) {
      unname_rows(state);
      return false;
    }
    fetch_rows(scan);
  }
}

bool next_entry(IndexScanDesc scan, BridgeBytes* entry) {
  EntryScan* state = state_of(scan);
  if (!have_entries(scan)) return false;
  *entry = state->last = state->batch[state->batch_next++];
  return true;
}

/* The executor asks for the row all the same, since no page is marked as visible to all: it is told
 * that there is one. */
bool next_of_index_only(IndexScanDesc scan) {
  EntryScan* state = state_of(scan);
  BridgeBytes entry = {};
  if (!next_entry(scan, &entry)) return false;
  if (state->only.descriptor == nullptr) {
    const MemoryContext previous = MemoryContextSwitchTo(GetMemoryChunkContext(state));
    rdmacc_index_only_begin(&state->only, scan->heapRelation, scan->indexRelation);
    MemoryContextSwitchTo(previous);
  }
  scan->xs_hitup = rdmacc_index_only_tuple(&state->only, &state->index, entry);
  scan->xs_hitupdesc = state->only.descriptor;
  scan->xs_recheck = state->ranges.lossy;
  /* A cursor may be asked to delete the row. */
  const RdmaccHandle handle = {.relation = RelationGetRelid(scan->heapRelation),
                               .table = state->table,
                               .visible_before = state->visible_before,
                               .key = rdmacc_entry_key(entry),
                               .row = {}};
  rdmacc_handle_assign(state->stream, &handle, &scan->xs_heaptid);
  rdmacc_index_fetch_nothing(scan->xs_heapfetch);
  return true;
}

/* Makes the scan stand where a step in its direction begins. False: there is nothing there. */
bool take_position(IndexScanDesc scan, bool backward) {
  EntryScan* state = state_of(scan);
  if (!state->started) start(scan);
  const bool turns = state->backward != backward;
  state->backward = backward;
  switch (state->place) {
    case Place::kWithin:
      if (turns) seek(scan, beyond_last(state));
      return true;
    case Place::kStart:
      return seek_first(scan);
    case Place::kEnd:
      /* Behind the last entry in the direction of before. */
      return turns && seek_first(scan);
  }
  return false;
}

}  // namespace

void rdmacc_index_scan_begin(IndexScanDesc scan) {
  CHECK(scan->opaque == nullptr);
  auto* state = static_cast<EntryScan*>(palloc0(sizeof(EntryScan)));
  state->memory =
      AllocSetContextCreate(CurrentMemoryContext, "rdmacc index ranges", ALLOCSET_SMALL_SIZES);
  state->rows_memory =
      AllocSetContextCreate(CurrentMemoryContext, "rdmacc index rows", ALLOCSET_SMALL_SIZES);
  initStringInfo(&state->bound);
  scan->opaque = state;
  /* What PostgreSQL's btree and hash scans never set: it tells ours from theirs. */
  scan->xs_hitupdesc = RelationGetDescr(scan->indexRelation);
}

bool rdmacc_index_scan_is_ours(IndexScanDesc scan) { return scan->xs_hitupdesc != nullptr; }

void rdmacc_index_scan_rescan(IndexScanDesc scan) {
  CHECK(rdmacc_index_scan_is_ours(scan));
  EntryScan* state = state_of(scan);
  MemoryContextReset(state->memory);
  unname_rows(state);
  forget_rows(state);
  state->runs++;
  state->started = false;
  state->place = Place::kStart;
}

bool rdmacc_index_scan_next(IndexScanDesc scan, ScanDirection direction) {
  CHECK(rdmacc_index_scan_is_ours(scan));
  EntryScan* state = state_of(scan);
  const bool found = take_position(scan, ScanDirectionIsBackward(direction)) &&
                     (scan->xs_want_itup ? next_of_index_only(scan) : next_row(scan));
  state->place = found ? Place::kWithin : Place::kEnd;
  return found;
}

bool rdmacc_index_scan_next_entry(IndexScanDesc scan, ScanDirection direction, BridgeBytes* entry) {
  CHECK(rdmacc_index_scan_is_ours(scan) && entry != nullptr);
  EntryScan* state = state_of(scan);
  const bool found =
      take_position(scan, ScanDirectionIsBackward(direction)) && next_entry(scan, entry);
  state->place = found ? Place::kWithin : Place::kEnd;
  return found;
}

bool rdmacc_index_scan_is_lossy(IndexScanDesc scan) { return state_of(scan)->ranges.lossy; }

void rdmacc_index_scan_end(IndexScanDesc scan) {
  CHECK(rdmacc_index_scan_is_ours(scan)); /* or its state is another one's */
  EntryScan* state = state_of(scan);
  if (state->stream == &state->handles) rdmacc_handle_stream_end(&state->handles);
  if (state->entries != nullptr) bridge_index_scan_free(state->entries);
  if (state->row_batch != nullptr) bridge_read_batch_free(state->row_batch);
  rdmacc_index_only_end(&state->only);
  MemoryContextDelete(state->memory);
  MemoryContextDelete(state->rows_memory);
  pfree(state->bound.data);
  pfree(state);
}
