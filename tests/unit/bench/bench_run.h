#pragma once
#include <gtest/gtest.h>

#include <atomic>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/bench/options.h"
#include "engine/bench/report.h"
#include "engine/bench/runner.h"
#include "tests/workloads/test_workloads.h"

namespace rdmacc {

// Never set: nothing interrupts tests.
inline const std::atomic<bool> kNotInterrupted{false};

// The options of a command line; CHECKs that it has some.
inline BenchOptions options_of(const std::vector<std::string>& words) {
  std::vector<const char*> argv{"rdmacc_bench"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  const ParsedOptions parsed = parse_options(static_cast<int>(argv.size()), argv.data());
  CHECK(parsed.options.has_value());
  return *parsed.options;
}

// What a run reports that commits something, and whose checks hold.
inline nlohmann::json json_of(const std::vector<std::string>& words) {
  const BenchOptions options = options_of(words);
  Result<RunResult> result = run_benchmark(options, kNotInterrupted);
  EXPECT_TRUE(result.ok()) << result.status().to_string();
  if (!result.ok()) return {};
  EXPECT_GT(result->committed, 0u);
  EXPECT_EQ(result->violation, "");
  return nlohmann::json::parse(report_json({options, std::move(*result)}));
}

// A small run of a workload in virtual time.
inline std::vector<std::string> small_run(const std::string& workload, double seconds) {
  std::vector<std::string> words{workload, "--fabric=sim", "-T", std::to_string(seconds), "-c",
                                 "3",      "--memory=256"};
  const bool few_rows = workload == "mixed" || workload == "predicate";
  if (!few_rows) words.emplace_back("--records=200");
  if (workload == "tpcc") words.emplace_back("--customers=10");
  return words;
}

}  // namespace rdmacc
