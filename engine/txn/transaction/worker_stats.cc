#include "engine/txn/transaction/worker_stats.h"

namespace rdmacc {

void WorkerStats::merge(const WorkerStats& other) {
  committed += other.committed;
  aborted += other.aborted;
  exclusive += other.exclusive;
  for (size_t i = 0; i < aborts.size(); i++) aborts[i] += other.aborts[i];
  for (size_t stage = 0; stage < stage_ns.size(); stage++) {
    for (size_t p = 0; p < 2; p++) stage_ns[stage][p].merge(other.stage_ns[stage][p]);
  }
  verbs.add(other.verbs);
  allocation_verbs.add(other.allocation_verbs);
  log_full_waits += other.log_full_waits;
}

}  // namespace rdmacc
