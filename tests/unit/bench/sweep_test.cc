// Sweeps: every combination once, each as if it were the only run, and refused before any runs.
#include "engine/bench/sweep.h"

#include <nlohmann/json.hpp>

#include "engine/bench/report.h"
#include "engine/bench/runner.h"
#include "engine/protocols/registry.h"
#include "tests/unit/bench/bench_run.h"

namespace rdmacc {
namespace {

ParsedRuns runs_of(const std::vector<std::string>& words) {
  std::vector<const char*> argv{"rdmacc_bench"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  return parse_runs(static_cast<int>(argv.size()), argv.data());
}

std::string refusal(const std::vector<std::string>& words) {
  testing::internal::CaptureStderr();
  const ParsedRuns parsed = runs_of(words);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(parsed.runs.empty());
  EXPECT_EQ(parsed.exit_code, kExitUsage);
  return said;
}

TEST(Sweep, OfNothingIsOneRun) {
  const ParsedRuns parsed = runs_of({"ycsb", "-c", "3"});
  ASSERT_EQ(parsed.runs.size(), 1u);
  EXPECT_EQ(parsed.runs[0].coroutines, 3u);
  EXPECT_TRUE(parsed.runs[0].swept.empty());
  EXPECT_EQ(parsed.runs[0].command_line, "rdmacc_bench ycsb -c 3");
  EXPECT_EQ(runs_of({"ycsb", "--history-file=a b'c"}).runs[0].command_line,
            "rdmacc_bench ycsb '--history-file=a b'\\''c'");
}

TEST(Sweep, IsTheProductOfItsAxes) {
  const ParsedRuns parsed = runs_of({"ycsb", "--sweep=-j:1,2", "-c", "5", "--sweep", "zipf:0.1,0.9",
                                     "--protocol", "occ,nowait", "--nodes=3"});
  ASSERT_EQ(parsed.runs.size(), 8u);
  EXPECT_EQ(point_text(parsed.runs[0].swept), "threads=1, zipf=0.1, protocol=occ");
  EXPECT_EQ(point_text(parsed.runs[7].swept), "threads=2, zipf=0.9, protocol=nowait");
  for (const BenchOptions& run : parsed.runs) {
    EXPECT_EQ(run.coroutines, 5u);
    EXPECT_EQ(run.nodes, 3u);
    EXPECT_EQ(run.swept.size(), 3u);
  }
  EXPECT_EQ(parsed.runs[6].threads, 2u);
  EXPECT_EQ(parsed.runs[6].settings.fraction("zipf"), 0.9);
  EXPECT_EQ(parsed.runs[6].protocol, Protocol::kOcc);
}

TEST(Sweep, TakesOtherNamesOfASetting) {
  const ParsedRuns parsed = runs_of({"smallbank", "--sweep=accounts:50,60"});
  ASSERT_EQ(parsed.runs.size(), 2u);
  EXPECT_EQ(parsed.runs[1].settings.number("records"), 60u);
  EXPECT_EQ(parsed.runs[1].swept[0].first, "records");
}

TEST(Sweep, IsRefusedWithASentence) {
  EXPECT_EQ(refusal({"ycsb", "--sweep=threads"}),
            "rdmacc_bench: --sweep=threads must be PARAMETER:VALUE,VALUE,...\n");
  EXPECT_EQ(refusal({"ycsb", "--sweep=threads:1,,2"}),
            "rdmacc_bench: --sweep=threads:1,,2 has an empty value\n");
  EXPECT_EQ(refusal({"ycsb", "--sweep=threads:1,1"}),
            "rdmacc_bench: --sweep=threads:1,1 has 1 twice\n");
  EXPECT_EQ(refusal({"ycsb", "--sweep=warehouses:1,2"}),
            "rdmacc_bench: --sweep=warehouses:1,2: there is no number --warehouses that could be "
            "swept\n");
  EXPECT_EQ(refusal({"ycsb", "--sweep=format:text,csv"}),
            "rdmacc_bench: --sweep=format:text,csv: there is no number --format that could be "
            "swept\n");
  EXPECT_EQ(refusal({"ycsb", "-j", "2", "--sweep=threads:1,2"}),
            "rdmacc_bench: --threads is swept: leave it out\n");
  EXPECT_EQ(refusal({"ycsb", "--sweep=threads:1,2", "--sweep=j:3"}),
            "rdmacc_bench: --threads is swept twice\n");
  EXPECT_EQ(refusal({"ycsb", "--sweep=threads:1,2", "--enumerate"}),
            "rdmacc_bench: --enumerate and a sweep exclude each other\n");
  EXPECT_EQ(refusal({"ycsb", "--sweep=threads:1,2", "--history-file=h"}),
            "rdmacc_bench: --history-file is for a single run\n");
  EXPECT_EQ(refusal({"smallbank", "--protocol=occ,mvcc", "--history=0"}),
            "rdmacc_bench: --protocol=mvcc needs a --history of 1 or more\nrdmacc_bench: at "
            "protocol=mvcc\n");
  EXPECT_EQ(refusal({"ycsb", "--sweep=zipf:0.5,1.5", "--sweep=threads:1,2"}),
            "rdmacc_bench: --zipf must be 0 .. 0.999\nrdmacc_bench: at zipf=1.5, "
            "threads=1\n");
}

TEST(Load, IsRefusedWithASentence) {
  EXPECT_EQ(refusal({"ycsb", "-t", "5", "-T", "5"}),
            "rdmacc_bench: --transactions and --time exclude each other\n");
  EXPECT_EQ(refusal({"ycsb", "-t", "0"}),
            "rdmacc_bench: --transactions must be 1 .. 1000000000000\n");
  EXPECT_EQ(refusal({"ycsb", "-R", "-1"}),
            "rdmacc_bench: --rate must be more than 0 and at most 1000000000 transactions a "
            "second\n");
  EXPECT_EQ(refusal({"ycsb", "-L", "0"}),
            "rdmacc_bench: --latency-limit must be more than 0 and at most 1000000 milliseconds\n");
  EXPECT_EQ(refusal({"ycsb", "--warm-up=-1"}),
            "rdmacc_bench: --warm-up must be 0 .. 1000000 seconds\n");
  EXPECT_EQ(refusal({"ycsb", "--report=/no/such/folder/r.html"}),
            "rdmacc_bench: --report=/no/such/folder/r.html: the folder cannot be written to\n");
  EXPECT_EQ(refusal({"ycsb", "--report=/"}), "rdmacc_bench: --report=/: it cannot be written to\n");
}

TEST(Sweep, ReportsEveryPoint) {
  const ParsedRuns parsed =
      runs_of({"ycsb", "--fabric=sim", "-T", "0.002", "--records=100", "--memory=256",
               "--sweep=coroutines:1,4", "--protocol=nowait,occ", "--format=json"});
  std::vector<BenchRun> runs;
  size_t told = 0;
  const Status status = run_in_turn(
      parsed.runs, kNotInterrupted, [&told](const BenchRun&) { ++told; }, runs);
  ASSERT_TRUE(status.ok()) << status.to_string();
  EXPECT_EQ(told, 4u);
  const auto json = nlohmann::json::parse(report(runs));
  ASSERT_EQ(json.size(), 4u);
  EXPECT_EQ(json[2]["swept"], nlohmann::json({{"coroutines", 4}, {"protocol", "nowait"}}));
  EXPECT_EQ(json[2]["coroutines"], 4);
  const std::string table = report_table(runs);
  EXPECT_NE(table.find("coroutines  protocol  committed/s"), std::string::npos) << table;
  EXPECT_NE(table.find("         4    nowait"), std::string::npos) << table;
  EXPECT_NE(report_csv(runs).find("\"coroutines=4, protocol=occ\""), std::string::npos);
}

}  // namespace
}  // namespace rdmacc
