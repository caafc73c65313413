#include "pg_rdmacc/recovery/wal_slot.h"

#include "pg_rdmacc/recovery/manifest.h"
#include "pg_rdmacc/wal/redo_record.h"

extern "C" {
#include "access/rmgr.h"
#include "access/xlog_internal.h"
#include "replication/slot.h"
#include "storage/spin.h"
}

namespace {

/* It is this process's then. */
void make_slot(XLogRecPtr from) {
  CHECK(from != InvalidXLogRecPtr);
  ReplicationSlotCreate(RDMACC_SLOT, false, RS_EPHEMERAL, false);
  ReplicationSlotReserveWal(); /* from PostgreSQL's redo on, checked against removal */
  const XLogRecPtr reserved = MyReplicationSlot->data.restart_lsn;
  if (from < reserved) {
    ReplicationSlotRelease(); /* which drops it */
    ereport(FATAL, (errcode(ERRCODE_DATA_CORRUPTED),
                    errmsg("rows of rdmacc tables need the WAL from %X/%X on, but there is none "
                           "before %X/%X",
                           RDMACC_LSN(from), RDMACC_LSN(reserved)),
                    errdetail("This copy was made while the server had no checkpoint of rows that "
                              "is as new as its own."),
                    errhint("Take another base backup.")));
  }
  ReplicationSlotPersist();
}

/* Before the first record is redone. A server whose slot is there has had it all along. */
void make_slot_for_copy(void) {
  if (!rdmacc_rows_are_durable() || SearchNamedReplicationSlot(RDMACC_SLOT, true) != nullptr) {
    return;
  }
  Manifest manifest;
  if (!rdmacc_manifest_read(InvalidXLogRecPtr, &manifest)) return;
  make_slot(manifest.redo);
  ReplicationSlotRelease();
}

}  // namespace

void rdmacc_wal_slot_init(void) {
  CHECK(RmgrTable[RM_LOGICALMSG_ID].rm_startup == nullptr);
  RmgrTable[RM_LOGICALMSG_ID].rm_startup = make_slot_for_copy;
}

void rdmacc_wal_slot_hold(XLogRecPtr from) {
  if (MyReplicationSlot != nullptr) return;
  if (SearchNamedReplicationSlot(RDMACC_SLOT, true) == nullptr) {
    make_slot(from);
  } else {
    ReplicationSlotAcquire(RDMACC_SLOT, true);
  }
}

XLogRecPtr rdmacc_wal_slot_position(void) {
  ReplicationSlot* slot = SearchNamedReplicationSlot(RDMACC_SLOT, true);
  if (slot == nullptr) return InvalidXLogRecPtr;
  SpinLockAcquire(&slot->mutex);
  const XLogRecPtr position = slot->data.restart_lsn;
  SpinLockRelease(&slot->mutex);
  return position;
}

void rdmacc_wal_slot_advance(XLogRecPtr to) {
  ReplicationSlot* slot = MyReplicationSlot;
  CHECK(to != InvalidXLogRecPtr && slot != nullptr);
  if (slot->data.restart_lsn >= to) return;
  SpinLockAcquire(&slot->mutex);
  slot->data.restart_lsn = to;
  SpinLockRelease(&slot->mutex);
  ReplicationSlotMarkDirty();
  ReplicationSlotSave(); /* on disk before WAL may go */
  ReplicationSlotsComputeRequiredLSN();
}
