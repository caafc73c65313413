#pragma once
#include <algorithm>
#include <bit>
#include <vector>

#include "rdma/base/base.h"
#include "rdma/base/check.h"

namespace rdmacc {

// A log-linear latency histogram: every power of two is cut into 32 equal buckets, so a percentile
// is off by at most 1/64 of its value, and recording is a few instructions without branches on
// the value's size. Values are nanoseconds by convention. One thread; merge() to sum up workers.
// The buckets, 15 KB, come with the first value.
class Histogram {
 public:
  void record(uint64_t ns, uint64_t times = 1) {
    const size_t bucket = bucket_of(ns);
    CHECK(bucket < kBuckets && times > 0);
    if (buckets_.empty()) [[unlikely]]
      buckets_.resize(kBuckets);
    buckets_[bucket] += times;
    count_ += times;
    sum_ += static_cast<double>(ns) * static_cast<double>(times);
    min_ = std::min(min_, ns);
    max_ = std::max(max_, ns);
  }
  void merge(const Histogram& other);
  void clear();

  uint64_t count() const { return count_; }
  double mean() const;
  uint64_t min() const { return count_ == 0 ? 0 : min_; }
  uint64_t max() const { return max_; }
  // The value below which `percent` of the recorded ones lie; 0 when nothing was recorded.
  uint64_t percentile(double percent) const;
  // Calls visit(least, below, count) for each bucket that holds something, from the lowest up: the
  // values of a bucket are at least `least` and less than `below`.
  template <typename Visit>
  void for_each_bucket(const Visit& visit) const {
    for (size_t i = 0; i < buckets_.size(); ++i) {
      if (buckets_[i] > 0) visit(least_of(i), least_of(i + 1), buckets_[i]);
    }
  }

 private:
  static constexpr uint32_t kSubBits = 5;
  static constexpr size_t kBuckets = (64 - kSubBits + 1) << kSubBits;

  // Values below 2^kSubBits have a bucket each. Above, the highest set bit picks the group and the
  // kSubBits bits behind it pick the bucket.
  static size_t bucket_of(uint64_t ns) {
    constexpr uint64_t kSub = 1ull << kSubBits;
    if (ns < kSub) return static_cast<size_t>(ns);
    const uint32_t top = 63u - static_cast<uint32_t>(std::countl_zero(ns));
    const uint32_t shift = top - kSubBits;
    return static_cast<size_t>(((shift + 1ull) << kSubBits) + ((ns >> shift) & (kSub - 1)));
  }
  static uint64_t least_of(size_t bucket) {  // also of kBuckets: where the last one ends, or 0
    constexpr uint64_t kSub = 1ull << kSubBits;
    if (bucket < kSub) return bucket;
    return (kSub + (bucket & (kSub - 1))) << ((bucket >> kSubBits) - 1);
  }
  static uint64_t middle_of(size_t bucket);

  uint64_t count_ = 0;
  uint64_t min_ = UINT64_MAX;
  uint64_t max_ = 0;
  double sum_ = 0;
  std::vector<uint64_t> buckets_;  // none, or all
};

}  // namespace rdmacc
