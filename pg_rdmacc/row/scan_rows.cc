#include "pg_rdmacc/row/scan_rows.h"

#include "pg_rdmacc/server/error.h"
#include "pg_rdmacc/xact/current_reads.h"
#include "pg_rdmacc/xact/exported_snapshot.h"
#include "pg_rdmacc/xact/lock_holder.h"
#include "pg_rdmacc/xact/row_sharers.h"
#include "pg_rdmacc/xact/xact.h"

extern "C" {
#include "storage/lmgr.h"
#include "utils/resowner.h"
}

namespace {

rdmacc::ScanMode mode_of(const RdmaccRows* rows) {
  if (rdmacc_reads_as_stored() || rows->as_stored) return rdmacc::ScanMode::kAsStored;
  if (rows->quiet) return rdmacc::ScanMode::kQuiet;
  switch (rows->mark.wait_policy) {
    case LockWaitError:
      return rdmacc::ScanMode::kNoWait;
    case LockWaitSkip:
      return rdmacc::ScanMode::kSkipLocked;
    case LockWaitBlock:
      break;
  }
  return rdmacc::ScanMode::kSerializable;
}

/* A scan has to read every row, whether it will be wanted or not. */
void ask_for_batch(RdmaccRows* rows, Relation relation) {
  RdmaccHolderWait wait = {};
  for (;;) {
    bridge_start_scan_next(rows->scan);
    if (rows->mark.wait_policy == LockWaitError) {
      if (rdmacc_pump_or_held()) rdmacc_raise_row_locked(relation);
    } else if (rdmacc_pump_unless_held(rows->mark.locks)) {
      /* Scans pass what is shared. */
      rdmacc_wait_for_holder(&wait, RDMACC_NO_SESSION, RelationGetRelationName(relation));
      continue;
    }
    rdmacc_check("could not scan", RelationGetRelationName(relation));
    return;
  }
}

}  // namespace

void rdmacc_rows_settle(Relation relation) {
  rdmacc_enter();
  bridge_start_wait_for_splits();
  rdmacc_pump();
  rdmacc_check("could not wait for the index", RelationGetRelationName(relation));
}

bool rdmacc_is_quiet(Relation relation) {
  return CheckRelationLockedByMe(relation, ShareLock, /*orstronger=*/true);
}

void rdmacc_rows_begin(RdmaccRows* rows, uint32 table, uint32 visible_before) {
  *rows = RdmaccRows{};
  rows->table = table;
  rows->visible_before = visible_before;
}

void rdmacc_rows_remember(RdmaccRows* rows, RdmaccPassedRows* passed, MemoryContext memory) {
  CHECK(rows->scan == nullptr && rows->next == 0 && passed != nullptr);
  const bool only_reads = !rows->mark.locks && !rows->wants.to_write &&
                          mode_of(rows) == rdmacc::ScanMode::kSerializable;
  if (!only_reads || rows->shared_walk != nullptr) return;
  rows->passed = passed;
  if (!rdmacc_passed_rows_begin(passed, memory)) return;
  rdmacc_enter(); /* or the transaction has lost */
  rows->batch = passed->rows;
  rows->count = passed->count;
  rows->ended = true; /* there is no further batch */
}

namespace {

/* False: there is none. */
bool next_batch(RdmaccRows* rows, Relation relation) {
  if (rows->ended) return false;
  rdmacc_enter();
  const uint64 before = bridge_counters().round_trips;
  if (rows->scan == nullptr) {
    rows->scan = bridge_scan_create(CurrentResourceOwner);
    if (rows->quiet) rdmacc_need_current_reads();
    bridge_start_scan(rows->scan, rows->table, rows->visible_before, mode_of(rows), rows->wants,
                      rows->shared_walk);
    rdmacc_pump();
    rdmacc_check("could not scan", RelationGetRelationName(relation));
  }
  ask_for_batch(rows, relation);
  if (rdmacc_reads_as_stored()) rdmacc_check_exporter_lives();
  rows->round_trips += bridge_counters().round_trips - before;
  rows->count = bridge_scan_rows(rows->scan, &rows->batch);
  rows->next = 0;
  if (rows->count > 0) return true;
  rdmacc_rows_end(rows);
  rows->ended = true;
  if (rows->passed != nullptr) rdmacc_passed_rows_end(rows->passed);
  return false;
}

}  // namespace

const BridgeRow* rdmacc_rows_next(RdmaccRows* rows, Relation relation) {
  CHECK(rows->next <= rows->count && (rows->scan != nullptr || rows->ended || rows->count == 0));
  if (rows->next == rows->count && !next_batch(rows, relation)) return nullptr;
  const BridgeRow* row = &rows->batch[rows->next++];
  if (rows->passed != nullptr) rdmacc_passed_rows_add(rows->passed, row);
  return row;
}

bool rdmacc_rows_count_next(RdmaccRows* rows, Relation relation) {
  CHECK(rows->next <= rows->count && rows->wants.count_only);
  if (rows->next == rows->count && !next_batch(rows, relation)) return false;
  rows->next++;
  if (rows->passed != nullptr) rdmacc_passed_rows_count(rows->passed);
  return true;
}

void rdmacc_rows_end(RdmaccRows* rows) {
  if (rows->scan != nullptr) bridge_scan_free(rows->scan);
  rows->scan = nullptr;
  rows->count = rows->next = 0;
}
