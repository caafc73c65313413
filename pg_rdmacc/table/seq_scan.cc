#include "pg_rdmacc/table/seq_scan.h"

#include "pg_rdmacc/relation/access_method.h"
#include "pg_rdmacc/relation/engine_table.h"
#include "pg_rdmacc/relation/row_estimate.h"
#include "pg_rdmacc/row/row_lock.h"
#include "pg_rdmacc/row/slot.h"
#include "pg_rdmacc/xact/exported_snapshot.h"
#include "pg_rdmacc/xact/running_query.h"

extern "C" {
#include "access/parallel.h"
#include "access/tupdesc.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
}

namespace {

/* A sample relies on no row, so it locks none and leaves out what others hold. */
RdmaccRowMark mark_of(const TableScanDescData* scan) {
  if ((scan->rs_flags & SO_TYPE_ANALYZE) != 0)
    return {.wait_policy = LockWaitSkip, .locks = false, .exclusive = false};
  return rdmacc_row_mark_of_scan(scan);
}

enum HistoryColumn { kVersion, kKey, kRow, kHistoryColumns };

RdmaccSharedScan* shared_of(const RdmaccScan* scan) {
  if (scan->base.rs_parallel == nullptr) return nullptr;
  return &reinterpret_cast<RdmaccParallelScan*>(scan->base.rs_parallel)->scan;
}

void start(RdmaccScan* scan) {
  CHECK(!scan->started && RelationIsValid(scan->base.rs_rd));
  Relation relation = scan->base.rs_rd;
  const Snapshot snapshot = scan->base.rs_snapshot;
  const uint32 visible_before =
      snapshot != nullptr && IsMVCCSnapshot(snapshot) ? snapshot->curcid : RDMACC_EVERY_COMMAND;
  /* Of a statement that defines something: it is not run again. */
  if (rdmacc_running_query() == nullptr && (scan->base.rs_flags & SO_TYPE_ANALYZE) == 0 &&
      !rdmacc_reads_as_stored()) {
    rdmacc_rows_settle(relation);
  }
  /* Rows that are going to be written must not get other keys on the way. */
  const bool writes = rdmacc_query_needs_handles(relation);
  if (writes) {
    rdmacc_rows_begin(&scan->rows, rdmacc_table_to_write(relation)->id, visible_before);
  } else {
    rdmacc_rows_begin_shared(&scan->rows, shared_of(scan), relation, visible_before);
  }
  scan->rows.mark = mark_of(&scan->base);
  scan->rows.wants.to_write = writes;
  scan->rows.wants.writes_at_once = writes && rdmacc_query_writes_as_it_scans();
  const bool samples = (scan->base.rs_flags & SO_TYPE_ANALYZE) != 0; /* and waits for nothing */
  scan->rows.quiet = !samples && rdmacc_in_definition() && rdmacc_is_quiet(relation);
  const bool handles_last =
      writes ? !rdmacc_query_writes_as_it_scans() : rdmacc_query_keeps_handles(relation);
  rdmacc_handle_stream_begin(&scan->handles, handles_last);
  /* A row that a cursor has passed may come again, from its store. */
  scan->names_rows = !handles_last && scan->history.store == nullptr;
  const bool reads_now = snapshot != nullptr && IsMVCCSnapshot(snapshot);
  if (scan->names_rows && reads_now && (scan->base.rs_flags & SO_TYPE_SEQSCAN) != 0) {
    rdmacc_rows_remember(&scan->rows, &scan->passed, GetMemoryChunkContext(scan));
  }
  if (scan->bytes.data == nullptr) {
    const MemoryContext previous = MemoryContextSwitchTo(GetMemoryChunkContext(scan));
    initStringInfo(&scan->bytes);
    MemoryContextSwitchTo(previous);
  }
  scan->started = true;
  if ((scan->base.rs_flags & SO_TYPE_ANALYZE) == 0) pgstat_count_heap_scan(relation);
}

RdmaccHandle handle_of(const RdmaccScan* scan, const BridgeRow* row) {
  return {.relation = RelationGetRelid(scan->base.rs_rd),
          .table = scan->rows.table,
          .visible_before = scan->rows.visible_before,
          .key = row->key,
          .row = {.found = false, .key = {}, .row = {}, .version = row->version, .node = 0}};
}

void store_row(RdmaccScan* scan, const BridgeRow* row, TupleTableSlot* slot) {
  CHECK(scan->started); /* or the handles had no owner */
  const RdmaccHandle handle = handle_of(scan, row);
  ItemPointerData tid;
  rdmacc_handle_assign(&scan->handles, &handle, &tid);
  rdmacc_slot_store(slot, scan->base.rs_rd, row, &tid);
}

/* The row that the scan is at, which stays where it is until the next batch. */
void show_row(RdmaccScan* scan, const BridgeRow* row, TupleTableSlot* slot) {
  CHECK(scan->started && scan->rows.next > 0);
  const size_t at = scan->rows.next - 1;
  if (at == 0 || at - scan->named_from == RDMACC_NAMED_ROWS_MAX) {
    const RdmaccHandle all = handle_of(scan, row);
    const size_t count = Min(scan->rows.count - at, RDMACC_NAMED_ROWS_MAX);
    rdmacc_handle_name_rows(&scan->handles, &all, row, static_cast<uint32>(count));
    scan->named_from = at;
  }
  ItemPointerData tid;
  rdmacc_handle_of_named(&scan->handles, static_cast<uint32>(at - scan->named_from), &tid);
  rdmacc_slot_show(slot, scan->base.rs_rd, row, &tid, &scan->bytes, &scan->tuple);
}

void stop(RdmaccScan* scan) {
  if (!scan->started) return;
  rdmacc_rows_end(&scan->rows);
  rdmacc_handle_stream_end(&scan->handles);
  scan->started = false;
}

/* ---- A scrollable cursor's history */

void history_begin(RdmaccHistory* history) {
  CHECK(history->store == nullptr);
  TupleDesc descriptor = CreateTemplateTupleDesc(kHistoryColumns);
  TupleDescInitEntry(descriptor, kVersion + 1, "version", INT8OID, -1, 0);
  TupleDescInitEntry(descriptor, kKey + 1, "key", BYTEAOID, -1, 0);
  TupleDescInitEntry(descriptor, kRow + 1, "row", BYTEAOID, -1, 0);
  history->slot = MakeSingleTupleTableSlot(descriptor, &TTSOpsMinimalTuple);
  history->store = tuplestore_begin_heap(true, false, work_mem);
  tuplestore_set_eflags(history->store, EXEC_FLAG_REWIND | EXEC_FLAG_BACKWARD);
}

void history_end(RdmaccHistory* history) {
  if (history->store == nullptr) return;
  tuplestore_end(history->store);
  ExecDropSingleTupleTableSlot(history->slot);
  history->store = nullptr;
}

Datum bytes_datum(BridgeBytes bytes) {
  return PointerGetDatum(cstring_to_text_with_len(bytes.data, static_cast<int>(bytes.size)));
}

BridgeBytes datum_bytes(Datum value) {
  struct varlena* bytes = PG_DETOAST_DATUM_PACKED(value);
  return {VARDATA_ANY(bytes), static_cast<size_t>(VARSIZE_ANY_EXHDR(bytes))};
}

void history_append(RdmaccHistory* history, const BridgeRow* row) {
  Datum values[kHistoryColumns] = {Int64GetDatum(static_cast<int64>(row->version)),
                                   bytes_datum(row->key), bytes_datum(row->row)};
  bool nulls[kHistoryColumns] = {};
  tuplestore_putvalues(history->store, history->slot->tts_tupleDescriptor, values, nulls);
  pfree(DatumGetPointer(values[kKey]));
  pfree(DatumGetPointer(values[kRow]));
}

/* A row that was passed before, in either direction. */
bool history_next(RdmaccScan* scan, bool forward, TupleTableSlot* slot) {
  RdmaccHistory* history = &scan->history;
  CHECK(history->slot != nullptr);
  if (tuplestore_ateof(history->store)) {
    if (forward) return false;
    /* The row returned last is the store's last one, unless the scan has run beyond it. */
    if (!scan->rows.ended && !tuplestore_advance(history->store, false)) return false;
  }
  if (!tuplestore_gettupleslot(history->store, forward, false, history->slot)) return false;
  slot_getallattrs(history->slot);
  const Datum* values = history->slot->tts_values;
  const BridgeRow row = {.found = true,
                         .key = datum_bytes(values[kKey]),
                         .row = datum_bytes(values[kRow]),
                         .version = static_cast<uint64>(DatumGetInt64(values[kVersion])),
                         .node = 0};
  store_row(scan, &row, slot);
  return true;
}

}  // namespace

Size rdmacc_parallelscan_estimate(Relation) { return sizeof(RdmaccParallelScan); }

/* CREATE INDEX may ask for one, and does not use it. */
Size rdmacc_parallelscan_initialize(Relation rel, ParallelTableScanDesc base) {
  CHECK(rdmacc_is_ours(rel) && base != nullptr);
  base->phs_relid = RelationGetRelid(rel);
  base->phs_syncscan = false;
  RdmaccSharedScan* scan = &reinterpret_cast<RdmaccParallelScan*>(base)->scan;
  if (rdmacc_running_query() == nullptr || rdmacc_in_definition()) {
    rdmacc_share_no_scan(scan);
  } else {
    rdmacc_share_scan(scan, rel);
  }
  return sizeof(RdmaccParallelScan);
}

void rdmacc_parallelscan_reinitialize(Relation rel, ParallelTableScanDesc base) {
  CHECK(base->phs_relid == RelationGetRelid(rel));
  rdmacc_share_scan_again(&reinterpret_cast<RdmaccParallelScan*>(base)->scan);
}

TableScanDesc rdmacc_scan_begin(Relation rel, Snapshot snapshot, int nkeys, struct ScanKeyData*,
                                ParallelTableScanDesc pscan, uint32 flags) {
  if (nkeys != 0) {
    elog(ERROR, "this kind of scan is not supported on rdmacc tables");
  }
  CHECK(rdmacc_is_ours(rel));
  RelationIncrementReferenceCount(rel);
  auto* scan = static_cast<RdmaccScan*>(palloc0(sizeof(RdmaccScan)));
  scan->base.rs_rd = rel;
  scan->base.rs_snapshot = snapshot;
  scan->base.rs_flags = flags;
  scan->base.rs_parallel = pscan;
  if ((flags & SO_TYPE_SEQSCAN) != 0 && rdmacc_query_scrolls()) history_begin(&scan->history);
  if ((flags & SO_TYPE_BITMAPSCAN) != 0) scan->bitmap = rdmacc_bitmap_scan_begin(rel);
  return &scan->base;
}

void rdmacc_scan_end(TableScanDesc base) {
  auto* scan = reinterpret_cast<RdmaccScan*>(base);
  stop(scan);
  history_end(&scan->history);
  if (scan->bitmap != nullptr) rdmacc_bitmap_scan_end(scan->bitmap, base->rs_rd);
  if ((base->rs_flags & SO_TYPE_ANALYZE) != 0) rdmacc_rows_reported(base->rs_rd);
  RelationDecrementReferenceCount(base->rs_rd);
  if ((base->rs_flags & SO_TEMP_SNAPSHOT) != 0) UnregisterSnapshot(base->rs_snapshot);
  if (scan->bytes.data != nullptr) pfree(scan->bytes.data);
  if (scan->passed.memory != nullptr) MemoryContextDelete(scan->passed.memory);
  pfree(scan);
}

void rdmacc_scan_rescan(TableScanDesc base, struct ScanKeyData*, bool, bool, bool, bool) {
  auto* scan = reinterpret_cast<RdmaccScan*>(base);
  stop(scan);
  if (scan->history.store != nullptr) tuplestore_clear(scan->history.store);
  if (scan->bitmap != nullptr) rdmacc_bitmap_scan_reset(scan->bitmap);
}

bool rdmacc_scan_next(RdmaccScan* scan, TupleTableSlot* slot) {
  if (!scan->started) start(scan);
  const BridgeRow* row = rdmacc_rows_next(&scan->rows, scan->base.rs_rd);
  if (row == nullptr) {
    if (scan->names_rows) rdmacc_handle_stream_end(&scan->handles);
    ExecClearTuple(slot);
    return false;
  }
  if (scan->names_rows) {
    show_row(scan, row, slot);
    return true;
  }
  store_row(scan, row, slot);
  if (scan->history.store != nullptr) history_append(&scan->history, row);
  return true;
}

bool rdmacc_scan_getnextslot(TableScanDesc base, ScanDirection direction, TupleTableSlot* slot) {
  auto* scan = reinterpret_cast<RdmaccScan*>(base);
  const bool forward = !ScanDirectionIsBackward(direction);
  bool found = false;
  if (scan->history.store == nullptr && !forward) {
    ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                    errmsg("rdmacc tables cannot be scanned backward here"),
                    errhint("Declare the cursor with SCROLL.")));
  }
  if (scan->history.store != nullptr) found = history_next(scan, forward, slot);
  if (!found && forward) found = rdmacc_scan_next(scan, slot);
  if (!found) {
    ExecClearTuple(slot);
    return false;
  }
  pgstat_count_heap_getnext(base->rs_rd);
  return true;
}

bool rdmacc_scan_bitmap_next_block(TableScanDesc scan, struct TBMIterateResult* page) {
  CHECK((scan->rs_flags & SO_TYPE_BITMAPSCAN) != 0);
  return rdmacc_bitmap_scan_next_block(reinterpret_cast<RdmaccScan*>(scan)->bitmap, scan, page);
}

bool rdmacc_scan_bitmap_next_tuple(TableScanDesc scan, struct TBMIterateResult* page,
                                   TupleTableSlot* slot) {
  CHECK((scan->rs_flags & SO_TYPE_BITMAPSCAN) != 0);
  return rdmacc_bitmap_scan_next_tuple(reinterpret_cast<RdmaccScan*>(scan)->bitmap, scan, page,
                                       slot);
}
