// --without: what posted verbs save, left out to be measured.
#include <gtest/gtest.h>

#include "engine/bench/without_words.h"
#include "tests/unit/bench/bench_run.h"

namespace rdmacc {
namespace {

struct Cost {
  double verbs, round_trips;
};

Cost cost_without(const std::string& saving, const char* protocol) {
  const nlohmann::json run =
      json_of({"ycsb", "--fabric=sim", "--nodes=2", "--records=500", "-c", "1", "-t", "100",
               "--format=json", std::string("--protocol=") + protocol, "--without=" + saving});
  EXPECT_EQ(run["without"], saving == "none" ? nlohmann::json(nullptr) : nlohmann::json(saving));
  EXPECT_EQ(run["invariant"], "ok");
  return {run["verbs_per_transaction"].get<double>(),
          run["per_transaction"]["round_trips"].get<double>()};
}

// Ten keys on two nodes, eight of them only read.
TEST(BenchWithout, LeavesOutOneSavingAtATime) {
  const Cost all = cost_without("none", "nowait");
  const Cost no_guess = cost_without("one_cas", "nowait");
  EXPECT_NEAR(no_guess.verbs, all.verbs + 10, 0.5) << "a READ before each CAS";
  EXPECT_GT(no_guess.round_trips, all.round_trips + 0.9);
  const Cost two_reads = cost_without("one_read", "nowait");
  EXPECT_NEAR(two_reads.verbs, all.verbs + 10, 0.5);
  EXPECT_NEAR(two_reads.round_trips, all.round_trips, 0.1);
  const Cost two_rounds = cost_without("one_round", "nowait");
  EXPECT_NEAR(two_rounds.verbs, all.verbs, 0.5);
  EXPECT_GT(two_rounds.round_trips, all.round_trips + 0.7) << "but where it only reads";
  const Cost in_turn = cost_without("outstanding_requests", "occ");
  EXPECT_GT(in_turn.round_trips, 1.3 * cost_without("none", "occ").round_trips);
  const Cost one_each = cost_without("doorbell_batches", "occ");
  EXPECT_NEAR(one_each.round_trips, one_each.verbs, 0.5);
}

TEST(BenchWithout, TakesSeveral) {
  const Cost two = cost_without("one_cas+one_read", "nowait");
  EXPECT_NEAR(two.verbs, cost_without("none", "nowait").verbs + 20, 0.5);
}

TEST(BenchWithout, SaysWhatIsWrong) {
  EXPECT_EQ(parse_without("one_cas+two").status().message(),
            "--without=one_cas+two is not available; possible are none, " + saving_names() +
                ", several by +");
  EXPECT_FALSE(parse_without("one_cas+").ok());
  const std::vector<const char*> argv{"rdmacc_bench", "ycsb", "--without=one_cas"};
  testing::internal::CaptureStderr();
  EXPECT_FALSE(parse_options(static_cast<int>(argv.size()), argv.data()).options.has_value());
  EXPECT_NE(testing::internal::GetCapturedStderr().find("means nothing on shm"), std::string::npos);
}

TEST(BenchWithout, IsToldAsItIsTyped) {
  for (const NamedSaving& each : kVerbSavings) {
    EXPECT_EQ(without_text(*parse_without(each.name)), each.name);
  }
  EXPECT_EQ(without_text(*parse_without("none")), "");
  EXPECT_EQ(without_text(*parse_without("one_read+one_cas")), "one_cas+one_read");
}

}  // namespace
}  // namespace rdmacc
