#include "rdma/base/host_clock.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <string_view>

#include "rdma/base/check.h"

namespace rdmacc {
namespace {

constexpr uint64_t kAnchorNs = 1'000'000;
constexpr uint64_t kMeasureNs = 10'000'000;  // so long until the rate is known well enough
constexpr uint64_t kSystemCallNsMax = 2'000;
constexpr int kLooksMax = 4;
constexpr uint64_t kOne = 1ull << 32;  // of ns_per_count_

bool kernel_counts() {
#ifdef __x86_64__
  constexpr char kSource[] = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
  constexpr std::string_view kWanted = "tsc\n";
  char source[kWanted.size() + 1];
  const int file = open(kSource, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const ssize_t bytes = ::read(file, source, sizeof(source));
  close(file);
  return bytes > 0 && std::string_view(source, static_cast<size_t>(bytes)) == kWanted;
#else
  return false;
#endif
}

}  // namespace

HostClock::HostClock()
    : counts_([] {
        static const bool counts = kernel_counts();
        return counts;
      }()) {}

uint64_t HostClock::monotonic_ns() {
  timespec now;
  CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// A thread that was put to sleep between the two readings must not take them for simultaneous.
uint64_t HostClock::look_anew() {
  if (!counts_) return last_ns_ = monotonic_ns();
  uint64_t ns = 0;
  for (int i = 0; i < kLooksMax; ++i) {
    const uint64_t before = count();
    ns = monotonic_ns();
    const uint64_t after = count();
    const bool together =
        ns_per_count_ == 0 || (after - before) * ns_per_count_ >> 32 < kSystemCallNsMax;
    if (!together) continue;
    if (first_ns_ == 0) {
      first_count_ = after;
      first_ns_ = ns;
    }
    anchor_count_ = after;
    anchor_ns_ = ns;
    const uint64_t measured_ns = ns - first_ns_;
    if (measured_ns >= kMeasureNs && after > first_count_) {
      const auto rate = static_cast<unsigned __int128>(measured_ns) * kOne / (after - first_count_);
      ns_per_count_ = static_cast<uint64_t>(rate);
    }
    counts_max_ = ns_per_count_ == 0 ? 0 : kAnchorNs * kOne / ns_per_count_;
    break;
  }
  last_ns_ = std::max(last_ns_, ns);
  return last_ns_;
}

}  // namespace rdmacc
