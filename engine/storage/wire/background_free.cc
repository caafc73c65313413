#include "engine/storage/wire/background_free.h"

#include <memory>

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

bool BackgroundFree::wait_for_others(uint64_t us_max) {
  const uint64_t deadline_us = worker_.endpoint().now_us() + us_max;
  while (under_way_ >= kUnderWayMax && worker_.endpoint().now_us() < deadline_us) {
    worker_.scheduler().sleep_for(kPauseUs);
  }
  return under_way_ < kUnderWayMax;
}

void BackgroundFree::start_sending() {
  if (!wait_for_others(kWaitUsMax) || freed_.empty()) return;
  auto freed = std::make_shared<std::vector<Freed>>(std::move(freed_));
  freed_.clear();
  if (freed->size() > kBlocksAtOnceMax) return send(*freed, /*patient=*/false);
  const bool spawned = worker_.scheduler().spawn([this, freed, patient = under_way_ < kPatientMax] {
    send(*freed, patient);
    --under_way_;
    start();
  });
  if (spawned) {
    ++under_way_;
  } else {
    freed_ = std::move(*freed);
  }
}

void BackgroundFree::send(const std::vector<Freed>& freed, bool patient) {
  std::vector<StorageClient::FreeRequest> requests;
  requests.reserve(freed.size());
  for (const Freed& each : freed) {
    const uint32_t now = incarnation_of(each.block.node());
    if (now == each.node_incarnation && now != 0) {
      requests.push_back({each.block, FreeKind::kOverflow});
    }
  }
  // What a node that goes away does not hear of is found free when it starts again.
  static_cast<void>(storage_.free(requests, 0, worker_.counters(), patient));
}

void BackgroundFree::finish(uint64_t us_max) {
  CHECK(worker_.scheduler().in_coroutine());
  const uint64_t deadline_us = worker_.endpoint().now_us() + us_max;
  while ((under_way_ > 0 || !freed_.empty()) && worker_.endpoint().now_us() < deadline_us) {
    start();
    worker_.scheduler().sleep_for(kPauseUs);
  }
}

}  // namespace rdmacc
