#pragma once
#include <algorithm>

#include "rdma/base/base.h"

namespace rdmacc {

// How long a worker that has nothing to do spins before it sleeps. What comes soon is worth some
// spinning, since a sleep and a wake-up cost more. But when several spins in a row were in vain,
// what is waited for is perhaps made by a thread that needs the very processor, or nothing is to
// be done: then it sleeps at once, and only now and then tries whether spinning pays again.
class SpinBudget {
 public:
  static constexpr uint32_t kInVainMax = 4, kSleepsPerTry = 16;

  explicit SpinBudget(uint32_t us_max) : us_max_(us_max) {}

  // For the spin that begins; 0: it is to sleep at once.
  uint64_t begin() {
    if (in_vain_ < kInVainMax) return us_max_;
    return ++sleeps_ % kSleepsPerTry == 0 ? us_max_ : 0;
  }
  // It found something after so long, or nothing. One that took longer than it was to had to leave
  // its processor to others.
  void found(uint64_t after_us) {
    if (after_us > us_max_ + kLateUs) return found_nothing();
    in_vain_ = 0;
  }
  void found_nothing() { in_vain_ = std::min(in_vain_ + 1, kInVainMax); }

 private:
  static constexpr uint64_t kLateUs = 100;

  const uint64_t us_max_;
  uint32_t in_vain_ = 0;  // spins in a row
  uint32_t sleeps_ = 0;
};

}  // namespace rdmacc
