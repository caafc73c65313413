#include "rdma/base/histogram.h"

#include <algorithm>

#include "rdma/base/check.h"

namespace rdmacc {

uint64_t Histogram::middle_of(size_t bucket) {
  constexpr uint64_t kSub = 1ull << kSubBits;
  if (bucket < kSub) return bucket;
  const uint64_t shift = (bucket >> kSubBits) - 1;
  return least_of(bucket) + ((1ull << shift) >> 1);
}

void Histogram::merge(const Histogram& other) {
  if (other.count_ == 0) return;
  buckets_.resize(kBuckets);
  for (size_t i = 0; i < kBuckets; ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  sum_ += other.sum_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
}

void Histogram::clear() { *this = Histogram(); }

double Histogram::mean() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }

uint64_t Histogram::percentile(double percent) const {
  CHECK(percent >= 0 && percent <= 100);
  if (count_ == 0) return 0;
  if (percent >= 100) return max_;
  const double wanted = static_cast<double>(count_) * percent / 100.0;
  uint64_t below = 0;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    below += buckets_[i];
    if (buckets_[i] != 0 && static_cast<double>(below) >= wanted) {
      return std::clamp(middle_of(i), min_, max_);
    }
  }
  return max_;
}

}  // namespace rdmacc
