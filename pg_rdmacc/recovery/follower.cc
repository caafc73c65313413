#include "pg_rdmacc/recovery/follower.h"

#include "pg_rdmacc/recovery/loader.h"
#include "pg_rdmacc/recovery/replay.h"
#include "pg_rdmacc/server/shmem.h"

extern "C" {
#include "access/xlog.h"
#include "access/xlogrecovery.h"
}

namespace {

constexpr int kStepsBetweenTables = 100; /* of a checkpoint */

void write_state(uint32 state) { pg_atomic_write_u32(&rdmacc_control->recovering, state); }

/* True: there is more. */
bool apply_some(void) {
  const XLogRecPtr replayed = GetXLogReplayRecPtr(nullptr);
  if (replayed <= pg_atomic_read_u64(&rdmacc_control->applied_until)) return false;
  const bool more = rdmacc_replay_some();
  /* Behind the last record there may be what is none. */
  pg_atomic_write_u64(&rdmacc_control->applied_until, more ? rdmacc_replay_position() : replayed);
  ConditionVariableBroadcast(&rdmacc_control->applied);
  return more;
}

void apply_more(void) {
  for (int i = 0; i < kStepsBetweenTables && apply_some(); i++) {
  }
}

void note_pause(bool pauses) { pg_atomic_write_u32(&rdmacc_control->pauses, pauses ? 1 : 0); }

}  // namespace

void rdmacc_follow_begin(void) {
  CHECK(rdmacc_control != nullptr);
  pg_atomic_write_u64(&rdmacc_control->applied_until, InvalidXLogRecPtr);
  note_pause(false);
  pg_atomic_fetch_add_u32(&rdmacc_control->followed, 1);
  rdmacc_loader_has_readers();
}

bool rdmacc_follow_step(void) {
  const bool more = apply_some();
  write_state(RDMACC_FOLLOWING);
  return more;
}

RdmaccStandbyCheckpoint rdmacc_follow_checkpoint(void) {
  return {rdmacc_replay_waits_from(), note_pause, apply_more};
}

void rdmacc_follow_end(void) {
  note_pause(false);
  write_state(RDMACC_RECOVERING);
  rdmacc_replay_rest();
}
