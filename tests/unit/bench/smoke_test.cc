// Short runs in virtual time: every workload under every protocol, with stages one-sided, by RPC
// and mixed; and all hybrid codes one after the other.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/bench/report.h"
#include "engine/bench/report_numbers.h"
#include "engine/bench/runner.h"
#include "engine/check/checker.h"
#include "engine/check/history_file.h"
#include "engine/protocols/registry.h"
#include "engine/workloads/registry.h"
#include "tests/unit/bench/bench_run.h"

namespace rdmacc {
namespace {

struct Variant {
  std::string workload;
  Protocol protocol;
};

std::vector<Variant> all_variants() {
  std::vector<Variant> variants;
  for (const WorkloadKind* kind : workload_kinds()) {
    for (const Protocol protocol : available_protocols())
      variants.push_back({kind->name, protocol});
  }
  return variants;
}

std::string name_of(const testing::TestParamInfo<Variant>& variant) {
  return variant.param.workload + "_" + protocol_name(variant.param.protocol);
}

constexpr double kSeconds = 0.004;         // of a run by itself
constexpr double kSecondsOfMany = 0.0005;  // of each of an enumeration

std::vector<std::string> words_of(const Variant& variant, double seconds) {
  std::vector<std::string> words = small_run(variant.workload, seconds);
  words.push_back(std::string("--protocol=") + protocol_name(variant.protocol));
  return words;
}

// Runs what the words say, and has the checker look at the history.
void expect_serializable(std::vector<std::string> words) {
  const std::string file = testing::TempDir() + "bench_test_" + std::to_string(getpid()) + ".jsonl";
  words.push_back("--history-file=" + file);
  const BenchOptions options = options_of(words);
  const Result<RunResult> result = run_benchmark(options, kNotInterrupted);
  Result<std::vector<HistoryTransaction>> history = read_history(file);
  std::remove(file.c_str());
  const std::string which = options.plan.to_string(stages_of(options.protocol));
  ASSERT_TRUE(result.ok()) << which << ": " << result.status().to_string();
  EXPECT_EQ(result.value().violation, "") << which;
  EXPECT_GT(result.value().committed, 0u) << which;
  ASSERT_TRUE(history.ok()) << which << ": " << history.status().to_string();
  EXPECT_GE(history->size(), result.value().committed) << which;
  const CheckReport report = check_serializable(*history, CheckOptions{.preloaded = true});
  EXPECT_TRUE(report.serializable) << which << ": " << report.problem;
}

class BenchSmoke : public testing::TestWithParam<Variant> {};

TEST_P(BenchSmoke, IsSerializableAndKeepsItsInvariant) {
  for (const char* stages : {"one_sided", "rpc", "lock=rpc,read=rpc,validate=rpc,renew=rpc"}) {
    std::vector<std::string> words = words_of(GetParam(), kSeconds);
    words.push_back(std::string("--stages=") + stages);
    expect_serializable(words);
  }
}

// Workloads in other mixes than the default one.
struct Mix {
  const char* name;
  std::vector<std::string> words;  // the workload first
  Protocol protocol;
};

std::vector<Mix> all_mixes() {
  std::vector<Mix> mixes;
  for (const Protocol protocol : available_protocols()) {
    mixes.push_back({"tpcc_of_the_specification", {"tpcc", "--full-mix=1"}, protocol});
    mixes.push_back({"tpcc_of_others",
                     {"tpcc", "--order-statuses=20", "--deliveries=20", "--stock-levels=5"},
                     protocol});
    mixes.push_back({"ycsb_a", {"ycsb", "--mix=1", "--zipf=0.9"}, protocol});
    mixes.push_back({"ycsb_d", {"ycsb", "--mix=4"}, protocol});
    mixes.push_back({"ycsb_e", {"ycsb", "--mix=5", "--scan-length=20"}, protocol});
    mixes.push_back({"ycsb_of_all",
                     {"ycsb", "--reads=20", "--updates=20", "--inserts=30", "--scans=10",
                      "--read-modify-writes=20", "--latest=1"},
                     protocol});
  }
  return mixes;
}

class BenchMixes : public testing::TestWithParam<Mix> {};

TEST_P(BenchMixes, AreSerializableAndKeepTheirInvariant) {
  for (const char* stages : {"one_sided", "rpc"}) {
    std::vector<std::string> words = words_of({GetParam().words[0], GetParam().protocol}, kSeconds);
    words.insert(words.end(), GetParam().words.begin() + 1, GetParam().words.end());
    words.push_back(std::string("--stages=") + stages);
    expect_serializable(words);
  }
}

INSTANTIATE_TEST_SUITE_P(All, BenchMixes, testing::ValuesIn(all_mixes()),
                         [](const testing::TestParamInfo<Mix>& mix) {
                           return std::string(mix.param.name) + "_" +
                                  protocol_name(mix.param.protocol);
                         });

// Ten hot accounts, or rows that every transaction wants. What is checked is lost now and then;
// what is declared never is.
std::vector<std::string> contended_run(const std::string& workload, const char* stages) {
  std::vector<std::string> words{
      workload, "--protocol=calvin", std::string("--stages=") + stages, "-c", "8", "-j",
      "2",      "--memory=256"};
  if (workload == "tpcc") {
    words.insert(words.end(), {"--items=200", "--customers=10", "--rollbacks=10"});
  } else {
    words.insert(words.end(), {"--records=200", "--hot-records=10", "--hot-access=90"});
  }
  return words;
}

TEST(BenchRuns, DeclaredTransactionsNeverLoseToOthers) {
  for (const std::string workload : {"smallbank", "ycsb", "tpcc"}) {
    for (const char* stages : {"0", "128", "256", "384"}) {
      std::vector<std::string> words = contended_run(workload, stages);
      words.insert(words.end(), {"--fabric=sim", "-T", "0.01"});
      Result<RunResult> result = run_benchmark(options_of(words), kNotInterrupted);
      ASSERT_TRUE(result.ok()) << result.status().to_string();
      EXPECT_EQ(result->violation, "") << workload << " " << stages;
      EXPECT_GT(result->committed, 0u);
      EXPECT_EQ(result->declared, result->committed + result->rolled_back);
      EXPECT_EQ(aborted_attempts(*result), 0u) << workload << " " << stages;
    }
    std::vector<std::string> words = contended_run(workload, "384");
    words.insert(words.end(), {"--fabric=sim", "-T", "0.01", "--calvin=reconnaissance"});
    Result<RunResult> checked = run_benchmark(options_of(words), kNotInterrupted);
    ASSERT_TRUE(checked.ok()) << checked.status().to_string();
    EXPECT_EQ(checked->violation, "");
    EXPECT_EQ(checked->declared, 0u);
    EXPECT_GT(aborted_attempts(*checked), 0u) << workload;
  }
}

// What its keys depend on is looked up first; only a few have to go another way.
TEST(BenchRuns, TransactionsOfDependentKeysAreDeclaredToo) {
  for (const std::vector<std::string>& workload : std::vector<std::vector<std::string>>{
           {"tatp", "--records=200"},
           {"tpce", "--records=200"},
           {"ycsb", "--records=200", "--mix=4"},
           {"tpcc", "--items=200", "--customers=100", "--new-orders=100", "--order-statuses=50",
            "--deliveries=15"}}) {
    std::vector<std::string> words = workload;
    words.insert(words.end(),
                 {"--protocol=calvin", "--fabric=sim", "-T", "0.02", "-c", "8", "--memory=256"});
    const Result<RunResult> result = run_benchmark(options_of(words), kNotInterrupted);
    ASSERT_TRUE(result.ok()) << result.status().to_string();
    EXPECT_EQ(result.value().violation, "") << workload[0];
    EXPECT_GT(result.value().committed, 20u) << workload[0];
    EXPECT_GT(result.value().declared, result.value().committed * 9 / 10) << workload[0];
  }
}

TEST(BenchRuns, DeclaredTransactionsNeverLoseToOthersInSharedMemory) {
  std::vector<std::string> words = contended_run("smallbank", "384");
  words.insert(words.end(), {"--fabric=shm", "-T", "1"});
  Result<RunResult> result = run_benchmark(options_of(words), kNotInterrupted);
  ASSERT_TRUE(result.ok()) << result.status().to_string();
  EXPECT_EQ(result->violation, "");
  EXPECT_GT(result->committed, 0u);
  EXPECT_EQ(result->declared, result->committed);
  EXPECT_EQ(aborted_attempts(*result), 0u);
}

// The larger part of mixed declares its keys, and all of it by reconnaissance keeps its history,
// too: the other runs are declared where they can be.
TEST(BenchRuns, ByReconnaissance) {
  for (const WorkloadKind* kind : workload_kinds()) {
    std::vector<std::string> words = words_of({kind->name, Protocol::kCalvin}, kSeconds);
    words.emplace_back("--calvin=reconnaissance");
    expect_serializable(words);
  }
}

class BenchAuto : public testing::TestWithParam<Protocol> {};

// It tries both primitives of every stage, and goes on with what it takes for the cheapest.
TEST_P(BenchAuto, LearnsAPlanAndIsSerializable) {
  const std::string file = testing::TempDir() + "bench_auto_" + std::to_string(getpid()) + ".jsonl";
  std::vector<std::string> words = words_of({"smallbank", GetParam()}, 12 * kSeconds);
  words.insert(words.end(), {"--stages=auto", "--format=json", "--history-file=" + file});
  BenchRun run{options_of(words), {}};
  Result<RunResult> result = run_benchmark(run.options, kNotInterrupted);
  Result<std::vector<HistoryTransaction>> history = read_history(file);
  std::remove(file.c_str());
  ASSERT_TRUE(result.ok()) << result.status().to_string();
  EXPECT_EQ(result.value().violation, "");
  ASSERT_TRUE(history.ok()) << history.status().to_string();
  const CheckReport checked = check_serializable(*history, CheckOptions{.preloaded = true});
  EXPECT_TRUE(checked.serializable) << checked.problem;
  std::map<uint16_t, size_t> used;
  for (const HistoryTransaction& transaction : *history) ++used[transaction.stages];
  EXPECT_GT(used.size(), 1u);
  run.result = std::move(*result);
  const auto json = nlohmann::json::parse(report_json(run));
  EXPECT_EQ(json["auto_stages"], true);
  // By chance each of 15 plans or more would be used as often. In the end it may be another one, of
  // which a coordinator has just learned.
  EXPECT_GT(used[json["stages"].get<uint16_t>()], 0u);
  size_t most = 0;
  for (const auto& [stages, times] : used) most = std::max(most, times);
  EXPECT_GT(most, history->size() / 4);
  EXPECT_NE(report_text(run).find("stages auto, in the end "), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(
    All, BenchAuto, testing::ValuesIn(available_protocols().begin(), available_protocols().end()),
    [](const testing::TestParamInfo<Protocol>& protocol) { return protocol_name(protocol.param); });

TEST(BenchRuns, LockShared) {
  for (const Protocol protocol : {Protocol::kNowait, Protocol::kWaitdie, Protocol::kWoundwait}) {
    for (const WorkloadKind* kind : workload_kinds()) {
      std::vector<std::string> words = words_of({kind->name, protocol}, kSeconds);
      words.emplace_back("--lock-mode=shared");
      expect_serializable(words);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, BenchSmoke, testing::ValuesIn(all_variants()), name_of);

class BenchEnumeration : public testing::TestWithParam<Protocol> {};

// Both ways: on one loaded cluster, and on fresh ones for a workload that grows.
TEST_P(BenchEnumeration, RunsEveryDistinctCodeOnce) {
  uint32_t distinct = 0;
  for (uint32_t code = 0; code <= kStageCodeMax; ++code) {
    distinct += (code & ~static_cast<uint32_t>(stages_of(GetParam()))) == 0 ? 1 : 0;
  }
  EXPECT_EQ(distinct_plans(GetParam()).size(), distinct);
  std::vector<std::string> words = words_of({"smallbank", GetParam()}, kSecondsOfMany);
  words.insert(words.end(), {"--enumerate", "--format=json"});
  uint32_t told = 0;
  Result<std::vector<BenchRun>> runs =
      run_all_plans(options_of(words), kNotInterrupted, [&told](const BenchRun&) { ++told; });
  ASSERT_TRUE(runs.ok()) << runs.status().to_string();
  EXPECT_EQ(told, distinct);
  const auto json = nlohmann::json::parse(report(*runs));
  std::set<int> codes;
  double before = 1e300;
  for (const auto& run : json) {
    codes.insert(run["stages"].get<int>());
    EXPECT_EQ(run["invariant"], "ok") << run["stages"];
    EXPECT_FALSE(run["stage_latency"].empty());
    EXPECT_LE(run["committed_per_second"].get<double>(), before + 0.001);
    before = run["committed_per_second"].get<double>();
  }
  EXPECT_EQ(codes.size(), distinct);
  EXPECT_EQ(json.size(), distinct);
}

INSTANTIATE_TEST_SUITE_P(All, BenchEnumeration,
                         testing::ValuesIn(available_protocols().begin(),
                                           available_protocols().end()),
                         [](const testing::TestParamInfo<Protocol>& protocol) {
                           return protocol_name(protocol.param);
                         });

TEST(BenchEnumeration, GivesAGrowingWorkloadFreshClusters) {
  std::vector<std::string> words = small_run("tpcc", kSecondsOfMany);
  words.insert(words.end(), {"--protocol=nowait", "--enumerate"});
  const Result<std::vector<BenchRun>> runs = run_all_plans(
      options_of(words), kNotInterrupted,
      [](const BenchRun& run) { EXPECT_EQ(run.result.violation, "") << run.options.plan.code(); });
  ASSERT_TRUE(runs.ok()) << runs.status().to_string();
}

TEST(BenchRuns, OneSeedIsOneReport) {
  std::vector<std::string> words = small_run("ycsb", kSeconds);
  words.insert(words.end(), {"--threads-per-node=2", "-j", "2", "--nodes=3", "--theta=2",
                             "--operations=4", "--compute-us=2", "--format=json"});
  std::vector<std::string> reports;
  for (int i = 0; i < 2; ++i) {
    const BenchOptions options = options_of(words);
    Result<RunResult> result = run_benchmark(options, kNotInterrupted);
    ASSERT_TRUE(result.ok()) << result.status().to_string();
    reports.push_back(report_json(BenchRun{options, std::move(*result)}));
  }
  EXPECT_EQ(reports[0], reports[1]);
  EXPECT_EQ(nlohmann::json::parse(reports[0])["threads_per_node"], 2);
}

TEST(BenchRuns, SaysWhenTheRowsDoNotFit) {
  const BenchOptions options = options_of({"ycsb", "--fabric=sim", "--nodes=1", "--records=20000",
                                           "--record-bytes=16000", "--memory=65"});
  const Result<RunResult> result = run_benchmark(options, kNotInterrupted);
  EXPECT_EQ(result.status().code(), Code::kNoSpace);
  EXPECT_NE(result.status().message().find("--memory=65 is too small for ycsb with records=20000"),
            std::string::npos)
      << result.status().to_string();
}

}  // namespace
}  // namespace rdmacc
