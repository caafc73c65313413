#include "engine/txn/driver/full_groups.h"

#include <algorithm>
#include <utility>

#include "engine/storage/wire/storage_messages.h"

namespace rdmacc {

void FullGroups::note(GlobalAddress group) {
  CHECK(!group.null());
  if (noted_.size() >= kFullGroupsMax) return;
  noted_.push_back(group);
  const NodeId node = group.node();
  if (std::find(splitting_.begin(), splitting_.end(), node) == splitting_.end()) {
    splitting_.push_back(node);
  }
  if (noted_.size() >= kToldTogether) start_telling();
}

void FullGroups::start_telling() {
  if (!telling_) telling_ = worker_.scheduler().spawn([this] { tell(); });
}

void FullGroups::wait_for_splits() {
  constexpr int kPausesMax = 50;
  constexpr uint64_t kPauseUs = 20;
  if (splitting_.empty()) return;
  if (!noted_.empty()) start_telling();
  for (int i = 0; i < kPausesMax && telling_; ++i) worker_.scheduler().sleep_for(kPauseUs);
  const std::vector<NodeId> nodes = std::exchange(splitting_, {});
  static_cast<void>(storage_.wait_for_pending_splits(nodes, worker_.counters()));
}

// A node that is away hears of its groups from later inserts.
void FullGroups::tell() {
  CHECK(telling_ && told_.empty());
  while (!noted_.empty()) {
    told_.swap(noted_);
    static_cast<void>(storage_.split_soon(told_, worker_.counters()));
    told_.clear();
  }
  telling_ = false;
}

}  // namespace rdmacc
