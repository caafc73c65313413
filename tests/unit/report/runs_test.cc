// Files of runs, gathered for one page: one run or many in each, and what is none is named.
#include "engine/report/runs.h"

#include <gtest/gtest.h>

#include "engine/report/report_program.h"

namespace rdmacc {
namespace {

constexpr const char* kRun = R"({"workload": "ycsb", "committed_per_second": 5})";

std::string refusal(const std::vector<RunsFile>& files) {
  const Result<nlohmann::ordered_json> runs = gather_runs(files);
  return runs.ok() ? "gathered" : runs.status().message();
}

TEST(Runs, AreGatheredInTheFilesOrder) {
  const std::string two = std::string("[") + kRun + "," +
                          R"({"workload": "tpcc", "committed_per_second": 6, "extra": null}])";
  const auto runs = gather_runs({{"b.json", two}, {"a.json", kRun}});
  ASSERT_TRUE(runs.ok()) << runs.status().message();
  ASSERT_EQ(runs.value().size(), 3u);
  EXPECT_EQ(runs.value()[0]["source"], "b.json");
  EXPECT_EQ(runs.value()[1]["committed_per_second"], 6);
  EXPECT_EQ(runs.value()[2]["source"], "a.json");
  EXPECT_EQ(workloads_of(runs.value()), "ycsb, tpcc");
}

TEST(Runs, OfOneFileNeedNoSource) {
  const auto runs = gather_runs({{"a.json", kRun}});
  ASSERT_TRUE(runs.ok());
  EXPECT_FALSE(runs.value()[0].contains("source"));
}

TEST(Runs, WhatIsNoneIsNamed) {
  EXPECT_EQ(refusal({{"a", kRun}, {"b", "{\"workload\":"}}), "b: is not JSON");
  EXPECT_EQ(refusal({{"b", "7"}}), "b: is neither a run nor an array of runs");
  EXPECT_EQ(refusal({{"b", R"([{"workload": "ycsb"}])"}}),
            "b: has something that is no run of rdmacc_bench");
  EXPECT_EQ(refusal({{"b", R"([{"workload": 3, "committed_per_second": 1}])"}}),
            "b: has something that is no run of rdmacc_bench");
  EXPECT_EQ(refusal({{"b", "[]"}}), "there are no runs");
}

// The exit code and what is said on stderr.
std::pair<int, std::string> program(std::vector<const char*> words) {
  words.insert(words.begin(), "rdmacc_report");
  testing::internal::CaptureStderr();
  const int exit_code = report_program(static_cast<int>(words.size()), words.data());
  return {exit_code, testing::internal::GetCapturedStderr()};
}

TEST(ReportProgram, SaysWhatIsWrong) {
  EXPECT_EQ(
      program({"/no/such.json", "-o", "x.html"}),
      std::pair(2, std::string("rdmacc_report: /no/such.json: cannot be read, or is empty\n")));
  EXPECT_EQ(program({"-o", "x.html"}).first, 2);
  EXPECT_EQ(program({"/no/such.json"}).first, 2);
}

}  // namespace
}  // namespace rdmacc
