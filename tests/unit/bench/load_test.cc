// How much a run does and when: numbers of transactions, schedules, limits, warm-ups; in virtual
// time.
#include <nlohmann/json.hpp>

#include "engine/bench/report.h"
#include "engine/bench/report_measures.h"
#include "engine/bench/report_numbers.h"
#include "engine/bench/runner.h"
#include "tests/unit/bench/bench_run.h"

namespace rdmacc {
namespace {

BenchRun run_of(std::vector<std::string> words) {
  words.insert(words.begin() + 1, {"--fabric=sim", "--memory=256", "--settings=records=400"});
  BenchRun run{options_of(words), {}};
  Result<RunResult> result = run_benchmark(run.options, kNotInterrupted);
  CHECK(result.ok());
  run.result = std::move(*result);
  EXPECT_EQ(run.result.violation, "");
  return run;
}

uint64_t committed_in_timeline(const RunResult& result) {
  uint64_t committed = 0;
  for (const RunSecond& second : result.timeline) committed += second.committed;
  return committed;
}

TEST(BenchLoad, EachCoroutineRunsItsNumberOfTransactions) {
  const BenchRun run = run_of(
      {"smallbank", "-t", "50", "-c", "3", "-j", "2", "--hot-records=10", "--hot-access=50"});
  EXPECT_EQ(run.result.committed, 2u * 3 * 50);
  EXPECT_GT(aborted_attempts(run.result), 0u) << "what was lost was tried again, and counts once";
  EXPECT_EQ(committed_in_timeline(run.result), run.result.committed);
  EXPECT_EQ(nlohmann::json::parse(report_json(run))["transactions_per_coroutine"], 50);
}

TEST(BenchLoad, NumbersCountRollbacksToo) {
  const BenchRun run = run_of({"tpcc", "-t", "40", "-c", "2", "--customers=10", "--rollbacks=30"});
  EXPECT_EQ(run.result.committed + run.result.rolled_back, 80u);
  EXPECT_GT(run.result.rolled_back, 0u);
}

TEST(BenchLoad, SecondsOfCoordinatorsThatEndApartAddUp) {
  const BenchRun run = run_of({"ycsb", "-t", "12", "-c", "2", "-j", "3", "--compute-us=30000",
                               "--operations=10", "--hot-records=5", "--hot-access=50"});
  EXPECT_EQ(run.result.committed, 72u);
  EXPECT_GE(run.result.timeline.size(), 2u);
  EXPECT_EQ(committed_in_timeline(run.result), 72u);
}

TEST(BenchLoad, RateIsKeptAndItsLagReported) {
  const BenchRun run = run_of({"smallbank", "-R", "20000", "-T", "0.1", "-c", "16", "-j", "2"});
  // 2,000 are due; random moments make it some more or less, the same of one seed.
  EXPECT_NEAR(static_cast<double>(run.result.committed), 2000, 150);
  EXPECT_EQ(run.result.measures.skipped, 0u);
  EXPECT_EQ(run.result.measures.lag_ns.count(), run.result.committed);
  const auto json = nlohmann::json::parse(report_json(run));
  EXPECT_EQ(json["rate"], 20000);
  EXPECT_TRUE(json["schedule_lag_us"]["mean"].is_number());
  EXPECT_NE(report_text(run).find("schedule: 20000 per second; lag us: mean "), std::string::npos);
}

// The first start is due later than a clock can tell.
TEST(BenchLoad, ARateThatNothingIsDueAtStartsNothing) {
  const BenchRun run = run_of({"smallbank", "-R", "1e-12", "-T", "0.01"});
  EXPECT_EQ(run.result.committed, 0u);
  EXPECT_EQ(run.result.measures.skipped, 0u);
}

// One coroutine cannot do what is asked: the latency grows with what waits in front of it.
TEST(BenchLoad, LatencyCountsFromTheScheduledStart) {
  const BenchRun slow = run_of({"smallbank", "-R", "1000000", "-T", "0.02", "-c", "1"});
  const BenchRun alone = run_of({"smallbank", "-T", "0.02", "-c", "1"});
  EXPECT_GT(slow.result.latency_ns.mean(), 10 * alone.result.latency_ns.mean());
  EXPECT_GT(slow.result.measures.lag_ns.max(), 1'000'000u);
}

TEST(BenchLoad, WhatIsTooLateIsSkippedAndWhatTookTooLongCounted) {
  const BenchRun run = run_of({"smallbank", "-R", "500000", "-L", "0.1", "-T", "0.02", "-c", "1"});
  const Measures& measures = run.result.measures;
  EXPECT_GT(measures.skipped, 100u);
  EXPECT_GT(measures.late, 0u);
  EXPECT_LE(measures.lag_ns.max(), 100'000u);
  EXPECT_NEAR(static_cast<double>(run.result.committed + measures.skipped), 10'000, 500);
  EXPECT_NE(report_text(run).find("latency limit 0.1 ms: " + std::to_string(measures.late) +
                                  " took longer, " + std::to_string(measures.skipped) + " skipped"),
            std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(report_json(run))["skipped"], measures.skipped);
}

TEST(BenchLoad, LimitWithoutARateSkipsNothing) {
  const BenchRun run = run_of({"smallbank", "-L", "0.000001", "-T", "0.005"});
  EXPECT_EQ(run.result.measures.late, run.result.committed);
  EXPECT_EQ(run.result.measures.skipped, 0u);
}

// The invariant holds over all, what is measured is the rest.
TEST(BenchLoad, WarmUpIsNotMeasured) {
  const BenchRun whole = run_of({"smallbank", "-T", "0.03", "-j", "2"});
  const BenchRun warm = run_of({"smallbank", "--warm-up=0.02", "-T", "0.01", "-j", "2"});
  EXPECT_NEAR(warm.result.seconds, 0.01, 0.001);
  EXPECT_LT(warm.result.committed, whole.result.committed / 2);
  EXPECT_GT(warm.result.committed, whole.result.committed / 5);
  EXPECT_EQ(warm.result.latency_ns.count(), warm.result.committed);
  EXPECT_EQ(committed_in_timeline(warm.result), warm.result.committed);
  EXPECT_EQ(aborted_attempts(warm.result), warm.result.stats.aborted);
}

TEST(BenchLoad, NoTransactionMayBeDue) {
  const BenchRun run = run_of({"smallbank", "-R", "0.001", "--warm-up=0.01", "-T", "0.01"});
  EXPECT_EQ(run.result.committed, 0u);
  EXPECT_EQ(nlohmann::json::parse(report_json(run))["committed_per_second"], 0);
}

TEST(BenchLoad, NodesOfATransactionAreThoseOfItsKeys) {
  const BenchRun pinned =
      run_of({"ycsb", "--nodes=4", "--nodes-per-transaction=3", "--operations=6", "-T", "0.01"});
  EXPECT_EQ(pinned.result.measures.spread.mean(), 3.0);
  const BenchRun one = run_of({"smallbank", "--nodes=1", "-T", "0.01"});
  EXPECT_EQ(one.result.measures.spread.mean(), 1.0);
  EXPECT_EQ(nlohmann::json::parse(report_json(one))["nodes_per_transaction"], 1.0);
}

TEST(BenchLoad, ProcessorsAreMeasuredOnRealOnesAlone) {
  const BenchRun simulated = run_of({"smallbank", "-T", "0.01"});
  const auto json = nlohmann::json::parse(report_json(simulated));
  for (const char* field : {"effective_cpu", "coordinator_cpu", "host", "started"}) {
    EXPECT_TRUE(json[field].is_null()) << field;
  }
  BenchRun real{options_of({"smallbank", "-t", "100", "--memory=256", "--records=300"}), {}};
  Result<RunResult> result = run_benchmark(real.options, kNotInterrupted);
  ASSERT_TRUE(result.ok()) << result.status().to_string();
  real.result = std::move(*result);
  const std::optional<ProcessorUse> use = processor_use(real);
  ASSERT_TRUE(use.has_value());
  EXPECT_GT(use->effective, 0);
  EXPECT_LE(use->effective, 1);
  EXPECT_LE(real.result.measures.effective.effective_ns(),
            static_cast<double>(real.result.measures.coordinator_ns));
  EXPECT_GT(use->busy, 0);
  const auto there = nlohmann::json::parse(report_json(real));
  EXPECT_GT(there["host"]["cores"], 0);
  EXPECT_EQ(there["started"].get<std::string>().size(), std::string("2024-02-29T12:00:00Z").size());
}

}  // namespace
}  // namespace rdmacc
