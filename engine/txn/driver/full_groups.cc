#include "engine/txn/driver/full_groups.h"

#include <algorithm>
#include <utility>

#include "engine/storage/wire/storage_messages.h"

namespace rdmacc {

void FullGroups::note(GlobalAddress group) {
  CHECK(!group.null());
  if (noted_.size() < kFullGroupsMax) noted_.push_back(group);
}

void FullGroups::tell_soon() {
  if (noted_.size() < kToldTogether || telling_) return;
  telling_ = worker_.scheduler().spawn([this] { tell(); });
}

void FullGroups::settle() {
  if (noted_.size() >= kSettledTogether) settle_all();
}

void FullGroups::settle_all() {
  if (!noted_.empty() && !telling_) {
    telling_ = true;
    tell();
  }
  wait_for_splits();
}

void FullGroups::wait_for_splits() {
  constexpr int kPausesMax = 50;
  constexpr uint64_t kPauseUs = 20;
  for (int i = 0; i < kPausesMax && telling_; ++i) worker_.scheduler().sleep_for(kPauseUs);
  const std::vector<NodeId> nodes = std::exchange(splitting_, {});
  static_cast<void>(storage_.wait_for_pending_splits(
      nodes, worker_.counters(), StorageClient::kSettleRounds, StorageClient::kSplitPatience));
}

// A node that is away hears of its groups from later inserts.
void FullGroups::tell() {
  CHECK(telling_ && told_.empty());
  struct End {  // also when memory has run out
    FullGroups& of;
    ~End() {
      of.told_.clear();
      of.telling_ = false;
    }
  } const end{*this};
  while (!noted_.empty()) {
    told_.swap(noted_);
    for (const GlobalAddress group : told_) {
      const auto known = std::find(splitting_.begin(), splitting_.end(), group.node());
      if (known == splitting_.end()) splitting_.push_back(group.node());
    }
    static_cast<void>(
        storage_.split_soon(told_, worker_.counters(), StorageClient::kSplitPatience));
    told_.clear();
  }
}

}  // namespace rdmacc
