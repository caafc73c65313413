#pragma once
#include <atomic>
#include <memory>
#include <span>

#include "engine/bench/options.h"
#include "engine/session.h"

namespace rdmacc {

// What one coordinator does. All three are called on its thread; start() spawns coroutines on the
// coordinator's scheduler and returns.
class CoordinatorJob {
 public:
  virtual ~CoordinatorJob() = default;
  virtual void start(Coordinator& coordinator) = 0;
  virtual bool finished() const = 0;
  virtual void finish(Coordinator&) {}  // before the coordinator leaves
};

// The nodes of a run, and coordinators on demand.
class BenchCluster {
 public:
  virtual ~BenchCluster() = default;
  // Gives each job a coordinator and runs all until they have finished.
  virtual Status run(std::span<CoordinatorJob* const> jobs) = 0;
  // Kills the nodes, forgets their memory and starts them from disk. kInvalidArgument: they are not
  // the run's own, or have no disk. No job runs, and the process has no threads.
  virtual Status crash() = 0;

  // Nodes as processes of this host or elsewhere, or in virtual time in this thread. To be called
  // before the process has threads. `interrupted` ends every wait of the cluster early.
  static Result<std::unique_ptr<BenchCluster>> start(const BenchOptions& options,
                                                     const std::atomic<bool>& interrupted);
};

}  // namespace rdmacc
