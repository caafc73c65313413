#pragma once
#include <mutex>
#include <vector>

#include "rdma/base/histogram.h"

namespace rdmacc {

// What one coordinator, or all of them, ended within one second of a run.
struct SecondCounts {
  uint64_t committed = 0;    // transactions
  uint64_t rolled_back = 0;  // transactions, by their user
  uint64_t aborted = 0;      // attempts
  Histogram latency_ns;      // of committed transactions, retries included

  void merge(const SecondCounts& other);
};

// The same of all coordinators, in short.
struct RunSecond {
  uint64_t committed = 0, rolled_back = 0, aborted = 0;
  double mean_ns = 0;
  uint64_t p50_ns = 0, p99_ns = 0;
};

// Gathers the seconds of a run from its coordinators, each of which adds its own in their order,
// none left out. Any thread; what has been added by all is kept in short.
class RunTimeline {
 public:
  explicit RunTimeline(uint32_t coordinators) : coordinators_(coordinators) {}

  void add(uint32_t second, const SecondCounts& counts);
  // A coordinator has added that many seconds, and adds no more, whatever the others do.
  void leave(uint32_t seconds);
  // Those that all coordinators have added, from the first on.
  std::vector<RunSecond> seconds() const;

 private:
  struct Open {
    uint32_t added = 0;
    SecondCounts counts;
  };

  void close();
  uint32_t due(size_t second) const;  // by so many coordinators

  const uint32_t coordinators_;
  mutable std::mutex mutex_;
  std::vector<RunSecond> closed_;
  std::vector<Open> open_;  // the seconds behind the closed ones
  std::vector<uint32_t> left_;
};

}  // namespace rdmacc
