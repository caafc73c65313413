#pragma once
#include <array>
#include <atomic>

#include "engine/txn/transaction/txn_observer.h"

// What the transactions of many processes have measured, in memory that they share: counters that
// any process adds to and reads without a lock. The memory's owner makes it (format) and keeps it
// as long as statistics shall live; sessions that end leave theirs behind. A reader sees counters
// of one moment and of the next: sums may be off by what was under way.

namespace rdmacc {

// Latencies of one stage with one primitive, in nanoseconds: every power of two is cut into eight
// buckets, so a percentile is off by at most 1/16 of its value. The last bucket has all above.
class SharedHistogram {
 public:
  struct Summary {
    uint64_t count = 0;
    double mean_ns = 0, p50_ns = 0, p99_ns = 0;  // 0 without values
  };

  void record(uint64_t ns);
  Summary summary() const;
  void reset();

 private:
  static constexpr uint32_t kSubBits = 3;
  static constexpr uint32_t kTopBitMax = 39;  // 2^40 ns are 18 minutes
  static constexpr size_t kBuckets = (kTopBitMax - kSubBits + 2) << kSubBits;

  static size_t bucket_of(uint64_t ns);
  static double middle_of(size_t bucket);

  std::array<std::atomic<uint64_t>, kBuckets> buckets_{};
  std::atomic<uint64_t> sum_ns_{0};
};

class SharedStats {
 public:
  static constexpr size_t kReasons = static_cast<size_t>(AbortReason::kCount);
  static constexpr size_t kPlans = kStageCodeMax + 1;

  struct PlanCount {
    uint64_t transactions = 0;  // ended, committed or not
    uint64_t committed = 0;
    uint64_t explored = 0;  // had another plan than the best known
  };

  // RCBench's sigma and theta are `verbs` and `nodes` for each that committed.
  struct ProtocolCount {
    uint64_t transactions = 0;  // ended, committed or not
    uint64_t committed = 0;
    VerbCounters verbs;               // of all of them
    uint64_t nodes = 0;               // of those that committed and have met any, added up
    uint64_t with_nodes = 0;          // how many these are
    uint64_t stage_ns = 0;            // that all their stages took, and
    uint64_t committed_stage_ns = 0;  // those of transactions that committed
  };

  struct RetryCount {
    uint64_t retries = 0;              // attempts of statements that the server has begun anew
    uint64_t given_up = 0;             // statements that lost once more than they may
    uint64_t replayed_statements = 0;  // earlier ones of blocks, run again for the one that lost
    uint64_t replay_us = 0;            // what that has taken, pauses included
    uint64_t replays_differed = 0;     // blocks whose statements would have told something else
  };

  // Makes empty statistics of sizeof(SharedStats) bytes at `memory`, aligned to 64.
  static SharedStats* format(void* memory);

  void add_stage(Protocol protocol, Stage stage, Primitive primitive, uint64_t ns);
  // `stage_ns`: what its stages have taken. `explored`: as in PlanCount.
  void add_transaction(const TxnEnd& end, uint64_t stage_ns, bool explored);

  void add_retry(Protocol protocol, bool gives_up);
  void add_replay(Protocol protocol, uint64_t statements, uint64_t us, bool differed);

  SharedHistogram::Summary stage(Protocol protocol, Stage stage, Primitive primitive) const;
  uint64_t aborts(Protocol protocol, AbortReason reason) const;
  PlanCount plan(Protocol protocol, StagePlan plan) const;
  ProtocolCount protocol(Protocol protocol) const;
  RetryCount retries(Protocol protocol) const;

  // What is added meanwhile may stay.
  void reset();

 private:
  struct AtomicPlanCount {
    std::atomic<uint64_t> transactions{0}, committed{0}, explored{0};
  };
  // Each a counter that many processes add to.
  enum Sum : size_t {
    kRoundTrips,
    kDoorbells,
    kReads,
    kWrites,
    kAtomics,
    kMessages,
    kNodes,
    kWithNodes,
    kStageNs,
    kCommittedStageNs,
    kSums
  };
  struct PerProtocol {
    std::array<std::array<SharedHistogram, 2>, kStageCount> stages;  // [stage_index][primitive]
    std::array<std::atomic<uint64_t>, kReasons> aborts{};
    std::array<AtomicPlanCount, kPlans> plans;  // by canonical hybrid code
    std::array<std::atomic<uint64_t>, kSums> sums{};
    std::atomic<uint64_t> retries{0}, given_up{0};
    std::atomic<uint64_t> replayed_statements{0}, replay_us{0}, replays_differed{0};
  };

  std::array<PerProtocol, kProtocolCount> protocols_;
};
// The counters work between processes only if they need no lock of their own.
static_assert(std::atomic<uint64_t>::is_always_lock_free);

}  // namespace rdmacc
