#include "engine/bench/options.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "engine/protocols/registry.h"
#include "engine/storage/region_layout.h"

namespace rdmacc {
namespace {

constexpr uint64_t kMegabyte = 1ull << 20;
constexpr uint32_t kNodesMax = 64, kThreadsMax = 256, kCoroutinesMax = 512;
constexpr uint64_t kAccountsMax = 1ull << 32;
constexpr uint64_t kMemoryMbMax = 1ull << 24;
constexpr double kSecondsMax = 1e6;
constexpr double kTtyProgressSeconds = 5;

// The words as they were typed; numbers are signed so that "-1" gets our sentence.
struct Words {
  std::string protocol = "occ", stages = "one_sided", fabric = "shm", format = "text";
  int64_t nodes = 2, threads = 1, coroutines = 8, replicas = 0, memory_mb = 1024, spin_us = 50;
  int64_t accounts = 100'000, hot_accounts = 0, hot_access = 10;
  double seconds = 10, progress = -1;
  uint64_t seed = 1;
  std::string history_file;
};

Status invalid(std::string what) { return Status(Code::kInvalidArgument, std::move(what)); }

void add_run_options(CLI::App& app, Words& words) {
  app.add_option("--protocol", words.protocol, "one of " + available_protocol_names())
      ->capture_default_str();
  app.add_option("--stages", words.stages,
                 "one_sided, rpc, a hybrid code 0 .. 511, or a list lock=rpc,log=one_sided,...")
      ->capture_default_str();
  app.add_option("--fabric", words.fabric, "shm, or sim (virtual time, deterministic)")
      ->capture_default_str();
  app.add_option("--nodes", words.nodes, "nodes")->capture_default_str();
  app.add_option("-j,--threads", words.threads, "coordinator threads")->capture_default_str();
  app.add_option("-c,--coroutines", words.coroutines, "transactions under way on each thread")
      ->capture_default_str();
  app.add_option("--replicas", words.replicas, "backups of each partition's log")
      ->capture_default_str();
  app.add_option("-T,--time", words.seconds, "seconds to run (virtual ones on sim)")
      ->capture_default_str();
  app.add_option("--seed", words.seed, "seed of all random numbers")->capture_default_str();
  app.add_option("--memory", words.memory_mb, "memory of each node in MB")->capture_default_str();
  app.add_option("--spin-us", words.spin_us, "microseconds to spin before sleeping")
      ->capture_default_str();
  app.add_option("--format", words.format, "text or json")->capture_default_str();
  app.add_option("--history-file", words.history_file, "write the history (docs/HISTORY.md)");
  app.add_option("-P,--progress", words.progress,
                 "a line on stderr every so many seconds, 0 = none (5 when stderr is a terminal)");
}

void add_smallbank_options(CLI::App& app, Words& words) {
  app.add_option("--accounts", words.accounts, "accounts")->capture_default_str();
  app.add_option("--hot-accounts", words.hot_accounts, "hot accounts (default: a thousandth)");
  app.add_option("--hot-access", words.hot_access, "percent of accesses that go to hot accounts")
      ->capture_default_str();
}

template <typename T>
Status take_number(const char* name, int64_t given, int64_t least, int64_t most, T& into) {
  if (given < least || given > most) {
    return invalid(std::string(name) + " must be " + std::to_string(least) + " .. " +
                   std::to_string(most));
  }
  into = static_cast<T>(given);
  return Status();
}

Status take_names(const Words& words, BenchOptions& options) {
  const std::optional<Protocol> protocol = parse_protocol(words.protocol);
  if (!protocol || rules_of(*protocol) == nullptr) {
    return invalid("--protocol=" + words.protocol + " is not available; possible are " +
                   available_protocol_names());
  }
  const Result<StagePlan> plan = StagePlan::parse(words.stages);
  if (!plan.ok()) return invalid("--stages: " + plan.status().message());
  options.protocol = *protocol;
  options.plan = plan.value().canonical(stages_of(*protocol));
  if (words.fabric != "shm" && words.fabric != "sim") {
    return invalid("--fabric=" + words.fabric + " is not available; possible are shm, sim");
  }
  options.fabric = words.fabric == "sim" ? FabricKind::kSim : FabricKind::kShm;
  if (words.format != "text" && words.format != "json") {
    return invalid("--format=" + words.format + " is not known; possible are text, json");
  }
  options.json = words.format == "json";
  return Status();
}

Status take_sizes(const Words& words, BenchOptions& options) {
  RDMACC_RETURN_IF_ERROR(take_number("--nodes", words.nodes, 1, kNodesMax, options.nodes));
  RDMACC_RETURN_IF_ERROR(take_number("--threads", words.threads, 1, kThreadsMax, options.threads));
  RDMACC_RETURN_IF_ERROR(
      take_number("--coroutines", words.coroutines, 1, kCoroutinesMax, options.coroutines));
  if (words.replicas < 0 || words.replicas >= words.nodes) {
    return invalid("--replicas must be less than --nodes: 0 .. " + std::to_string(words.nodes - 1));
  }
  options.replicas = static_cast<uint32_t>(words.replicas);
  RDMACC_RETURN_IF_ERROR(take_number("--spin-us", words.spin_us, 0, 1'000'000, options.spin_us));
  if (!(words.seconds > 0 && words.seconds <= kSecondsMax)) {
    return invalid("--time must be more than 0 and at most 1000000 seconds");
  }
  options.seconds = words.seconds;
  SmallbankOptions& bank = options.smallbank;
  RDMACC_RETURN_IF_ERROR(take_number("--accounts", words.accounts, 2, kAccountsMax, bank.accounts));
  RDMACC_RETURN_IF_ERROR(
      take_number("--hot-accounts", words.hot_accounts, 0, words.accounts, bank.hot_accounts));
  RDMACC_RETURN_IF_ERROR(
      take_number("--hot-access", words.hot_access, 0, 100, bank.hot_access_percent));
  if (bank.hot_accounts == 0) bank.hot_accounts = Smallbank::default_hot_accounts(bank.accounts);
  options.memory_mb = 0;
  const uint64_t least_mb = (region_bytes_min(options.topology()) + kMegabyte - 1) / kMegabyte;
  return take_number("--memory", words.memory_mb, static_cast<int64_t>(least_mb), kMemoryMbMax,
                     options.memory_mb);
}

Status take_rest(const Words& words, BenchOptions& options) {
  options.seed = words.seed;
  options.history_file = words.history_file;
  options.progress_seconds = words.progress;
  if (words.progress < 0) {
    options.progress_seconds = isatty(STDERR_FILENO) != 0 ? kTtyProgressSeconds : 0;
  }
  return Status();
}

Status take(const Words& words, BenchOptions& options) {
  RDMACC_RETURN_IF_ERROR(take_names(words, options));
  RDMACC_RETURN_IF_ERROR(take_sizes(words, options));
  return take_rest(words, options);
}

int usage_error(const std::string& sentence) {
  std::fprintf(stderr, "rdmacc_bench: %s\n", sentence.c_str());
  return kExitUsage;
}

}  // namespace

const char* fabric_name(FabricKind kind) { return kind == FabricKind::kSim ? "sim" : "shm"; }

Topology BenchOptions::topology() const {
  Topology topology;
  topology.nodes = static_cast<NodeId>(nodes);
  topology.threads_per_node = 1;
  // Loading and checking use a coordinator of their own; a slot is free again only once its
  // owner's last verbs have been carried out.
  topology.workers_max = static_cast<WorkerId>(nodes + threads + 4);
  topology.region_bytes = memory_mb << 20;
  return topology;
}

ParsedOptions parse_options(int argc, char** argv) {
  CLI::App app("Native benchmarks of the pg_rdmacc engine");
  app.require_subcommand(1);
  Words words;
  CLI::App* smallbank = app.add_subcommand("smallbank", "SmallBank in RCC's mix");
  add_run_options(*smallbank, words);
  add_smallbank_options(*smallbank, words);
  CLI::App* limits =
      app.add_subcommand("limits", "what this machine can do at best, and what our verbs cost");
  ParsedOptions parsed;
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    parsed.exit_code = app.exit(help);
    return parsed;
  } catch (const CLI::ParseError& error) {
    std::string sentence = error.what();
    std::replace(sentence.begin(), sentence.end(), '\n', ' ');
    if (argc < 2 || argv[1][0] == '-' || (!*smallbank && !*limits)) {
      sentence = "the first word must be a workload or command: smallbank, limits";
    }
    parsed.exit_code = usage_error(sentence);
    return parsed;
  }
  BenchOptions options;
  if (*limits) {
    options.command = BenchOptions::Command::kLimits;
  } else {
    const Status status = take(words, options);
    if (!status.ok()) {
      parsed.exit_code = usage_error(status.message());
      return parsed;
    }
  }
  parsed.options = options;
  return parsed;
}

}  // namespace rdmacc
