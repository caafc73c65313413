#pragma once
#include "engine/storage/owner/reclaimer.h"
#include "rdma/base/check.h"

namespace rdmacc {

// Whether every transaction that was under way at a moment has ended, those of workers that are
// dead and not resolved included: two epochs after one that was read from then on.
//
// The look at the epoch has to begin after that moment. What was read before may be older than the
// epoch in which such a transaction began, also by many when node 0 was away, and two epochs later
// it may be under way still.
class GracePeriod {
 public:
  // Now is the moment.
  void begin(const Reclaimer& reclaimer) {
    CHECK(!begun());
    // The next look may be under way.
    looks_wanted_ = reclaimer.looks() + 2;
  }
  bool begun() const { return looks_wanted_ != 0; }
  // As of the last look.
  bool over(const Reclaimer& reclaimer) {
    CHECK(begun());
    if (epoch_ == 0 && reclaimer.looks() >= looks_wanted_) epoch_ = reclaimer.epoch();
    return epoch_ != 0 && reclaimer.epoch() >= epoch_ + 2;
  }

 private:
  uint64_t looks_wanted_ = 0;  // 0: has not begun
  uint64_t epoch_ = 0;         // as such a look showed it; 0: not yet
};

}  // namespace rdmacc
