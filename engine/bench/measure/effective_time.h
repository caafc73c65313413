#pragma once
#include "rdma/base/sampling.h"
#include "rdma/coroutine/scheduler.h"

namespace rdmacc {

// How long a coordinator's thread runs within attempts that commit: the effective time of RCBench
// §7.2. What counts is the time that the transaction's coroutine runs: not while it is suspended,
// not the scheduler, polling and other coroutines. Of a sample of the transactions. One thread.
class EffectiveTime {
 public:
  // Around one transaction, from its coroutine. attempt_ends() follows each attempt_begins().
  class Sample {
   public:
    Sample(EffectiveTime& times, Scheduler& scheduler)
        : times_(times), scheduler_(scheduler), weight_(times.sampling_.draw_weight()) {}
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
  Sampling sampling_;
  double effective_ns_ = 0;
};

}  // namespace rdmacc
