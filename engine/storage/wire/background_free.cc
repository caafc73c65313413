#include "engine/storage/wire/background_free.h"

#include "rdma/base/check.h"

namespace rdmacc {

uint32_t BackgroundFree::incarnation_of(NodeId node) const {
  CHECK(node < topology_.nodes);
  return worker_.endpoint().incarnation_of(topology_.worker_of(node));
}

void BackgroundFree::add(GlobalAddress block, uint32_t node_incarnation) {
  CHECK(!block.null());
  freed_.push_back({block, node_incarnation});
}

void BackgroundFree::start() {
  if (sending_ || freed_.empty()) return;
  sending_ = worker_.scheduler().spawn([this] {
    while (!freed_.empty()) send();
    sending_ = false;
  });
}

void BackgroundFree::send() {
  std::vector<StorageClient::FreeRequest> requests;
  requests.reserve(freed_.size());
  for (const Freed& each : freed_) {
    const uint32_t now = incarnation_of(each.block.node());
    if (now == each.node_incarnation && now != 0) {
      requests.push_back({each.block, FreeKind::kOverflow});
    }
  }
  freed_.clear();
  // What a node that goes away does not hear of is found free when it starts again.
  static_cast<void>(storage_.free(requests, 0, worker_.counters(), /*patient=*/true));
}

void BackgroundFree::finish(uint64_t us_max) {
  CHECK(worker_.scheduler().in_coroutine());
  const uint64_t deadline_us = worker_.endpoint().now_us() + us_max;
  while ((sending_ || !freed_.empty()) && worker_.endpoint().now_us() < deadline_us) {
    start();
    worker_.scheduler().sleep_for(kPauseUs);
  }
}

}  // namespace rdmacc
