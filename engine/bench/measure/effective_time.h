#pragma once
#include "rdma/base/random.h"
#include "rdma/coroutine/scheduler.h"

namespace rdmacc {

// How long a coordinator's thread runs within attempts that commit: the effective time of RCBench
// §7.2. What counts is the time that the transaction's coroutine runs: not while it is suspended,
// not the scheduler, polling and other coroutines. The first kAll transactions are all measured;
// of those behind them one in kEvery, by chance, stands for as many, so that measuring costs
// little. One thread.
class EffectiveTime {
 public:
  static constexpr uint64_t kAll = 1'000, kEvery = 8;

  // Around one transaction, from its coroutine. attempt_ends() follows each attempt_begins().
  class Sample {
   public:
    Sample(EffectiveTime& times, Scheduler& scheduler)
        : times_(times), scheduler_(scheduler), weight_(times.draw_weight()) {}
    void attempt_begins() {
      if (weight_ == 0) return;
      ran_ns_ = 0;
      scheduler_.meter(&ran_ns_);
    }
    void attempt_ends(bool committed) {
      if (weight_ == 0) return;
      scheduler_.meter(nullptr);
      if (committed) times_.effective_ns_ += static_cast<double>(ran_ns_ * weight_);
    }

   private:
    EffectiveTime& times_;
    Scheduler& scheduler_;
    const uint64_t weight_;  // for so many transactions it stands; 0: it is not measured
    uint64_t ran_ns_ = 0;
  };

  double effective_ns() const { return effective_ns_; }
  void merge(const EffectiveTime& other) { effective_ns_ += other.effective_ns_; }

 private:
  uint64_t draw_weight() {
    if (transactions_++ < kAll) return 1;
    return random_.below(kEvery) == 0 ? kEvery : 0;
  }

  uint64_t transactions_ = 0;
  double effective_ns_ = 0;
  Random random_{1};
};

}  // namespace rdmacc
