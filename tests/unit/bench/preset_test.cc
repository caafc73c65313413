// Presets: what they set, what wins over them, and that this is what runs.
#include "engine/protocols/presets.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/unit/bench/bench_run.h"

namespace rdmacc {
namespace {

constexpr double kSeconds = 0.004;

std::vector<std::string> with_preset(const std::string& name) {
  std::vector<std::string> words = small_run("smallbank", kSeconds);
  words.push_back("--preset=" + name);
  return words;
}

class BenchPresets : public testing::TestWithParam<const char*> {};

TEST_P(BenchPresets, RunTheirProtocolAndStages) {
  const Preset* preset = find_preset(GetParam());
  ASSERT_NE(preset, nullptr);
  const nlohmann::json run = json_of(with_preset(preset->name));
  EXPECT_EQ(run["preset"], preset->name);
  EXPECT_EQ(run["protocol"], protocol_name(preset->protocol));
  EXPECT_EQ(run["auto_stages"], preset->chooses);
  EXPECT_EQ(run["lock_mode"], lock_mode_name(preset->lock_mode));
  EXPECT_EQ(run["replicas"], std::min(preset->replicas, 1u)) << "of two nodes";
  EXPECT_EQ(run["location_cache"], preset->location_cache);
  std::set<std::string> stages;
  for (const auto& stage : run["stage_latency"]) {
    const std::string name = stage["stage"];
    stages.insert(name);
    if (preset->chooses) continue;
    for (uint32_t i = 0; i < kStageCount; ++i) {
      const auto each = static_cast<Stage>(1u << i);
      if (name != stage_name(each)) continue;
      EXPECT_EQ(stage["primitive"], primitive_name(preset->plan().of(each))) << name;
    }
  }
  for (const char* stage : {"lock", "log", "commit"}) EXPECT_TRUE(stages.contains(stage)) << stage;
}

INSTANTIATE_TEST_SUITE_P(All, BenchPresets,
                         testing::Values("farm", "drtm_r", "fasst", "drtm_h", "rcbench", "ford",
                                         "motor"),
                         [](const auto& its) { return std::string(its.param); });

// DrTM+H's table 4, by the hybrid codes that these come to.
TEST(BenchPreset, SetsWhatTheSystemsAreSaidToDo) {
  EXPECT_EQ(presets().size(), 7u) << "each has a test above";
  EXPECT_EQ(options_of({"ycsb", "--preset=farm"}).plan.code(), 38);
  EXPECT_EQ(options_of({"ycsb", "--preset=DrTM_R"}).plan.code(), 63);
  EXPECT_EQ(options_of({"ycsb", "--preset=fasst"}).plan.code(), 0);
  EXPECT_TRUE(options_of({"ycsb", "--preset=drtm_h"}).auto_plan);
  EXPECT_EQ(options_of({"ycsb", "--preset=rcbench"}).plan.code(), 29);
  EXPECT_EQ(options_of({"ycsb", "--preset=motor"}).protocol, Protocol::kCicada);
  EXPECT_EQ(options_of({"ycsb", "--preset=farm", "--nodes=4"}).replicas, 2u);
  EXPECT_EQ(options_of({"ycsb", "--preset=farm", "--nodes=1"}).replicas, 0u);
  EXPECT_FALSE(options_of({"ycsb", "--preset=farm"}).location_cache);
  EXPECT_EQ(options_of({"ycsb"}).preset, "");
}

TEST(BenchPreset, WhatIsGivenBesideItWins) {
  const BenchOptions options =
      options_of({"ycsb", "--preset=farm", "--protocol=nowait", "--lock-mode=shared",
                  "--replicas=0", "--location-cache=on"});
  EXPECT_EQ(options.protocol, Protocol::kNowait);
  EXPECT_EQ(options.lock_mode, LockMode::kShared);
  EXPECT_EQ(options.plan.code(), 4) << "of the preset's stages those that the protocol has";
  EXPECT_EQ(options.replicas, 0u);
  EXPECT_TRUE(options.location_cache);
  EXPECT_EQ(options_of({"ycsb", "--stages=rpc", "--preset=drtm_r"}).plan.code(), 0);
  EXPECT_FALSE(options_of({"ycsb", "--stages=rpc", "--preset=drtm_h"}).auto_plan);
  EXPECT_EQ(options_of({"ycsb", "-c", "3", "--preset=rcbench"}).coroutines, 3u);
  EXPECT_EQ(options_of({"ycsb", "--preset=fasst", "--protocol=sundial"}).plan.code(), 0);
  EXPECT_EQ(options_of({"ycsb", "--preset=farm", "--protocol=sundial"}).plan.code(), 2 + 4 + 64);
}

// Without a cache of locations one-sided reads go through the index, where verbs are posted.
TEST(BenchPreset, TakesTheLocationCacheAway) {
  // Long enough that most keys are looked up again.
  std::vector<std::string> words = small_run("smallbank", 5 * kSeconds);
  words.emplace_back("--preset=drtm_r");
  const nlohmann::json with = json_of(words);
  words.emplace_back("--location-cache=off");
  const nlohmann::json without = json_of(words);
  EXPECT_GT(without["per_transaction"]["reads"].get<double>(),
            1.1 * with["per_transaction"]["reads"].get<double>());
}

TEST(BenchPreset, NamesThoseThereAre) {
  std::vector<const char*> argv{"rdmacc_bench", "ycsb", "--preset=farn"};
  testing::internal::CaptureStderr();
  const ParsedOptions unknown = parse_options(static_cast<int>(argv.size()), argv.data());
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "rdmacc_bench: --preset=farn is not available; possible are " + preset_names() +
                " (--preset=help describes them)\n");
  EXPECT_EQ(unknown.exit_code, kExitUsage);
  argv.back() = "--preset=help";
  testing::internal::CaptureStdout();
  const ParsedOptions help = parse_options(static_cast<int>(argv.size()), argv.data());
  EXPECT_EQ(testing::internal::GetCapturedStdout(), describe_presets());
  EXPECT_FALSE(help.options.has_value());
  EXPECT_EQ(help.exit_code, 0);
}

TEST(BenchPreset, CanBeSwept) {
  const std::vector<const char*> argv{"rdmacc_bench", "ycsb", "--sweep=preset:farm,fasst"};
  const ParsedRuns parsed = parse_runs(static_cast<int>(argv.size()), argv.data());
  ASSERT_EQ(parsed.runs.size(), 2u);
  EXPECT_EQ(parsed.runs[0].plan.code(), 38);
  EXPECT_EQ(parsed.runs[1].plan.code(), 0);
}

}  // namespace
}  // namespace rdmacc
