#pragma once
#include <memory>

#include "engine/log/caller_fence.h"
#include "engine/storage/wire/storage_service.h"
#include "engine/txn/driver/engine_context.h"
#include "engine/txn/remote/serving_frame.h"
#include "engine/txn/stages/install.h"

// The owner's side of the rpc primitive: carries out the same stages with verbs to itself, in a
// coroutine of the node's worker.

namespace rdmacc {

class StageServer {
 public:
  // Registers kMethodStage with the worker. `storage` is the node's (nullptr on threads other
  // than 0, which then refuse to look for a ctts's locks). Requests pass `fence`, so that none of
  // a dead coordinator takes effect after its resolution.
  StageServer(Worker& worker, const Topology& topology, CallerFence& fence, StorageService* storage,
              RulesOf rules_of);

  // The node has a log on disk: what logs and installs in one request is refused.
  void log_to_disk() { on_disk_ = true; }
  uint64_t requests() const { return requests_; }

 private:
  Status serve(WorkerId from, std::span<const std::byte> request, Rpc::Bytes& reply);

  static constexpr uint32_t kLocationCacheEntries = 16 * 1024;
  EngineContext engine_;
  StorageService* const storage_;
  const RulesOf rules_of_;
  const NodeId node_;
  ServingFrames frames_;
  uint64_t requests_ = 0;
  bool on_disk_ = false;
};

}  // namespace rdmacc
