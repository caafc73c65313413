// Statistics that processes share, and their recorder.
#include "engine/stats/shared_stats.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "engine/protocols/registry.h"
#include "engine/stats/stats_recorder.h"

namespace rdmacc {
namespace {

constexpr Primitive kSome = Primitive::kRpc;

struct Shared {
  Shared() : memory(sizeof(SharedStats) + 64) {
    auto at = reinterpret_cast<uintptr_t>(memory.data());
    stats = SharedStats::format(reinterpret_cast<void*>((at + 63) / 64 * 64));
  }
  std::vector<std::byte> memory;
  SharedStats* stats;
};

class SharedStatsTest : public testing::Test {
 protected:
  const Protocol protocol_ = available_protocols()[0];
  Shared shared_;
  SharedStats& stats_ = *shared_.stats;
};

TEST_F(SharedStatsTest, StartEmpty) {
  for (const Protocol protocol : available_protocols()) {
    EXPECT_EQ(stats_.stage(protocol, Stage::kLock, kSome).count, 0u);
    EXPECT_EQ(stats_.aborts(protocol, AbortReason::kLockHeld), 0u);
    EXPECT_EQ(stats_.plan(protocol, StagePlan()).transactions, 0u);
  }
}

TEST_F(SharedStatsTest, TellMeanAndPercentilesWithinABucket) {
  for (uint64_t ns = 1; ns <= 100'000; ++ns) stats_.add_stage(protocol_, Stage::kLog, kSome, ns);
  const SharedHistogram::Summary summary = stats_.stage(protocol_, Stage::kLog, kSome);
  EXPECT_EQ(summary.count, 100'000u);
  EXPECT_DOUBLE_EQ(summary.mean_ns, 50'000.5);
  EXPECT_NEAR(summary.p50_ns, 50'000, 50'000 / 16.0);
  EXPECT_NEAR(summary.p99_ns, 99'000, 99'000 / 16.0);
  EXPECT_EQ(stats_.stage(protocol_, Stage::kLock, kSome).count, 0u);
}

TEST_F(SharedStatsTest, TakeTheSmallestAndLargestValues) {
  for (const uint64_t ns : std::initializer_list<uint64_t>{0, 7, 8, (1ull << 39) - 1, 1ull << 39,
                                                           (1ull << 40) - 1, 1ull << 40, ~0ull}) {
    stats_.reset();
    stats_.add_stage(protocol_, Stage::kLog, kSome, ns);
    const SharedHistogram::Summary summary = stats_.stage(protocol_, Stage::kLog, kSome);
    EXPECT_EQ(summary.count, 1u) << ns;
    const auto at_most = static_cast<double>(std::min(ns, uint64_t{1} << 40));
    EXPECT_NEAR(summary.p50_ns, at_most, at_most / 16) << ns;
  }
}

TEST_F(SharedStatsTest, CountTransactionsByPlanAndReason) {
  const StagePlan plan(5);
  stats_.add_transaction({protocol_, plan, true, AbortReason::kNone}, 0, false);
  stats_.add_transaction({protocol_, plan, true, AbortReason::kNone}, 0, true);
  stats_.add_transaction({protocol_, plan, false, AbortReason::kLockHeld}, 0, false);
  const SharedStats::PlanCount count = stats_.plan(protocol_, plan);
  EXPECT_EQ(count.transactions, 3u);
  EXPECT_EQ(count.committed, 2u);
  EXPECT_EQ(count.explored, 1u);
  EXPECT_EQ(stats_.aborts(protocol_, AbortReason::kLockHeld), 1u);
  EXPECT_EQ(stats_.aborts(protocol_, AbortReason::kNone), 0u);
  stats_.reset();
  EXPECT_EQ(stats_.plan(protocol_, plan).transactions, 0u);
  EXPECT_EQ(stats_.aborts(protocol_, AbortReason::kLockHeld), 0u);
}

TEST_F(SharedStatsTest, AddUpWhatTransactionsOfAProtocolCost) {
  const VerbCounters verbs{.round_trips = 1, .reads = 2, .writes = 3, .atomics = 4, .messages = 5};
  StatsRecorder recorder(shared_.stats, nullptr);
  recorder.stage_done(protocol_, Stage::kLock, kSome, 100);
  recorder.transaction_done({protocol_, StagePlan(3), true, AbortReason::kNone, verbs, 2});
  recorder.stage_done(protocol_, Stage::kLock, kSome, 30);
  recorder.stage_done(protocol_, Stage::kRelease, kSome, 20);
  recorder.transaction_done({protocol_, StagePlan(1), false, AbortReason::kLockHeld, verbs, 2});
  const SharedStats::ProtocolCount count = stats_.protocol(protocol_);
  EXPECT_EQ(count.transactions, 2u);
  EXPECT_EQ(count.committed, 1u);
  EXPECT_EQ(count.verbs.round_trips, 2u);
  EXPECT_EQ(count.verbs.reads, 4u);
  EXPECT_EQ(count.verbs.writes, 6u);
  EXPECT_EQ(count.verbs.atomics, 8u);
  EXPECT_EQ(count.verbs.messages, 10u);
  EXPECT_EQ(count.nodes, 2u) << "of the one that committed";
  EXPECT_EQ(count.with_nodes, 1u);
  EXPECT_EQ(count.committed_stage_ns, 100u);
  EXPECT_EQ(count.stage_ns, 150u);
  EXPECT_EQ(stats_.protocol(available_protocols()[1]).transactions, 0u);
  stats_.reset();
  EXPECT_EQ(stats_.protocol(protocol_).verbs.reads, 0u);
  EXPECT_EQ(stats_.protocol(protocol_).stage_ns, 0u);
}

TEST_F(SharedStatsTest, CountWhatIsRunAgain) {
  stats_.add_retry(Protocol::kOcc, /*gives_up=*/false);
  stats_.add_retry(Protocol::kOcc, /*gives_up=*/false);
  stats_.add_retry(Protocol::kOcc, /*gives_up=*/true);
  stats_.add_replay(Protocol::kOcc, 3, 200, /*differed=*/false);
  stats_.add_replay(Protocol::kOcc, 1, 50, /*differed=*/true);
  const SharedStats::RetryCount count = stats_.retries(Protocol::kOcc);
  EXPECT_EQ(count.retries, 2u);
  EXPECT_EQ(count.given_up, 1u);
  EXPECT_EQ(count.replayed_statements, 4u);
  EXPECT_EQ(count.replay_us, 250u);
  EXPECT_EQ(count.replays_differed, 1u);
  EXPECT_EQ(stats_.retries(Protocol::kMvcc).retries, 0u);
  stats_.reset();
  EXPECT_EQ(stats_.retries(Protocol::kOcc).replayed_statements, 0u);
  EXPECT_EQ(stats_.retries(Protocol::kOcc).replay_us, 0u);
  EXPECT_EQ(stats_.retries(Protocol::kOcc).replays_differed, 0u);
}

TEST_F(SharedStatsTest, LoseNothingThatManyAddAtOnce) {
  constexpr int kThreads = 4, kEach = 20'000;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < kEach; ++n) {
        stats_.add_stage(protocol_, Stage::kRead, kSome, 1000);
        stats_.add_transaction({protocol_, StagePlan(), n % 2 == 0, AbortReason::kLockHeld}, 1,
                               false);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(stats_.stage(protocol_, Stage::kRead, kSome).count, uint64_t{kThreads * kEach});
  EXPECT_EQ(stats_.aborts(protocol_, AbortReason::kLockHeld), uint64_t{kThreads * kEach / 2});
  EXPECT_EQ(stats_.protocol(protocol_).stage_ns, uint64_t{kThreads * kEach});
}

TEST_F(SharedStatsTest, GetStagesWhenTheTransactionEndsOrTheyAreMany) {
  StatsRecorder recorder(shared_.stats, nullptr);
  recorder.stage_done(protocol_, Stage::kLock, kSome, 10);
  EXPECT_EQ(stats_.stage(protocol_, Stage::kLock, kSome).count, 0u);
  recorder.transaction_done({protocol_, StagePlan(3), true, AbortReason::kNone});
  EXPECT_EQ(stats_.stage(protocol_, Stage::kLock, kSome).count, 1u);
  EXPECT_EQ(stats_.plan(protocol_, StagePlan(3)).committed, 1u);
  for (int i = 0; i < 1000; ++i) recorder.stage_done(protocol_, Stage::kLock, kSome, 10);
  EXPECT_GT(stats_.stage(protocol_, Stage::kLock, kSome).count, 900u);
  recorder.set_exploring(true);
  recorder.transaction_done({protocol_, StagePlan(3), false, AbortReason::kNone});
  EXPECT_EQ(stats_.stage(protocol_, Stage::kLock, kSome).count, 1001u);
  EXPECT_EQ(stats_.plan(protocol_, StagePlan(3)).explored, 1u);
}

}  // namespace
}  // namespace rdmacc
