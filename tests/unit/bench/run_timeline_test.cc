// Seconds of a run: complete once every coordinator has added its own, and none counts twice.
#include "engine/bench/run_timeline.h"

#include "engine/bench/runner.h"
#include "tests/unit/bench/bench_run.h"

namespace rdmacc {
namespace {

SecondCounts counts(uint64_t committed, uint64_t latency_ns) {
  SecondCounts made;
  made.committed = committed;
  made.aborted = 1;
  for (uint64_t i = 0; i < committed; ++i) made.latency_ns.record(latency_ns);
  return made;
}

TEST(RunTimeline, SecondIsShownOnceAllCoordinatorsHaveAddedIt) {
  RunTimeline timeline(2);
  timeline.add(0, counts(3, 1'000));
  timeline.add(1, counts(5, 1'000));
  EXPECT_TRUE(timeline.seconds().empty());
  timeline.add(0, counts(1, 1'000'000));
  ASSERT_EQ(timeline.seconds().size(), 1u);
  EXPECT_EQ(timeline.seconds()[0].committed, 4u);
  EXPECT_EQ(timeline.seconds()[0].aborted, 2u);
  EXPECT_NEAR(static_cast<double>(timeline.seconds()[0].p50_ns), 1'000, 32);
  EXPECT_EQ(timeline.seconds()[0].p99_ns, 1'000'000u);
  timeline.add(1, counts(0, 0));
  ASSERT_EQ(timeline.seconds().size(), 2u);
  EXPECT_EQ(timeline.seconds()[1].committed, 5u);
}

TEST(RunTimeline, WhatHasLeftIsNotWaitedFor) {
  RunTimeline timeline(3);
  timeline.add(0, counts(1, 1'000));
  timeline.leave(1);
  timeline.add(0, counts(2, 1'000));
  timeline.add(1, counts(4, 1'000));
  EXPECT_TRUE(timeline.seconds().empty()) << "the third has not added its first";
  timeline.add(0, counts(8, 1'000));
  ASSERT_EQ(timeline.seconds().size(), 1u);
  EXPECT_EQ(timeline.seconds()[0].committed, 11u);
  timeline.leave(1);
  ASSERT_EQ(timeline.seconds().size(), 2u);
  EXPECT_EQ(timeline.seconds()[1].committed, 4u);
  timeline.leave(2);
  EXPECT_EQ(timeline.seconds().size(), 2u);
}

TEST(RunTimeline, SecondsOfARunAddUpToIt) {
  // Virtual time passes as the transactions compute: some hundred in all.
  const BenchOptions options = options_of({"ycsb", "--protocol=nowait", "--fabric=sim", "-T", "2.5",
                                           "-j", "2", "-c", "3", "--records=60", "--operations=4",
                                           "--writes=100", "--compute-us=20000", "--memory=256"});
  Result<RunResult> run = run_benchmark(options, kNotInterrupted);
  ASSERT_TRUE(run.ok()) << run.status().to_string();
  ASSERT_EQ(run->timeline.size(), 3u);
  uint64_t committed = 0, rolled_back = 0, aborted = 0;
  for (const RunSecond& second : run->timeline) {
    EXPECT_GT(second.committed, 0u);
    EXPECT_GT(second.mean_ns, 0);
    committed += second.committed;
    rolled_back += second.rolled_back;
    aborted += second.aborted;
  }
  EXPECT_EQ(committed, run->committed);
  EXPECT_EQ(rolled_back, run->rolled_back);
  EXPECT_GT(aborted, 0u);
}

}  // namespace
}  // namespace rdmacc
