#pragma once
#include <array>

#include "rdma/base/base.h"

namespace rdmacc {

// A log-linear latency histogram: every power of two is cut into 32 equal buckets, so a percentile
// is off by at most 1/64 of its value, and recording is a few instructions without branches on
// the value's size. Values are nanoseconds by convention. One thread; merge() to sum up workers.
class Histogram {
 public:
  void record(uint64_t ns);
  void merge(const Histogram& other);
  void clear();

  uint64_t count() const { return count_; }
  double mean() const;
  uint64_t min() const { return count_ == 0 ? 0 : min_; }
  uint64_t max() const { return max_; }
  // The value below which `percent` of the recorded ones lie; 0 when nothing was recorded.
  uint64_t percentile(double percent) const;

 private:
  static constexpr uint32_t kSubBits = 5;
  static constexpr size_t kBuckets = (64 - kSubBits + 1) << kSubBits;

  static size_t bucket_of(uint64_t ns);
  static uint64_t middle_of(size_t bucket);

  uint64_t count_ = 0;
  uint64_t min_ = UINT64_MAX;
  uint64_t max_ = 0;
  double sum_ = 0;
  std::array<uint64_t, kBuckets> buckets_{};
};

}  // namespace rdmacc
