#include "engine/bench/options.h"

#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <filesystem>

#include "engine/bench/option_words.h"
#include "engine/bench/preset_words.h"
#include "engine/bench/without_words.h"
#include "engine/protocols/registry.h"
#include "engine/report/page.h"
#include "engine/storage/layout/region_layout.h"
#include "engine/txn/rule/rule.h"
#include "engine/workloads/registry.h"
#include "rdma/bootstrap/cluster_config.h"
#include "rdma/fabric/verb_delays.h"
#include "rdma/open/open_fabric.h"

namespace rdmacc {
namespace {

constexpr uint64_t kMegabyte = 1ull << 20;
constexpr uint32_t kNodesMax = 64, kThreadsMax = 256, kCoroutinesMax = 512;
constexpr uint32_t kThreadsPerNodeMax = 64;
constexpr uint64_t kHandwrittenRecordsMin = 1'000, kHandwrittenRecordsMax = 20'000'000;
constexpr uint64_t kMemoryMbMax = 1ull << 24;
constexpr double kSecondsMax = 1e6;
constexpr double kTtyProgressSeconds = 5;

Status invalid(std::string what) { return Status(Code::kInvalidArgument, std::move(what)); }

template <typename T>
Status take_number(const char* name, int64_t given, int64_t least, int64_t most, T& into) {
  if (given < least || given > most) {
    return invalid(std::string(name) + " must be " + std::to_string(least) + " .. " +
                   std::to_string(most));
  }
  into = static_cast<T>(given);
  return Status();
}

// One of a list of words, by its place in the list.
template <typename T>
Status take_choice(const char* name, const std::string& given,
                   std::initializer_list<const char*> possible, T& into) {
  uint8_t place = 0;
  std::string names;
  for (const char* each : possible) {
    if (given == each) {
      into = static_cast<T>(place);
      return Status();
    }
    names += (place++ == 0 ? "" : ", ") + std::string(each);
  }
  return invalid(std::string(name) + "=" + given + " is not available; possible are " + names);
}

Status take_names(const OptionWords& words, BenchOptions& options) {
  const std::optional<Protocol> protocol = parse_protocol(words.protocol);
  if (!protocol) {
    return invalid("--protocol=" + words.protocol + " is not available; possible are " +
                   available_protocol_names());
  }
  options.auto_plan = words.stages == "auto";
  const Result<StagePlan> plan =
      options.auto_plan ? Result<StagePlan>(StagePlan()) : StagePlan::parse(words.stages);
  if (!plan.ok()) {
    return invalid("--stages: " + plan.status().message() + "; or auto");
  }
  options.protocol = *protocol;
  options.plan = plan.value().canonical(stages_of(*protocol));
  RDMACC_RETURN_IF_ERROR(
      take_choice("--fabric", words.fabric, {"shm", "sim", "tcp", "verbs"}, options.fabric));
  RDMACC_RETURN_IF_ERROR(
      take_choice("--format", words.format, {"text", "json", "csv"}, options.format));
  RDMACC_RETURN_IF_ERROR(
      take_choice("--lock-mode", words.lock_mode, {"exclusive", "shared"}, options.lock_mode));
  bool no_cache = false;
  RDMACC_RETURN_IF_ERROR(
      take_choice("--location-cache", words.location_cache, {"on", "off"}, no_cache));
  options.location_cache = !no_cache;
  Result<VerbSavings> savings = parse_without(words.without);
  if (!savings.ok()) return savings.status();
  options.savings = *savings;
  if (options.fabric == FabricKind::kShm && words.without != "none") {
    return invalid("--without=" + words.without +
                   " means nothing on shm, where verbs are carried out in place");
  }
  if (!words.calvin.empty()) {
    RDMACC_RETURN_IF_ERROR(
        take_choice("--calvin", words.calvin, {"declared", "reconnaissance"}, options.calvin));
    if (!executes_procedures(options.protocol)) {
      return invalid("--calvin means nothing to --protocol=" + words.protocol);
    }
  }
  if (options.lock_mode != LockMode::kExclusive &&
      rules_of(options.protocol, options.lock_mode) == rules_of(options.protocol)) {
    return invalid("--lock-mode=" + words.lock_mode +
                   " means nothing to --protocol=" + words.protocol);
  }
  return Status();
}

Status refuse_sizes(const OptionWords& words, const std::string& cluster) {
  if (!words.cluster_sized) return Status();
  return invalid(cluster + " has its own --nodes, --threads-per-node and --memory: leave them out");
}

void take_topology(const Topology& topology, OptionWords& words) {
  words.nodes = topology.nodes;
  words.threads_per_node = topology.threads_per_node;
  words.memory_mb = static_cast<int64_t>(topology.region_bytes >> 20);
}

// A running cluster has the sizes that it was made with.
Status take_cluster(OptionWords& words, BenchOptions& options) {
  if (words.cluster.empty()) return Status();
  if (options.fabric != FabricKind::kShm || !words.config.empty()) {
    return invalid("--cluster=" + words.cluster + " needs --fabric=shm, without --config");
  }
  RDMACC_RETURN_IF_ERROR(refuse_sizes(words, "--cluster=" + words.cluster));
  Result<std::unique_ptr<Fabric>> fabric = open_fabric(FabricChoice::shm(words.cluster));
  if (!fabric.ok()) return invalid("--cluster: " + fabric.status().message());
  take_topology((*fabric)->topology(), words);
  options.cluster = words.cluster;
  return Status();
}

// As its config file says.
Status take_config(OptionWords& words, BenchOptions& options) {
  if (words.config.empty()) return Status();
  if (!remote_fabric_kind(fabric_name(options.fabric))) {
    return invalid("--config=" + words.config + " needs --fabric=tcp or verbs");
  }
  RDMACC_RETURN_IF_ERROR(refuse_sizes(words, "--config=" + words.config));
  Result<ClusterConfig> config = read_cluster_config(words.config);
  if (!config.ok()) return invalid("--config: " + config.status().message());
  take_topology(config->topology, words);
  options.config_file = words.config;
  return Status();
}

Status take_owner(const OptionWords& words, BenchOptions& options) {
  if (words.owner.empty()) return Status();
  unsigned long long system = 0;
  unsigned database = 0;
  int read = 0;
  const bool numbers =
      std::sscanf(words.owner.c_str(), "%llu:%u%n", &system, &database, &read) == 2;
  if (!numbers || static_cast<size_t>(read) != words.owner.size() || system == 0) {
    return invalid("--owner=" + words.owner + " must be SYSTEM:DATABASE, two numbers");
  }
  options.owner = {system, database};
  return Status();
}

Status take_sizes(const OptionWords& words, BenchOptions& options) {
  RDMACC_RETURN_IF_ERROR(take_number("--nodes", words.nodes, 1, kNodesMax, options.nodes));
  RDMACC_RETURN_IF_ERROR(take_number("--threads-per-node", words.threads_per_node, 1,
                                     kThreadsPerNodeMax, options.threads_per_node));
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
  options.memory_mb = 0;
  const uint64_t least_mb = (region_bytes_min(options.topology()) + kMegabyte - 1) / kMegabyte;
  return take_number("--memory", words.memory_mb, static_cast<int64_t>(least_mb), kMemoryMbMax,
                     options.memory_mb);
}

Status take_verbs(const OptionWords& words, BenchOptions& options) {
  constexpr int64_t kQueuePairsMax = 64;
  RDMACC_RETURN_IF_ERROR(
      take_number("--queue-pairs", words.queue_pairs, 1, kQueuePairsMax, options.queue_pairs));
  options.verbs_device = words.verbs_device;
  if (options.fabric == FabricKind::kVerbs) return Status();
  if (options.queue_pairs == 1 && options.verbs_device.empty()) return Status();
  return invalid("--verbs-device and --queue-pairs need --fabric=verbs");
}

// The nodes of a running cluster have settings of their own.
Status take_verb_delays(const OptionWords& words, BenchOptions& options) {
  if (words.verb_delays.empty()) return Status();
  Result<uint64_t> seed = parse_delay_seed(words.verb_delays);
  if (!seed.ok()) return invalid("--" + seed.status().message());
  options.verb_delays = *seed;
  if (options.fabric == FabricKind::kShm || options.fabric == FabricKind::kTcp) return Status();
  return invalid("--verb-delays needs --fabric=shm or tcp");
}

Status take_durability(const OptionWords& words, BenchOptions& options) {
  bool on_disk = false;
  RDMACC_RETURN_IF_ERROR(
      take_choice("--durability", words.durability, {"memory", "disk"}, on_disk));
  if (!on_disk) {
    if (words.data_dir.empty() && !words.crash) return Status();
    return invalid("--data-dir and --crash need --durability=disk");
  }
  if (words.data_dir.empty()) return invalid("--durability=disk needs --data-dir");
  if (options.joins_running_cluster() || options.fabric == FabricKind::kSim) {
    return invalid("--durability is for nodes that the run starts as processes");
  }
  if (options.replicas > 0) return invalid("--durability=disk needs --replicas=0");
  if (executes_procedures(options.protocol)) {
    return invalid("--protocol=" + words.protocol + " does not write to disk");
  }
  if (words.crash && words.enumerate) return invalid("--crash is for a single run");
  options.data_dir = words.data_dir;
  options.crash = words.crash;
  return Status();
}

// A run may be long, and a page that cannot be written is noticed before.
Status take_page(const OptionWords& words, BenchOptions& options) {
  if (words.page_file.empty()) return Status();
  const std::string& path = words.page_file;
  const size_t slash = path.rfind('/');
  const std::string folder = slash == path.npos ? "." : path.substr(0, slash);
  if (!is_file_or_absent(path)) {
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored) || access(path.c_str(), W_OK) != 0) {
      return invalid("--report=" + path + ": it cannot be written to");
    }
  } else if (access((folder + "/").c_str(), W_OK) != 0) {
    return invalid("--report=" + path + ": the folder cannot be written to");
  }
  options.page_file = words.page_file;
  return Status();
}

// As typed: what the words' parser makes of "-1" or of 2^64 is the greatest number that there is.
Status take_seed(const OptionWords& words, uint64_t& seed) {
  const char* const end = words.seed.data() + words.seed.size();
  const auto read = std::from_chars(words.seed.data(), end, seed);
  if (read.ec == std::errc() && read.ptr == end) return Status();
  return invalid("--seed must be a whole number, 0 .. " + std::to_string(UINT64_MAX));
}

Status take_progress(const OptionWords& words, double& seconds) {
  seconds = isatty(STDERR_FILENO) != 0 ? kTtyProgressSeconds : 0;
  if (!words.was_given("progress")) return Status();
  if (!(words.progress >= 0 && words.progress <= kSecondsMax)) {
    return invalid("--progress must be 0 .. 1000000 seconds");
  }
  seconds = words.progress;
  return Status();
}

Status take_rest(const OptionWords& words, BenchOptions& options) {
  bool workload_alone = false;
  RDMACC_RETURN_IF_ERROR(take_choice("--check", words.check, {"full", "workload"}, workload_alone));
  options.full_check = !workload_alone;
  RDMACC_RETURN_IF_ERROR(take_seed(words, options.seed));
  options.history_file = words.history_file;
  RDMACC_RETURN_IF_ERROR(take_page(words, options));
  RDMACC_RETURN_IF_ERROR(take_progress(words, options.progress_seconds));
  if (!words.enumerate) return Status();
  options.command = BenchOptions::Command::kEnumerate;
  if (words.stages_given) return invalid("--enumerate runs all stages: leave --stages out");
  if (!words.history_file.empty()) return invalid("--history-file is for a single run");
  return Status();
}

Status take_workload(const OptionWords& words, BenchOptions& options) {
  options.workload = words.workload->name;
  options.settings = WorkloadSettings(words.workload->settings);
  RDMACC_RETURN_IF_ERROR(options.settings.parse(words.settings_text));
  for (const auto& [name, value] : words.settings) {
    RDMACC_RETURN_IF_ERROR(options.settings.set(name, value));
  }
  if (rules_of(options.protocol, options.lock_mode)->keeps_versions() &&
      options.settings.has(kHistorySetting.name) &&
      options.settings.number(kHistorySetting.name) == 0) {
    return invalid("--protocol=" + std::string(protocol_name(options.protocol)) +
                   " needs a --history of 1 or more");
  }
  return options.make_workload().status();
}

Status take(OptionWords& words, BenchOptions& options) {
  if (words.workload == nullptr) {
    options.command = BenchOptions::Command::kLimits;
    RDMACC_RETURN_IF_ERROR(take_number("--records", words.handwritten_records,
                                       kHandwrittenRecordsMin, kHandwrittenRecordsMax,
                                       options.handwritten_records));
    return take_choice("--format", words.format, {"text", "json"}, options.format);
  }
  RDMACC_RETURN_IF_ERROR(take_preset(words));
  options.preset = words.preset;
  RDMACC_RETURN_IF_ERROR(take_names(words, options));
  RDMACC_RETURN_IF_ERROR(take_cluster(words, options));
  RDMACC_RETURN_IF_ERROR(take_config(words, options));
  RDMACC_RETURN_IF_ERROR(take_owner(words, options));
  take_preset_sizes(words);
  RDMACC_RETURN_IF_ERROR(take_sizes(words, options));
  RDMACC_RETURN_IF_ERROR(take_load(words, options.load));
  RDMACC_RETURN_IF_ERROR(take_verbs(words, options));
  RDMACC_RETURN_IF_ERROR(take_verb_delays(words, options));
  RDMACC_RETURN_IF_ERROR(take_durability(words, options));
  RDMACC_RETURN_IF_ERROR(take_rest(words, options));
  return take_workload(words, options);
}

}  // namespace

const char* ordered_by_name(OrderedBy by) {
  return by == OrderedBy::kDeclared ? "declared" : "reconnaissance";
}

bool BenchOptions::declares() const {
  return executes_procedures(protocol) && calvin == OrderedBy::kDeclared;
}

std::string BenchOptions::verb_delays_text() const {
  return verb_delays ? DelayDraw::of(*verb_delays).to_string() : std::string();
}

Topology BenchOptions::topology() const {
  Topology topology;
  topology.nodes = static_cast<NodeId>(nodes);
  topology.threads_per_node = static_cast<uint16_t>(threads_per_node);
  // Loading and checking use a coordinator of their own; a slot is free again only once its
  // owner's last verbs have been carried out.
  topology.workers_max = static_cast<WorkerId>(topology.node_workers() + threads + 4);
  topology.region_bytes = memory_mb << 20;
  return topology;
}

WorkloadCluster BenchOptions::workload_cluster() const {
  return WorkloadCluster{static_cast<NodeId>(nodes), fabric == FabricKind::kSim};
}

Result<std::unique_ptr<Workload>> BenchOptions::make_workload() const {
  return rdmacc::make_workload(workload, settings.to_string(), workload_cluster());
}

ParsedOptions parse_options(int argc, const char* const* argv) {
  ParsedOptions parsed;
  OptionWords words = parse_words(argc, argv);
  if (words.ended) {
    parsed.exit_code = words.exit_code;
    return parsed;
  }
  CHECK(words.axes.empty());
  BenchOptions options;
  const Status status = take(words, options);
  if (status.ok()) {
    parsed.options = options;
  } else {
    parsed.exit_code = usage_error(status.message());
  }
  return parsed;
}

}  // namespace rdmacc
