#include "engine/bench/measure/pace.h"

#include <cmath>

namespace rdmacc {

uint64_t Pace::draw_next() {
  next_ns_ -= std::log(1 - random_.unit()) * mean_ns_;
  // At few starts a second the next one may lie behind all that a clock can tell.
  constexpr double kNeverNs = 18446744073709551616.0;  // 2^64
  return next_ns_ < kNeverNs ? static_cast<uint64_t>(next_ns_) : UINT64_MAX;
}

std::optional<Pace::Start> Pace::wait(Scheduler& scheduler, uint64_t now_ns, uint64_t deadline_ns) {
  if (!scheduled()) return Start{now_ns, false};
  const uint64_t at_ns = draw_next();
  if (at_ns >= deadline_ns) return std::nullopt;
  if (at_ns > now_ns) scheduler.sleep_until((at_ns + 999) / 1000);
  now_ns = scheduler.endpoint().now_ns();
  const uint64_t lag_ns = now_ns > at_ns ? now_ns - at_ns : 0;
  if (latency_limit_ns_ > 0 && lag_ns > latency_limit_ns_) return Start{at_ns, true};
  lag_ns_.record(lag_ns);
  return Start{at_ns, false};
}

}  // namespace rdmacc
