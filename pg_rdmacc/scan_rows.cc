#include "pg_rdmacc/scan_rows.h"

#include "pg_rdmacc/error.h"
#include "pg_rdmacc/row_lock.h"
#include "pg_rdmacc/xact.h"

extern "C" {
#include "utils/resowner.h"
}

namespace {

BridgeScanMode mode_for(LockWaitPolicy wait_policy) {
  switch (wait_policy) {
    case LockWaitError:
      return BRIDGE_SCAN_NO_WAIT;
    case LockWaitSkip:
      return BRIDGE_SCAN_SKIP_LOCKED;
    case LockWaitBlock:
      break;
  }
  return BRIDGE_SCAN_SERIALIZABLE;
}

}  // namespace

void rdmacc_rows_begin(RdmaccRows* rows, uint32 table, uint32 visible_before) {
  memset(rows, 0, sizeof(*rows));
  rows->table = table;
  rows->visible_before = visible_before;
  rows->row_bytes_max = BRIDGE_WHOLE_ROWS;
}

const BridgeRow* rdmacc_rows_next(RdmaccRows* rows, Relation relation) {
  if (rows->next < rows->count) return &rows->batch[rows->next++];
  if (rows->ended) return nullptr;
  rdmacc_enter();
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
