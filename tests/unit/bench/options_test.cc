// Command lines: what they mean, and the one sentence about those that mean nothing.
#include "engine/bench/options.h"

#include "engine/protocols/registry.h"
#include "engine/workloads/registry.h"
#include "tests/unit/bench/bench_run.h"

namespace rdmacc {
namespace {

// What is said on stderr about words that cannot be carried out.
std::string refusal(const std::vector<std::string>& words) {
  std::vector<const char*> argv{"rdmacc_bench"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  testing::internal::CaptureStderr();
  const ParsedOptions parsed = parse_options(static_cast<int>(argv.size()), argv.data());
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_FALSE(parsed.options.has_value());
  EXPECT_EQ(parsed.exit_code, kExitUsage);
  return said;
}

TEST(BenchOptions, HaveTheirDefaults) {
  const BenchOptions options = options_of({"ycsb"});
  EXPECT_EQ(options.workload, "ycsb");
  EXPECT_EQ(options.settings.number("records"), 100'000u);
  EXPECT_EQ(options.command, BenchOptions::Command::kRun);
  EXPECT_EQ(options.format, ReportFormat::kText);
  EXPECT_EQ(options.plan.code(), stages_of(options.protocol));
  EXPECT_EQ(options.topology().threads_per_node, 1);
}

TEST(BenchOptions, TakeWhatIsGiven) {
  const BenchOptions options =
      options_of({"ycsb", "--zipf=0.4", "--nodes=3", "--threads-per-node=2", "--replicas=1",
                  "--protocol=nowait", "--stages=rpc", "--lock-mode=shared", "--format=csv",
                  "--theta=3", "--enumerate=false", "--seed=18446744073709551615"});
  EXPECT_EQ(options.settings.fraction("zipf"), 0.4);
  EXPECT_EQ(options.settings.number("nodes-per-transaction"), 3u);
  EXPECT_EQ(options.topology().nodes, 3);
  EXPECT_EQ(options.topology().threads_per_node, 2);
  EXPECT_EQ(options.plan.code(), 0);
  EXPECT_FALSE(options.declares());
  EXPECT_TRUE(options_of({"ycsb", "--protocol=calvin"}).declares());
  EXPECT_FALSE(options_of({"ycsb", "--protocol=calvin", "--calvin=reconnaissance"}).declares());
  EXPECT_EQ(options.lock_mode, LockMode::kShared);
  EXPECT_EQ(options.format, ReportFormat::kCsv);
  EXPECT_EQ(options.seed, UINT64_MAX);
}

TEST(BenchOptions, TakeASeedOfVerbDelays) {
  EXPECT_FALSE(options_of({"ycsb"}).verb_delays.has_value());
  EXPECT_EQ(options_of({"ycsb"}).verb_delays_text(), "");
  const BenchOptions options = options_of({"ycsb", "--verb-delays=7", "--fabric=tcp"});
  EXPECT_EQ(options.verb_delays, 7u);
  EXPECT_EQ(options.verb_delays_text().rfind("seed 7: ", 0), 0u) << options.verb_delays_text();
  EXPECT_NE(refusal({"ycsb", "--verb-delays=often"}).find("\"often\" is not a seed"),
            std::string::npos);
  EXPECT_NE(refusal({"ycsb", "--verb-delays=7", "--fabric=sim"}).find("needs --fabric=shm or tcp"),
            std::string::npos);
}

TEST(BenchOptions, TakeADiskForTheRunsOwnNodes) {
  EXPECT_TRUE(options_of({"ycsb"}).data_dir.empty());
  const BenchOptions options =
      options_of({"ycsb", "--durability=disk", "--data-dir=/x/rows", "--crash"});
  EXPECT_EQ(options.data_dir, "/x/rows");
  EXPECT_TRUE(options.crash);
  const auto refused = [](std::vector<std::string> words, const char* why) {
    words.insert(words.begin(), "ycsb");
    const std::string said = refusal(words);
    EXPECT_NE(said.find(why), std::string::npos) << said;
  };
  refused({"--data-dir=/x/rows"}, "need --durability=disk");
  refused({"--crash"}, "need --durability=disk");
  refused({"--durability=disk"}, "needs --data-dir");
  refused({"--durability=disk", "--data-dir=/x", "--fabric=sim"}, "starts as processes");
  refused({"--durability=disk", "--data-dir=/x", "--replicas=1"}, "needs --replicas=0");
  refused({"--durability=disk", "--data-dir=/x", "--protocol=calvin"}, "does not write to disk");
  refused({"--durability=disk", "--data-dir=/x", "--crash", "--enumerate"}, "a single run");
}

TEST(BenchOptions, LeaveThePlanToTheRun) {
  const BenchOptions options = options_of({"ycsb", "--stages=auto"});
  EXPECT_TRUE(options.auto_plan);
  EXPECT_EQ(options.plan.code(), stages_of(options.protocol)) << "to load with";
  EXPECT_FALSE(options_of({"ycsb", "--stages=rpc"}).auto_plan);
  EXPECT_NE(refusal({"ycsb", "--stages=automatic"}).find("; or auto\n"), std::string::npos);
}

TEST(BenchOptions, EveryWorkloadTakesRecords) {
  EXPECT_EQ(options_of({"smallbank", "--accounts=50"}).settings.number("records"), 50u);
  for (const WorkloadKind* kind : workload_kinds()) {
    const BenchOptions options = options_of({kind->name, "--records=300"});
    EXPECT_NE(options.settings.to_string().find("=300"), std::string::npos) << kind->name;
  }
}

TEST(BenchOptions, TakeNumbersAsTheyWereTyped) {
  const std::string seeds =
      "rdmacc_bench: --seed must be a whole number, 0 .. " + std::to_string(UINT64_MAX) + "\n";
  EXPECT_EQ(options_of({"ycsb", "--seed=18446744073709551615"}).seed, UINT64_MAX);
  EXPECT_EQ(options_of({"ycsb"}).seed, 1u);
  for (const char* seed : {"18446744073709551616", "-1", "1.5", "x", "1 "}) {
    EXPECT_EQ(refusal({"ycsb", std::string("--seed=") + seed}), seeds) << seed;
  }
  EXPECT_EQ(options_of({"ycsb", "-P", "0"}).progress_seconds, 0);
  EXPECT_EQ(options_of({"ycsb", "--progress=0.5"}).progress_seconds, 0.5);
  for (const char* seconds : {"-1", "nan", "inf"}) {
    EXPECT_EQ(refusal({"ycsb", "-P", seconds}),
              "rdmacc_bench: --progress must be 0 .. 1000000 seconds\n");
  }
}

TEST(BenchOptions, WithoutAValueTakeNoOtherWord) {
  for (const char* word : {"--stages=", "--history-file=", "--report=", "--cluster=", "--sweep="}) {
    EXPECT_EQ(refusal({"ycsb", word, "-T", "0.3"}),
              std::string("rdmacc_bench: ") + word + " has no value\n");
  }
  EXPECT_EQ(options_of({"ycsb", "--settings=records=50"}).settings.number("records"), 50u);
}

TEST(BenchOptions, KeepTheVersionsThatAProtocolReads) {
  EXPECT_EQ(options_of({"smallbank", "--history=0"}).settings.number("history"), 0u);
  EXPECT_EQ(refusal({"smallbank", "--protocol=mvcc", "--history=0"}),
            "rdmacc_bench: --protocol=mvcc needs a --history of 1 or more\n");
}

TEST(BenchOptions, AreRefusedWithASentence) {
  EXPECT_EQ(refusal({}), "rdmacc_bench: the first word must be a workload or command: " +
                             workload_names() + ", limits\n");
  EXPECT_EQ(refusal({"tpcd"}), refusal({}));
  EXPECT_EQ(refusal({"tpcd", "--format=json"}), refusal({}));
  EXPECT_EQ(refusal({"tpcd", "--owner=1:2"}),
            "rdmacc_bench: the first word must be a workload: " + workload_names() + "\n");
  EXPECT_EQ(refusal({"ycsb", "--records=0"}),
            "rdmacc_bench: --records must be a whole number, 1 .. 4294967296\n");
  EXPECT_EQ(refusal({"ycsb", "--zipf=0.1", "--hot-access=1"}),
            "rdmacc_bench: --zipf and --hot-access exclude each other\n");
  EXPECT_EQ(refusal({"ycsb", "--theta=3", "--nodes=2"}),
            "rdmacc_bench: --nodes-per-transaction must be at most --nodes and at most "
            "--operations\n");
  EXPECT_EQ(refusal({"tpcc", "--format=xml"}),
            "rdmacc_bench: --format=xml is not available; possible are text, json, csv\n");
  EXPECT_EQ(refusal({"tpcc", "--fabric=pigeon"}),
            "rdmacc_bench: --fabric=pigeon is not available; possible are shm, sim, tcp, verbs\n");
  EXPECT_EQ(refusal({"ycsb", "--config=/nowhere"}),
            "rdmacc_bench: --config=/nowhere needs --fabric=tcp or verbs\n");
  EXPECT_EQ(refusal({"ycsb", "--queue-pairs=2"}),
            "rdmacc_bench: --verbs-device and --queue-pairs need --fabric=verbs\n");
  EXPECT_EQ(refusal({"ycsb", "--fabric=verbs", "--queue-pairs=65"}),
            "rdmacc_bench: --queue-pairs must be 1 .. 64\n");
  EXPECT_EQ(refusal({"ycsb", "--fabric=tcp", "--cluster=some"}),
            "rdmacc_bench: --cluster=some needs --fabric=shm, without --config\n");
  EXPECT_EQ(refusal({"ycsb", "--cluster=no-such"}),
            "rdmacc_bench: --cluster: there is no cluster no-such on this host\n");
  EXPECT_EQ(refusal({"ycsb", "--owner=1:2x"}),
            "rdmacc_bench: --owner=1:2x must be SYSTEM:DATABASE, two numbers\n");
  EXPECT_EQ(refusal({"ycsb", "--settings=records=x"}),
            "rdmacc_bench: \"records=x\" is not a setting=number\n");
  EXPECT_EQ(refusal({"ycsb", "--fabric=tcp", "--config=/nowhere"}),
            "rdmacc_bench: --config: /nowhere: cannot be read\n");
  EXPECT_EQ(refusal({"ycsb", "--fabric=tcp", "--config=/nowhere", "--nodes=2"}),
            "rdmacc_bench: --config=/nowhere has its own --nodes, --threads-per-node and "
            "--memory: leave them out\n");
  EXPECT_EQ(refusal({"tpcc", "--protocol=3pl"}),
            "rdmacc_bench: --protocol=3pl is not available; possible are " +
                available_protocol_names() + "\n");
  EXPECT_EQ(refusal({"smallbank", "--enumerate", "--stages=rpc"}),
            "rdmacc_bench: --enumerate runs all stages: leave --stages out\n");
  EXPECT_EQ(refusal({"smallbank", "--enumerate", "--history-file=h"}),
            "rdmacc_bench: --history-file is for a single run\n");
  EXPECT_EQ(refusal({"smallbank", "--lock-mode=soft"}),
            "rdmacc_bench: --lock-mode=soft is not available; possible are exclusive, shared\n");
  EXPECT_EQ(refusal({"smallbank", "--lock-mode=shared", "--protocol=occ"}),
            "rdmacc_bench: --lock-mode=shared means nothing to --protocol=occ\n");
  EXPECT_EQ(refusal({"smallbank", "--protocol=calvin", "--calvin=guess"}),
            "rdmacc_bench: --calvin=guess is not available; possible are declared, "
            "reconnaissance\n");
  EXPECT_EQ(refusal({"smallbank", "--calvin=declared"}),
            "rdmacc_bench: --calvin means nothing to --protocol=occ\n");
  EXPECT_EQ(refusal({"smallbank", "--threads-per-node=0"}),
            "rdmacc_bench: --threads-per-node must be 1 .. 64\n");
  EXPECT_EQ(refusal({"smallbank", "--replicas=2"}),
            "rdmacc_bench: --replicas must be less than --nodes: 0 .. 1\n");
  EXPECT_NE(refusal({"smallbank", "--acounts=2"}).find("--acounts=2"), std::string::npos);
}

}  // namespace
}  // namespace rdmacc
