#include "pg_rdmacc/row/scan_rows.h"

#include <algorithm>

#include "pg_rdmacc/codec/row_codec.h"
#include "pg_rdmacc/relation/row_estimate.h"
#include "pg_rdmacc/row/row_lock.h"
#include "pg_rdmacc/server/error.h"
#include "pg_rdmacc/xact/exported_snapshot.h"
#include "pg_rdmacc/xact/xact.h"

extern "C" {
#include "utils/memutils.h"
#include "utils/resowner.h"
}

namespace {

rdmacc::ScanMode mode_for(LockWaitPolicy wait_policy) {
  if (rdmacc_reads_as_stored()) return rdmacc::ScanMode::kAsStored;
  switch (wait_policy) {
    case LockWaitError:
      return rdmacc::ScanMode::kNoWait;
    case LockWaitSkip:
      return rdmacc::ScanMode::kSkipLocked;
    case LockWaitBlock:
      break;
  }
  return rdmacc::ScanMode::kSerializable;
}

}  // namespace

void rdmacc_rows_settle(Relation relation) {
  rdmacc_enter();
  bridge_start_wait_for_splits();
  rdmacc_pump();
  rdmacc_check("could not wait for the index", RelationGetRelationName(relation));
}

void rdmacc_rows_begin(RdmaccRows* rows, uint32 table, uint32 visible_before) {
  memset(rows, 0, sizeof(*rows));
  rows->table = table;
  rows->visible_before = visible_before;
  rows->row_bytes_max = rdmacc::kWholeRow;
}

const BridgeRow* rdmacc_rows_next(RdmaccRows* rows, Relation relation) {
  CHECK(rows->next <= rows->count && (rows->scan != nullptr || rows->count == 0));
  if (rows->next < rows->count) return &rows->batch[rows->next++];
  if (rows->ended) return nullptr;
  rdmacc_enter();
  const uint64 before = bridge_counters().round_trips;
  if (rows->scan == nullptr) {
    rows->scan = bridge_scan_create(CurrentResourceOwner);
    bridge_start_scan(rows->scan, rows->table, rows->visible_before, mode_for(rows->wait_policy),
                      rows->row_bytes_max);
    rdmacc_pump();
    rdmacc_check("could not scan", RelationGetRelationName(relation));
  }
  bridge_start_scan_next(rows->scan);
  rdmacc_pump();
  if (rows->wait_policy == LockWaitError && bridge_error()->held_by_another) {
    rdmacc_raise_row_locked(relation);
  }
  rdmacc_check("could not scan", RelationGetRelationName(relation));
  if (rdmacc_reads_as_stored()) rdmacc_check_exporter_lives();
  rows->round_trips += bridge_counters().round_trips - before;
  rows->count = bridge_scan_rows(rows->scan, &rows->batch);
  rows->next = 0;
  if (rows->count > 0) return &rows->batch[rows->next++];
  rdmacc_rows_end(rows);
  rows->ended = true;
  return nullptr;
}

void rdmacc_rows_end(RdmaccRows* rows) {
  if (rows->scan != nullptr) bridge_scan_free(rows->scan);
  rows->scan = nullptr;
  rows->count = rows->next = 0;
}

/* ---- In the order of writing */

namespace {

constexpr size_t kRowsAtFirst = 64; /* and then twice as many, again and again */
/* The least that key and row take. */
constexpr double kRowBytesMin = 32;

bool may_fit(Relation relation) {
  return rdmacc_estimated_rows(relation) * kRowBytesMin <= RDMACC_ORDERED_BYTES_MAX;
}

/* One allocation: the row, then its bytes. */
const BridgeRow* copy_of(MemoryContext context, const BridgeRow* row) {
  CHECK(row->found && row->row.data != nullptr);
  auto* copy = static_cast<BridgeRow*>(
      MemoryContextAlloc(context, sizeof(BridgeRow) + row->key.size + row->row.size));
  auto* bytes = reinterpret_cast<char*>(copy + 1);
  *copy = *row;
  memcpy(bytes, row->key.data, row->key.size);
  copy->key.data = bytes;
  memcpy(bytes + row->key.size, row->row.data, row->row.size);
  copy->row.data = bytes + row->key.size;
  return copy;
}

/* Copies rows until the scan ends or memory does; true when all are there. */
bool gather(RdmaccOrderedRows* ordered_rows, Relation relation) {
  size_t room = kRowsAtFirst;
  ordered_rows->gathered = static_cast<RdmaccOrderedRow*>(
      MemoryContextAlloc(ordered_rows->context, room * sizeof(RdmaccOrderedRow)));
  size_t bytes = 0;
  while (bytes <= RDMACC_ORDERED_BYTES_MAX) {
    const BridgeRow* row = rdmacc_rows_next(&ordered_rows->rows, relation);
    if (row == nullptr) return true;
    if (ordered_rows->count == room) {
      room *= 2;
      ordered_rows->gathered = static_cast<RdmaccOrderedRow*>(
          repalloc_huge(ordered_rows->gathered, room * sizeof(RdmaccOrderedRow)));
    }
    bytes += row->key.size + row->row.size;
    ordered_rows->gathered[ordered_rows->count++] = {rdmacc_row_time(row->row),
                                                     copy_of(ordered_rows->context, row)};
  }
  return false;
}

}  // namespace

void rdmacc_ordered_rows_begin(RdmaccOrderedRows* ordered_rows, Relation relation, uint32 table,
                               uint32 visible_before, bool in_order) {
  memset(ordered_rows, 0, sizeof(*ordered_rows));
  rdmacc_rows_begin(&ordered_rows->rows, table, visible_before);
  if (in_order && may_fit(relation)) {
    ordered_rows->context = GenerationContextCreate(
        CurrentMemoryContext, "rows of an rdmacc table in order", ALLOCSET_DEFAULT_SIZES);
  }
}

const BridgeRow* rdmacc_ordered_rows_next(RdmaccOrderedRows* ordered_rows, Relation relation) {
  CHECK(ordered_rows->next <= ordered_rows->count);
  if (ordered_rows->context != nullptr && ordered_rows->gathered == nullptr &&
      gather(ordered_rows, relation)) {
    std::sort(ordered_rows->gathered, ordered_rows->gathered + ordered_rows->count,
              [](const RdmaccOrderedRow& a, const RdmaccOrderedRow& b) { return a.time < b.time; });
  }
  if (ordered_rows->next < ordered_rows->count) {
    return ordered_rows->gathered[ordered_rows->next++].row;
  }
  const BridgeRow* row = rdmacc_rows_next(&ordered_rows->rows, relation);
  ordered_rows->ended = row == nullptr;
  return row;
}

void rdmacc_ordered_rows_end(RdmaccOrderedRows* ordered_rows) {
  rdmacc_rows_end(&ordered_rows->rows);
  if (ordered_rows->context != nullptr) MemoryContextDelete(ordered_rows->context);
  memset(ordered_rows, 0, sizeof(*ordered_rows));
}
