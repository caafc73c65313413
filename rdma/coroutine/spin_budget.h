#pragma once
#include <algorithm>

#include "rdma/base/base.h"

namespace rdmacc {

// How long a worker that has nothing to do spins before it sleeps. What comes soon is worth some
// spinning, since a sleep and a wake-up cost more; what has not come soon is perhaps made by a
// thread that needs the very processor. So the budget follows what came of earlier spins: some
// times as long as the last one took that had success, half after one in vain, and now and then one
// more try when it is used up.
class SpinBudget {
 public:
  explicit SpinBudget(uint32_t us_max) : us_max_(us_max), us_(us_max) {}

  // For the spin that begins; 0: it is to sleep at once.
  uint64_t us() {
    if (us_ == 0 && ++sleeps_ % kSleepsPerTry == 0) us_ = std::min(us_max_, kUsLeast);
    return us_;
  }
  // It found something after so long, or nothing. One that took longer than it was to had to leave
  // its processor to others.
  void found(uint64_t after_us) {
    if (after_us > us_ + kLateUs) return found_nothing();
    us_ = std::min<uint64_t>(us_max_, std::max<uint64_t>(kUsLeast, after_us * kTimes));
  }
  void found_nothing() { us_ /= 2; }

 private:
  static constexpr uint64_t kUsLeast = 20, kTimes = 4, kLateUs = 100;
  static constexpr uint32_t kSleepsPerTry = 16;

  const uint64_t us_max_;
  uint64_t us_;
  uint32_t sleeps_ = 0;
};

}  // namespace rdmacc
