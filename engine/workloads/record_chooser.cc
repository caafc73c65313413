#include "engine/workloads/record_chooser.h"

#include <algorithm>
#include <cmath>

namespace rdmacc {

RecordChooser::RecordChooser(const AccessPattern& pattern)
    : pattern_(pattern), uniform_(pattern.zipf_theta == 0 && pattern.hot_records == 0) {
  CHECK(pattern.records > 0 && pattern.hot_records <= pattern.records);
  CHECK(pattern.hot_access_percent <= 100);
  CHECK(pattern.zipf_theta >= 0 && pattern.zipf_theta < 1);
  const double theta = pattern.zipf_theta;
  if (theta == 0) return;
  CHECK(pattern.hot_records == 0);
  for (uint64_t i = 1; i <= pattern.records; ++i) zeta_ += std::pow(i, -theta);
  second_ = 1 + std::pow(2, -theta);
  alpha_ = 1 / (1 - theta);
  const double share_of_two = second_ / zeta_;
  eta_ = pattern.records <= 2
             ? 1
             : (1 - std::pow(2.0 / static_cast<double>(pattern.records), 1 - theta)) /
                   (1 - share_of_two);
}

uint64_t RecordChooser::choose_skewed(Random& random) const {
  if (pattern_.zipf_theta > 0) return choose_zipf(random);
  const uint64_t cold = pattern_.records - pattern_.hot_records;
  if (cold == 0 || random.percent(pattern_.hot_access_percent)) {
    return random.below(pattern_.hot_records);
  }
  return pattern_.hot_records + random.below(cold);
}

uint64_t RecordChooser::choose_zipf(Random& random) const {
  const double drawn = random.unit();
  const double scaled = drawn * zeta_;
  if (scaled < 1 || pattern_.records == 1) return 0;
  if (scaled < second_ || pattern_.records == 2) return 1;
  const auto record = static_cast<uint64_t>(static_cast<double>(pattern_.records) *
                                            std::pow(eta_ * drawn - eta_ + 1, alpha_));
  return std::min(record, pattern_.records - 1);
}

}  // namespace rdmacc
