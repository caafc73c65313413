#include "pg_rdmacc/recovery/status.h"

#include "pg_rdmacc/recovery/manifest.h"
#include "pg_rdmacc/server/shared_piece.h"

extern "C" {
#include "miscadmin.h"
}

RdmaccDurabilityStatus* rdmacc_durability_status = nullptr;

namespace {

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

Size status_bytes(void) { return rdmacc_rows_are_durable() ? sizeof(RdmaccDurabilityStatus) : 0; }

void attach_status(void* memory, bool found) {
  rdmacc_durability_status = static_cast<RdmaccDurabilityStatus*>(memory);
  auto* words = static_cast<pg_atomic_uint64*>(memory);
  const Size count = found ? 0 : sizeof(RdmaccDurabilityStatus) / sizeof(pg_atomic_uint64);
  for (Size i = 0; i < count; i++) pg_atomic_init_u64(&words[i], 0);
}

const RdmaccSharedPiece piece = {"rdmacc durability", refuse_to_forget, status_bytes,
                                 attach_status};

}  // namespace

void rdmacc_durability_status_init(void) {
  CHECK(rdmacc_durability_status == nullptr);
  rdmacc_add_shared_piece(&piece);
}
