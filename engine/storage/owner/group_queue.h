#pragma once
#include <deque>
#include <vector>

#include "engine/storage/layout/hash_index.h"

namespace rdmacc {

// Groups that wait for their turn, by their offsets: each at most once, so that there are no more
// than groups. Which ones are in it is a bit for each place that a group may have: where rows come
// in quickly thousands of groups wait, and a set of them would be in no cache.
class GroupQueue {
 public:
  bool empty() const { return groups_.empty(); }
  size_t size() const { return groups_.size(); }
  void push_back(uint64_t group) {
    if (note(group)) groups_.push_back(group);
  }
  void push_front(uint64_t group) {
    if (note(group)) groups_.push_front(group);
  }
  uint64_t pop_front() {
    const uint64_t group = groups_.front();
    groups_.pop_front();
    queued_[place_of(group)] = false;
    return group;
  }

 private:
  // No two groups have one place.
  static constexpr uint64_t kPlaceBytes = 512;
  static_assert(kPlaceBytes <= sizeof(Group));
  static size_t place_of(uint64_t group) { return group / kPlaceBytes; }
  // False: it is there already.
  bool note(uint64_t group) {
    const size_t place = place_of(group);
    if (place >= queued_.size()) queued_.resize(place + place / 2 + 1);
    if (queued_[place]) return false;
    queued_[place] = true;
    return true;
  }

  std::deque<uint64_t> groups_;
  std::vector<bool> queued_;
};

}  // namespace rdmacc
