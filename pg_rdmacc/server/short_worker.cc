#include "pg_rdmacc/server/short_worker.h"

#include "pg_rdmacc/server/shmem.h"

extern "C" {
#include "miscadmin.h"
#include "utils/memutils.h"
}

namespace {

BackgroundWorkerHandle* resolver; /* NULL: not started, or ended */

}  // namespace

BackgroundWorkerHandle* rdmacc_launch_worker(const char* function, const char* name,
                                             Datum argument) {
  BackgroundWorker worker = {};
  CHECK(strlen(function) < sizeof(worker.bgw_function_name));
  worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
  worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
  worker.bgw_restart_time = BGW_NEVER_RESTART;
  worker.bgw_main_arg = argument;
  worker.bgw_notify_pid = MyProcPid;
  strlcpy(worker.bgw_library_name, "pg_rdmacc", sizeof(worker.bgw_library_name));
  strlcpy(worker.bgw_function_name, function, sizeof(worker.bgw_function_name));
  strlcpy(worker.bgw_name, name, sizeof(worker.bgw_name));
  strlcpy(worker.bgw_type, name, sizeof(worker.bgw_type));
  BackgroundWorkerHandle* handle = nullptr;
  const MemoryContext previous = MemoryContextSwitchTo(TopMemoryContext);
  if (!RegisterDynamicBackgroundWorker(&worker, &handle)) handle = nullptr;
  MemoryContextSwitchTo(previous);
  return handle;
}

void rdmacc_note_doubt(void) {
  if (rdmacc_control != nullptr) pg_atomic_fetch_add_u32(&rdmacc_control->doubts, 1);
}

void rdmacc_resolver_step(void) {
  CHECK(rdmacc_control != nullptr);
  if (resolver != nullptr) {
    pid_t pid = 0;
    if (GetBackgroundWorkerPid(resolver, &pid) != BGWH_STOPPED) return;
    pfree(resolver);
    resolver = nullptr;
  }
  if (pg_atomic_read_u32(&rdmacc_control->doubts) == 0 || !rdmacc_cluster_serving()) return;
  resolver = rdmacc_launch_worker("rdmacc_resolver_main", "rdmacc resolver", 0);
}
