#include "engine/workloads/workload.h"

namespace rdmacc {

Status abort_unless_ok(Session& session, Status status) {
  if (!status.ok() && session.active()) session.abort();
  return status;
}

Status retry_aborted(Scheduler& scheduler, const std::function<Status()>& attempt) {
  Status status;
  for (uint32_t i = 0; i < kAttemptsMax; ++i) {
    status = attempt();
    if (status.code() != Code::kAborted) return status;
    scheduler.yield();
  }
  return status;
}

}  // namespace rdmacc
