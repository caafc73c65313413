#pragma once
#include <vector>

#include "engine/storage/wire/messages.h"
#include "rdma/rpc/worker.h"

namespace rdmacc {

// Keeps the requests of a dead coordinator from taking effect after its resolution has looked: a
// request that was under way when its caller died could otherwise still lock, or complete a log
// entry, when the locks have been released and the outcome decided. A node thread passes every
// handler that locks or logs for its caller through guard(); resolution has every node thread
// fence the dead worker (kMethodFenceCaller) before it reads a ring.
//
// One per node thread, used by it alone; it outlives the worker's Rpc handlers.
class CallerFence {
 public:
  CallerFence(Worker& worker, const Topology& topology)
      : worker_(worker), running_(topology.workers_max) {}
  CallerFence(const CallerFence&) = delete;
  CallerFence& operator=(const CallerFence&) = delete;

  // A handler that refuses dead callers (kUnavailable) and is counted while it runs.
  Rpc::Handler guard(Rpc::Handler handler);
  // Between them `caller` counts as one for which a handler runs, alive or dead: for what a node
  // still has to do of an earlier process's requests.
  void begin(WorkerId caller) {
    CHECK(caller < running_.size());
    ++running_[caller];
  }
  void end(WorkerId caller) {
    CHECK(running_[caller] > 0);
    --running_[caller];
  }
  // Waits until no guarded handler runs for `dead`; none starts any more. kInvalidArgument if it
  // is alive (or no worker id), kTimeout if a handler does not end.
  Status fence(WorkerId dead);

 private:
  Worker& worker_;
  std::vector<uint32_t> running_;  // handlers, by caller
};

constexpr MethodId kMethodFenceCaller = 31;
constexpr uint64_t kFenceUsMax = 10'000'000;

// Registers kMethodFenceCaller: on every thread of a node but thread 0, whose serve_resolution
// does it.
void serve_fence(Worker& worker, CallerFence& fence);

}  // namespace rdmacc
