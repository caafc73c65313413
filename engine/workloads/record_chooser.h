#pragma once
#include "rdma/base/random.h"

namespace rdmacc {

// Which records are accessed how often. At most one of the two skews.
struct AccessPattern {
  uint64_t records = 1;
  // The first so many records get so many percent of the accesses, the rest is uniform over the
  // others (RCC's hot area). 0 hot records: uniform over all.
  uint64_t hot_records = 0;
  uint32_t hot_access_percent = 0;
  double zipf_theta = 0;  // 0: none; below 1. The smaller a record's number, the more accesses
};

// Draws record numbers 0 .. records - 1. Constant, so any thread may use it.
class RecordChooser {
 public:
  // Zipf: takes time in proportion to the records. CHECKs the pattern.
  explicit RecordChooser(const AccessPattern& pattern);
  uint64_t choose(Random& random) const {
    return uniform_ ? random.below(pattern_.records) : choose_skewed(random);
  }

 private:
  uint64_t choose_skewed(Random& random) const;
  uint64_t choose_zipf(Random& random) const;

  const AccessPattern pattern_;
  const bool uniform_;
  // Of Gray et al., "Quickly generating billion-record synthetic databases" (1994), section 3.2.
  double zeta_ = 0, alpha_ = 0, eta_ = 0, second_ = 0;
};

}  // namespace rdmacc
