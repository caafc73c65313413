#include "pg_rdmacc/recovery/status.h"

#include "pg_rdmacc/recovery/manifest.h"

extern "C" {
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
}

RdmaccDurabilityStatus* rdmacc_durability_status = nullptr;

namespace {

shmem_request_hook_type previous_request_hook;
shmem_startup_hook_type previous_startup_hook;

/* Rows of an earlier life would silently not be there. */
void refuse_to_forget(void) {
  if (rdmacc_durability == RDMACC_DURABILITY_DISK || !rdmacc_checkpoints_exist()) return;
  ereport(FATAL, (errcode(ERRCODE_CONFIG_FILE_ERROR),
                  errmsg("rdmacc.durability is memory, but rows of rdmacc tables are on disk"),
                  errhint("Set rdmacc.durability = disk. To give these rows up, remove the folder "
                          "\"%s\" from the data directory, and drop the replication slot "
                          "\"rdmacc\" afterwards.",
                          RDMACC_CHECKPOINT_FOLDER)));
}

void request_shmem(void) {
  if (previous_request_hook != nullptr) previous_request_hook();
  refuse_to_forget();
  if (rdmacc_rows_are_durable()) RequestAddinShmemSpace(sizeof(RdmaccDurabilityStatus));
}

void startup_shmem(void) {
  if (previous_startup_hook != nullptr) previous_startup_hook();
  if (!rdmacc_rows_are_durable()) return;
  LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
  bool found = false;
  rdmacc_durability_status = static_cast<RdmaccDurabilityStatus*>(
      ShmemInitStruct("rdmacc durability", sizeof(RdmaccDurabilityStatus), &found));
  if (!found) {
    auto* words = reinterpret_cast<pg_atomic_uint64*>(rdmacc_durability_status);
    for (Size i = 0; i < sizeof(RdmaccDurabilityStatus) / sizeof(pg_atomic_uint64); i++) {
      pg_atomic_init_u64(&words[i], 0);
    }
  }
  LWLockRelease(AddinShmemInitLock);
}

}  // namespace

void rdmacc_durability_status_init(void) {
  CHECK(rdmacc_durability_status == nullptr);
  previous_request_hook = shmem_request_hook;
  shmem_request_hook = request_shmem;
  previous_startup_hook = shmem_startup_hook;
  shmem_startup_hook = startup_shmem;
}
