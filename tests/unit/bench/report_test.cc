// Reports: JSON and CSV can be read by others and say the same.
#include "engine/bench/report.h"

#include <nlohmann/json.hpp>
#include <sstream>

#include "engine/bench/report_numbers.h"
#include "tests/unit/bench/bench_run.h"

namespace rdmacc {
namespace {

using Json = nlohmann::json;

// Reads one line as RFC 4180 says.
std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (quoted && line[i] == '"' && i + 1 < line.size() && line[i + 1] == '"') {
      fields.back() += line[i++];
    } else if (line[i] == '"') {
      quoted = !quoted;
    } else if (line[i] == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += line[i];
    }
  }
  EXPECT_FALSE(quoted);
  return fields;
}

std::vector<std::map<std::string, std::string>> parse_csv(const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  EXPECT_TRUE(std::getline(lines, line));
  const std::vector<std::string> names = fields_of(line);
  std::vector<std::map<std::string, std::string>> rows;
  while (std::getline(lines, line)) {
    const std::vector<std::string> values = fields_of(line);
    EXPECT_EQ(values.size(), names.size());
    rows.emplace_back();
    for (size_t i = 0; i < names.size() && i < values.size(); ++i) {
      EXPECT_TRUE(rows.back().emplace(names[i], values[i]).second) << names[i];
    }
  }
  return rows;
}

BenchRun invented_run(uint16_t code) {
  BenchRun run;
  run.options = options_of({"ycsb", "--zipf=0.5", "--protocol=nowait"});
  run.options.plan = StagePlan(code);
  run.result.seconds = 2;
  run.result.committed = 1'000u * (code + 1);
  run.result.rolled_back = 10;
  run.result.stats.aborted = 510;  // with the users' own
  run.result.stats.aborts[static_cast<size_t>(AbortReason::kLockHeld)] = 500;
  run.result.stats.verbs.reads = 4'000u * (code + 1);
  run.result.latency_ns.record(5'000);
  run.result.stats
      .stage_ns[stage_index(Stage::kLock)][static_cast<size_t>(run.options.plan.of(Stage::kLock))]
      .record(2'000);
  return run;
}

TEST(Report, SaysHowVerbsWereDelayed) {
  BenchRun run = invented_run(0);
  EXPECT_EQ(Json::parse(report_json(run))["verb_delays"], nullptr);
  EXPECT_EQ(parse_csv(report_csv(std::span(&run, 1)))[0].at("verb_delays"), "");
  EXPECT_EQ(report_text(run).find("verb delays"), std::string::npos);
  run.options = options_of({"ycsb", "--verb-delays=7"});
  const std::string drawn = run.options.verb_delays_text();
  EXPECT_EQ(Json::parse(report_json(run))["verb_delays"], drawn);
  EXPECT_EQ(parse_csv(report_csv(std::span(&run, 1)))[0].at("verb_delays"), drawn);
  EXPECT_NE(report_text(run).find("verb delays: " + drawn + "\n"), std::string::npos);
}

TEST(Report, SaysHowOrderedTransactionsRan) {
  BenchRun run = invented_run(0);
  EXPECT_EQ(Json::parse(report_json(run))["calvin"], nullptr);
  EXPECT_EQ(report_text(run).find("declared"), std::string::npos);
  run.options = options_of({"tpcc", "--protocol=calvin"});
  run.result.declared = 700;
  EXPECT_NE(report_text(run).find("declared: 700 transactions with declared keys, 310 by "
                                  "reconnaissance"),
            std::string::npos)
      << report_text(run);
  EXPECT_EQ(Json::parse(report_json(run))["calvin"], "declared");
  EXPECT_EQ(Json::parse(report_json(run))["declared"], 700);
  EXPECT_EQ(parse_csv(report_csv(std::span(&run, 1)))[0].at("calvin"), "declared");
}

TEST(JsonReport, SaysWhatWasRunAndSeen) {
  const Json json = Json::parse(report_json(invented_run(1)));
  EXPECT_EQ(json["workload"], "ycsb");
  EXPECT_EQ(json["settings"]["zipf"], 0.5);
  EXPECT_EQ(json["settings"]["records"], 100'000);
  EXPECT_EQ(json["stages"], 1);
  EXPECT_EQ(json["committed"], 2'000);
  EXPECT_EQ(json["rolled_back"], 10);
  EXPECT_EQ(json["aborted"], 500);
  EXPECT_EQ(json["abort_rate"], 0.2);
  EXPECT_EQ(json["committed_per_second"], 1'000);
  EXPECT_EQ(json["aborts"], Json({{"lock_held", 500}}));
  EXPECT_EQ(json["per_transaction"]["reads"], 4);
  ASSERT_EQ(json["stage_latency"].size(), 1u);
  EXPECT_EQ(json["stage_latency"][0]["stage"], "lock");
  EXPECT_EQ(json["stage_latency"][0]["primitive"], "one_sided");
  EXPECT_EQ(json["invariant"], "ok");
}

TEST(CsvReport, SaysTheSameInALine) {
  BenchRun broken = invented_run(0);
  broken.result.violation = "lost \"two\", at least";
  const std::vector<BenchRun> runs{invented_run(1), broken};
  const auto rows = parse_csv(report_csv(runs));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].at("settings"), runs[0].options.settings.to_string());
  EXPECT_EQ(rows[0].at("committed"), "2000");
  EXPECT_EQ(rows[0].at("aborted"), "500");
  EXPECT_EQ(rows[0].at("abort_rate"), "0.2");
  EXPECT_EQ(rows[0].at("aborts_lock_held"), "500");
  EXPECT_EQ(rows[0].at("reads_per_transaction"), "4");
  EXPECT_EQ(rows[0].at("invariant"), "ok");
  EXPECT_NE(rows[0].at("lock_one_sided_mean_us"), "");
  EXPECT_EQ(rows[0].at("lock_rpc_mean_us"), "");
  EXPECT_EQ(rows[1].at("lock_one_sided_mean_us"), "");
  EXPECT_NE(rows[1].at("lock_rpc_mean_us"), "");
  EXPECT_EQ(rows[1].at("invariant"), "lost \"two\", at least");
}

TEST(RankingReport, ComparesWithPureRpcAndPureOneSided) {
  const std::vector<BenchRun> runs{invented_run(29), invented_run(3), invented_run(0)};
  const std::string text = report_ranking(runs);
  EXPECT_NE(text.find("   1     29        15000   30.00         1.00"), std::string::npos) << text;
  EXPECT_NE(text.find("   2      3         2000    4.00         0.13"), std::string::npos) << text;
  EXPECT_NE(text.find("   3      0          500    1.00         0.03"), std::string::npos) << text;
  EXPECT_NE(text.find("1 2.0/2.0/2.0"), std::string::npos) << text;
  EXPECT_NE(text.find("r 2.0/2.0/2.0"), std::string::npos) << text;
}

TEST(Report, TakesTheFormThatIsAsked) {
  std::vector<BenchRun> runs{invented_run(0)};
  EXPECT_EQ(report(runs), report_text(runs[0]));
  runs[0].options.format = ReportFormat::kJson;
  EXPECT_TRUE(Json::parse(report(runs)).is_object());
  runs[0].options.command = BenchOptions::Command::kEnumerate;
  EXPECT_TRUE(Json::parse(report(runs)).is_array());
  runs[0].options.format = ReportFormat::kCsv;
  EXPECT_EQ(parse_csv(report(runs)).size(), 1u);
  runs[0].options.format = ReportFormat::kText;
  EXPECT_EQ(report(runs), report_ranking(runs));
}

}  // namespace
}  // namespace rdmacc
