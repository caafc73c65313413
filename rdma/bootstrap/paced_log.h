#pragma once
#include <functional>
#include <mutex>
#include <string>

#include "rdma/bootstrap/claim_table.h"

namespace rdmacc {

// Sentences that others can cause: at most kPerPeriod of them a period, and then how many were
// left out. Thread-safe.
class PacedLog {
 public:
  explicit PacedLog(std::function<void(const std::string&)> log) : log_(std::move(log)) {}

  void say(const std::string& sentence) {
    if (!log_) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    const uint64_t now_ns = monotonic_now_ns();
    if (now_ns - period_began_ns_ >= kPeriodNs) {
      if (said_ > kPerPeriod) {
        log_(std::to_string(said_ - kPerPeriod) + " more such sentences were left out");
      }
      period_began_ns_ = now_ns;
      said_ = 0;
    }
    if (++said_ <= kPerPeriod) log_(sentence);
  }

 private:
  static constexpr uint64_t kPeriodNs = 10'000'000'000;
  static constexpr uint32_t kPerPeriod = 20;

  const std::function<void(const std::string&)> log_;
  std::mutex mutex_;
  uint64_t period_began_ns_ = 0;
  uint32_t said_ = 0;
};

}  // namespace rdmacc
