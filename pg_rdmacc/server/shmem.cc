#include "pg_rdmacc/server/shmem.h"

#include "pg_rdmacc/bridge/bridge_stats.h"
#include "pg_rdmacc/server/fabric.h"
#include "pg_rdmacc/server/shared_piece.h"

extern "C" {
#include "access/xlog.h"
#include "miscadmin.h"
#include "storage/shmem.h"
}

RdmaccControl* rdmacc_control = nullptr;

bool rdmacc_preloaded = false;

namespace {

/* Set in the postmaster, inherited by fork. */
pg_atomic_uint32* worker_pids = nullptr; /* rdmacc_worker_ids() of them */
char cluster_name[RDMACC_CLUSTER_NAME_MAX + 1];

/* Unpredictable, so that no other process can have made objects of that name before. */
void draw_cluster_name(void) {
  uint8 random[12];
  if (!pg_strong_random(random, sizeof(random))) {
    ereport(FATAL, (errmsg("could not generate a random name for the rdmacc cluster")));
  }
  char* end = cluster_name + strlcpy(cluster_name, "pg_", sizeof(cluster_name));
  for (const uint8 byte : random) end += sprintf(end, "%02x", byte);
}

Size worker_pids_bytes(void) {
  return mul_size(sizeof(pg_atomic_uint32), static_cast<Size>(rdmacc_worker_ids()));
}

void check_settings(void) {
  rdmacc_guc_check_at_start();
  rdmacc_fabric_check_at_start();
}

Size control_bytes(void) { return sizeof(RdmaccControl); }

void attach_control(void* memory, bool found) {
  rdmacc_control = static_cast<RdmaccControl*>(memory);
  if (found) return;
  pg_atomic_init_u32(&rdmacc_control->serving, 0);
  pg_atomic_init_u32(&rdmacc_control->stopping, 0);
  pg_atomic_init_u32(&rdmacc_control->fresh, 0);
  pg_atomic_init_u32(&rdmacc_control->looks, 0);
  pg_atomic_init_u32(&rdmacc_control->made, 0);
  pg_atomic_init_u32(&rdmacc_control->recovering,
                     rdmacc_rows_are_durable() ? RDMACC_RECOVERING : RDMACC_RECOVERED);
  pg_atomic_init_u64(&rdmacc_control->applied_until, 0);
  ConditionVariableInit(&rdmacc_control->applied);
  pg_atomic_init_u32(&rdmacc_control->followed, 0);
  pg_atomic_init_u32(&rdmacc_control->pauses, 0);
  pg_atomic_init_u32(&rdmacc_control->was_on_disk, 0);
  pg_atomic_init_u32(&rdmacc_control->checkpointer_pid, 0);
  pg_atomic_init_u32(&rdmacc_control->doubts, 0);
  for (RdmaccNodeStatus& node : rdmacc_control->nodes) {
    pg_atomic_init_u32(&node.state, RDMACC_NODE_STOPPED);
    pg_atomic_init_u32(&node.pid, 0);
    pg_atomic_init_u32(&node.restarts, 0);
    pg_atomic_init_u64(&node.started, 0);
  }
}

void attach_worker_pids(void* memory, bool found) {
  CHECK(rdmacc_worker_ids() > 0);
  worker_pids = static_cast<pg_atomic_uint32*>(memory);
  for (int worker = 0; worker < rdmacc_worker_ids() && !found; ++worker) {
    pg_atomic_init_u32(&worker_pids[worker], 0);
  }
}

/* PostgreSQL aligns the block to a line of the processor's cache. */
void attach_statistics(void* memory, bool found) {
  if (!found) bridge_stats_format(memory);
  bridge_stats_use(memory);
}

const RdmaccSharedPiece control = {"rdmacc control", check_settings, control_bytes, attach_control};
const RdmaccSharedPiece pids = {"rdmacc worker pids", nullptr, worker_pids_bytes,
                                attach_worker_pids};
const RdmaccSharedPiece statistics = {"rdmacc statistics", nullptr, bridge_stats_bytes,
                                      attach_statistics};

}  // namespace

void rdmacc_shmem_init(void) {
  CHECK(rdmacc_control == nullptr && cluster_name[0] == '\0'); /* once in the postmaster */
  draw_cluster_name();
  rdmacc_add_shared_piece(&control);
  rdmacc_add_shared_piece(&pids);
  rdmacc_add_shared_piece(&statistics);
}

void rdmacc_require_preload(void) {
  if (rdmacc_preloaded) return;
  ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                  errmsg("pg_rdmacc was not loaded at server start"),
                  errhint("Add the line\nshared_preload_libraries = 'pg_rdmacc'\nto "
                          "postgresql.conf and restart the server.")));
}

const char* rdmacc_cluster_name(void) {
  return rdmacc_nodes_are_remote() ? rdmacc_cluster_name_setting : cluster_name;
}

void rdmacc_set_worker_pid(int worker, int pid) {
  if (worker_pids == nullptr || worker < 0 || worker >= rdmacc_worker_ids()) return;
  pg_atomic_write_u32(&worker_pids[worker], static_cast<uint32>(pid));
}

int rdmacc_worker_pid(int worker) {
  if (worker_pids == nullptr || worker < 0 || worker >= rdmacc_worker_ids()) return 0;
  return static_cast<int>(pg_atomic_read_u32(&worker_pids[worker]));
}

bool rdmacc_nodes_are_up(void) {
  return rdmacc_control != nullptr && pg_atomic_read_u32(&rdmacc_control->serving) != 0;
}

bool rdmacc_cluster_serving(void) {
  return rdmacc_nodes_are_up() && !rdmacc_rows_are_recovering() &&
         pg_atomic_read_u32(&rdmacc_control->stopping) == 0;
}

/* What a standby has not applied when it is promoted is still to come. */
bool rdmacc_rows_are_recovering(void) {
  if (rdmacc_control == nullptr) return false;
  const uint32 state = pg_atomic_read_u32(&rdmacc_control->recovering);
  return state != RDMACC_RECOVERED && !(state == RDMACC_FOLLOWING && RecoveryInProgress());
}

bool rdmacc_cluster_is_fresh(void) {
  return rdmacc_control != nullptr && pg_atomic_read_u32(&rdmacc_control->fresh) != 0;
}

const char* rdmacc_node_state_name(uint32 state) {
  switch (state) {
    case RDMACC_NODE_STARTING:
      return "starting";
    case RDMACC_NODE_RUNNING:
      return "running";
    case RDMACC_NODE_REMOTE:
      return "remote";
    case RDMACC_NODE_AWAY:
      return "away";
    default:
      return "stopped";
  }
}
