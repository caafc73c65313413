#pragma once
#include "rdma/base/base.h"
#include "rdma/base/check.h"

namespace rdmacc {

// splitmix64: small, fast, and the same on every machine, so that one seed is one history.
// Not for secrets. One object per owner; not thread-safe.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    state_ += 0x9E3779B97F4A7C15ull;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  // Uniform in [0, bound); bound > 0. The modulo's bias is below 2^-32 for our bounds.
  uint64_t below(uint64_t bound) {
    CHECK(bound > 0);
    return static_cast<uint64_t>((static_cast<unsigned __int128>(next()) * bound) >> 64);
  }
  // Uniform in [least, most].
  uint64_t between(uint64_t least, uint64_t most) {
    CHECK(least <= most);
    return least + below(most - least + 1);
  }
  bool percent(uint32_t chance) { return below(100) < chance; }
  double unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

 private:
  uint64_t state_;
};

}  // namespace rdmacc
