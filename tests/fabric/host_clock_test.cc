#include "rdma/base/host_clock.h"

#include <gtest/gtest.h>

namespace rdmacc {
namespace {

// Long enough that the rate is measured and looked at anew several times.
constexpr uint64_t kRunNs = 30'000'000;
constexpr uint64_t kApartNsMax = 1'000'000;

TEST(HostClock, NeverStepsBackAndStaysWithTheKernels) {
  HostClock clock;
  const uint64_t start = HostClock::monotonic_ns();
  uint64_t last = 0, before = start;
  while (before < start + kRunNs) {
    before = HostClock::monotonic_ns();
    const uint64_t now = clock.now_ns();
    const uint64_t after = HostClock::monotonic_ns();
    ASSERT_GE(now, last);
    ASSERT_GE(now + kApartNsMax, before);
    ASSERT_LE(now, after + kApartNsMax);
    last = now;
  }
  EXPECT_GT(last, start);
}

}  // namespace
}  // namespace rdmacc
