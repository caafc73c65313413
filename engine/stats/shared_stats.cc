#include "engine/stats/shared_stats.h"

#include <algorithm>
#include <bit>
#include <new>

#include "rdma/base/check.h"

namespace rdmacc {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

void add(std::atomic<uint64_t>& counter, uint64_t n = 1) { counter.fetch_add(n, kRelaxed); }

template <typename Protocols>
auto& of(Protocols& protocols, Protocol protocol) {
  const auto index = static_cast<size_t>(protocol);
  CHECK(index < protocols.size());
  return protocols[index];
}

}  // namespace

// ---- SharedHistogram

// Values below 2^kSubBits have a bucket each. Above, the highest set bit picks the group and the
// kSubBits bits behind it pick the bucket.
size_t SharedHistogram::bucket_of(uint64_t ns) {
  constexpr uint64_t kSub = 1ull << kSubBits;
  if (ns < kSub) return static_cast<size_t>(ns);
  const uint32_t top = 63u - static_cast<uint32_t>(std::countl_zero(ns));
  if (top > kTopBitMax) return kBuckets - 1;
  const uint32_t shift = top - kSubBits;
  return static_cast<size_t>(((shift + 1ull) << kSubBits) + ((ns >> shift) & (kSub - 1)));
}

double SharedHistogram::middle_of(size_t bucket) {
  constexpr uint64_t kSub = 1ull << kSubBits;
  if (bucket < kSub) return static_cast<double>(bucket);
  const uint64_t shift = (bucket >> kSubBits) - 1;
  const uint64_t low = (kSub + (bucket & (kSub - 1))) << shift;
  return static_cast<double>(low + ((1ull << shift) >> 1));
}

void SharedHistogram::record(uint64_t ns) {
  add(buckets_[bucket_of(ns)]);
  add(sum_ns_, ns);
}

SharedHistogram::Summary SharedHistogram::summary() const {
  std::array<uint64_t, kBuckets> counts;
  Summary summary;
  for (size_t i = 0; i < kBuckets; ++i) summary.count += counts[i] = buckets_[i].load(kRelaxed);
  if (summary.count == 0) return summary;
  const auto count = static_cast<double>(summary.count);
  summary.mean_ns = static_cast<double>(sum_ns_.load(kRelaxed)) / count;
  const auto percentile = [&](double share) {
    uint64_t below = 0;
    size_t bucket = 0;
    while (static_cast<double>(below += counts[bucket]) < share * count) ++bucket;
    return middle_of(bucket);
  };
  summary.p50_ns = percentile(0.50);
  summary.p99_ns = percentile(0.99);
  return summary;
}

void SharedHistogram::reset() {
  for (std::atomic<uint64_t>& bucket : buckets_) bucket.store(0, kRelaxed);
  sum_ns_.store(0, kRelaxed);
}

// ---- SharedStats

SharedStats* SharedStats::format(void* memory) {
  CHECK(reinterpret_cast<uintptr_t>(memory) % 64 == 0);
  return new (memory) SharedStats();
}

void SharedStats::add_stage(Protocol protocol, Stage stage, Primitive primitive, uint64_t ns) {
  of(protocols_, protocol).stages[stage_index(stage)][static_cast<size_t>(primitive)].record(ns);
}

void SharedStats::add_transaction(const TxnEnd& end, uint64_t stage_ns, bool explored) {
  CHECK(end.plan.code() < kPlans && static_cast<size_t>(end.reason) < kReasons);
  PerProtocol& stats = of(protocols_, end.protocol);
  AtomicPlanCount& count = stats.plans[end.plan.code()];
  add(count.transactions);
  if (explored) add(count.explored);
  const auto sum = [&stats](Sum which, uint64_t n) {
    if (n > 0) add(stats.sums[which], n);
  };
  if (end.committed) {
    add(count.committed);
    sum(kNodes, end.nodes);
    sum(kWithNodes, end.nodes > 0 ? 1 : 0);
    sum(kCommittedStageNs, stage_ns);
  } else {
    add(stats.aborts[static_cast<size_t>(end.reason)]);
  }
  sum(kStageNs, stage_ns);
  sum(kRoundTrips, end.verbs.round_trips);
  sum(kDoorbells, end.verbs.doorbells);
  sum(kReads, end.verbs.reads);
  sum(kWrites, end.verbs.writes);
  sum(kAtomics, end.verbs.atomics);
  sum(kMessages, end.verbs.messages);
}

void SharedStats::add_retry(Protocol protocol, bool gives_up) {
  PerProtocol& stats = of(protocols_, protocol);
  add(gives_up ? stats.given_up : stats.retries);
}

void SharedStats::add_replay(Protocol protocol, uint64_t statements, uint64_t us, bool differed) {
  PerProtocol& stats = of(protocols_, protocol);
  stats.replayed_statements.fetch_add(statements, kRelaxed);
  stats.replay_us.fetch_add(us, kRelaxed);
  if (differed) add(stats.replays_differed);
}

SharedHistogram::Summary SharedStats::stage(Protocol protocol, Stage stage,
                                            Primitive primitive) const {
  const PerProtocol& stats = of(protocols_, protocol);
  return stats.stages[stage_index(stage)][static_cast<size_t>(primitive)].summary();
}

uint64_t SharedStats::aborts(Protocol protocol, AbortReason reason) const {
  CHECK(static_cast<size_t>(reason) < kReasons);
  return of(protocols_, protocol).aborts[static_cast<size_t>(reason)].load(kRelaxed);
}

SharedStats::PlanCount SharedStats::plan(Protocol protocol, StagePlan plan) const {
  CHECK(plan.code() < kPlans);
  const AtomicPlanCount& count = of(protocols_, protocol).plans[plan.code()];
  return {.transactions = count.transactions.load(kRelaxed),
          .committed = count.committed.load(kRelaxed),
          .explored = count.explored.load(kRelaxed)};
}

SharedStats::ProtocolCount SharedStats::protocol(Protocol protocol) const {
  const PerProtocol& stats = of(protocols_, protocol);
  const auto sum = [&stats](Sum which) { return stats.sums[which].load(kRelaxed); };
  ProtocolCount all;
  for (const AtomicPlanCount& plan : stats.plans) {
    all.transactions += plan.transactions.load(kRelaxed);
    all.committed += plan.committed.load(kRelaxed);
  }
  all.verbs = {.round_trips = sum(kRoundTrips),
               .doorbells = sum(kDoorbells),
               .reads = sum(kReads),
               .writes = sum(kWrites),
               .atomics = sum(kAtomics),
               .messages = sum(kMessages)};
  all.nodes = sum(kNodes);
  all.with_nodes = sum(kWithNodes);
  all.stage_ns = sum(kStageNs);
  all.committed_stage_ns = sum(kCommittedStageNs);
  return all;
}

SharedStats::RetryCount SharedStats::retries(Protocol protocol) const {
  const PerProtocol& stats = of(protocols_, protocol);
  return {.retries = stats.retries.load(kRelaxed),
          .given_up = stats.given_up.load(kRelaxed),
          .replayed_statements = stats.replayed_statements.load(kRelaxed),
          .replay_us = stats.replay_us.load(kRelaxed),
          .replays_differed = stats.replays_differed.load(kRelaxed)};
}

void SharedStats::reset() {
  for (PerProtocol& stats : protocols_) {
    for (auto& stage : stats.stages) {
      for (SharedHistogram& histogram : stage) histogram.reset();
    }
    for (std::atomic<uint64_t>& aborts : stats.aborts) aborts.store(0, kRelaxed);
    for (AtomicPlanCount& count : stats.plans) {
      count.transactions.store(0, kRelaxed);
      count.committed.store(0, kRelaxed);
      count.explored.store(0, kRelaxed);
    }
    for (std::atomic<uint64_t>& sum : stats.sums) sum.store(0, kRelaxed);
    stats.retries.store(0, kRelaxed);
    stats.given_up.store(0, kRelaxed);
    stats.replayed_statements.store(0, kRelaxed);
    stats.replay_us.store(0, kRelaxed);
    stats.replays_differed.store(0, kRelaxed);
  }
}

}  // namespace rdmacc
