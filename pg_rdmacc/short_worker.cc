#include "pg_rdmacc/short_worker.h"

extern "C" {
#include "miscadmin.h"
#include "utils/memutils.h"
}

BackgroundWorkerHandle* rdmacc_launch_worker(const char* function, const char* name,
                                             Datum argument) {
  BackgroundWorker worker = {};
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
