#include <signal.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "engine/node/node.h"
#include "engine/node/process_watch.h"
#include "engine/storage/layout/region_layout.h"
#include "engine/storage/layout/region_rights.h"
#include "engine/workloads/procedures.h"
#include "rdma/bootstrap/cluster_config.h"
#include "rdma/open/open_fabric.h"

// rdmacc_node: one node of a cluster, on shared memory with others of this host, or of a cluster
// that a config file describes. Exit code 0: ended by a signal or with the
// process it watched; 1: it could not start or go on; 2: the command line is wrong.

namespace rdmacc {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;
constexpr uint64_t kWatchEveryUs = 1'000'000;
constexpr useconds_t kAnewPauseUs = 50'000;  // what keeps it from starting may stay
constexpr uint64_t kMegabyte = 1ull << 20;

std::atomic<bool> stop{false};

bool told_ready = false;

void on_signal(int) { stop.store(true); }

struct Flags {
  std::string cluster, config, fabric = "tcp";
  VerbsOptions verbs;
  uint32_t node = 0;
  uint32_t nodes = 2, threads = 1, workers_max = 64;
  uint64_t memory_mb = 1024;
  bool create = false;
  bool no_huge_pages = false;
  bool from_disk = false;
  pid_t watch_pid = 0;
  uint32_t spin_us = 50;
};

void add_options(CLI::App& app, Flags& flags) {
  app.add_option("--node", flags.node, "number of this node, from 0")->required();
  CLI::Option* config =
      app.add_option("--config", flags.config, "config file of a cluster that spans hosts");
  app.add_option("--fabric", flags.fabric, "with --config: how its members talk: tcp or verbs")
      ->needs(config)
      ->capture_default_str();
  app.add_option(
         "--verbs-device", flags.verbs.device,
         "verbs: RDMA devices by commas, node k has the k-th; the first with an active port")
      ->needs(config);
  app.add_option("--verbs-port", flags.verbs.port, "verbs: its port; the first active one")
      ->needs(config);
  app.add_option("--verbs-gid", flags.verbs.gid_index,
                 "verbs: index of the port's address; a RoCE v2 one of IPv4")
      ->needs(config);
  // What follows describes a cluster that is processes of this host.
  const auto local = [&](const std::string& name, auto& variable, const std::string& what) {
    app.add_option(name, variable, what)->excludes(config)->capture_default_str();
  };
  local("--cluster", flags.cluster, "name of the cluster: letters, digits, _ and -");
  local("--nodes", flags.nodes, "nodes of the cluster");
  local("--threads", flags.threads, "threads of each node");
  local("--memory", flags.memory_mb, "memory of each node in MB");
  local("--workers-max", flags.workers_max, "worker slots, node threads included");
  app.add_flag("--create", flags.create, "create the cluster's control object first")
      ->excludes(config);
  app.add_flag("--from-disk", flags.from_disk,
               "forget the rows that are in memory, and get them back from data_dir (a config with "
               "durability = disk); the other nodes do the same")
      ->needs(config);
  app.add_flag("--no-huge-pages", flags.no_huge_pages, "do not try to use huge pages");
  app.add_option("--watch-pid", flags.watch_pid,
                 "end when this process, whose cluster it is, is gone; node 0 removes its memory");
  app.add_option("--spin-us", flags.spin_us, "microseconds to spin before sleeping")
      ->capture_default_str();
}

Status check(const Flags& flags) {
  const auto invalid = [](std::string what) {
    return Status(Code::kInvalidArgument, std::move(what));
  };
  if (flags.cluster.empty()) return invalid("--cluster or --config is required");
  constexpr uint32_t kNodesMax = 1024;
  if (flags.nodes == 0 || flags.nodes > kNodesMax) {
    return invalid("--nodes must be 1 .. " + std::to_string(kNodesMax));
  }
  if (flags.node >= flags.nodes) {
    return invalid("--node must be 0 .. " + std::to_string(flags.nodes - 1) +
                   " for --nodes=" + std::to_string(flags.nodes));
  }
  if (flags.threads == 0 || flags.threads > 64) return invalid("--threads must be 1 .. 64");
  const uint32_t node_workers = flags.nodes * flags.threads;
  if (flags.workers_max <= node_workers || flags.workers_max >= kNoWorker) {
    return invalid("--workers-max must be " + std::to_string(node_workers + 1) + " .. " +
                   std::to_string(kNoWorker - 1) + " for " + std::to_string(node_workers) +
                   " node threads");
  }
  return Status();
}

Topology topology_of(const Flags& flags) {
  Topology topology;
  topology.nodes = static_cast<NodeId>(flags.nodes);
  topology.threads_per_node = static_cast<uint16_t>(flags.threads);
  topology.workers_max = static_cast<WorkerId>(flags.workers_max);
  topology.region_bytes = flags.memory_mb <= (UINT64_MAX >> 20) ? flags.memory_mb * kMegabyte : 0;
  return topology;
}

// `what`: what sets the memory.
Status check_memory(const char* what, const Topology& topology) {
  const uint64_t least = region_bytes_min(topology);
  if (topology.region_bytes >= least) return Status();
  return Status(Code::kInvalidArgument, std::string(what) + " must be at least " +
                                            std::to_string((least + kMegabyte - 1) / kMegabyte) +
                                            " MB for " + std::to_string(topology.workers_max) +
                                            " workers");
}

// What the flags, or the config file that they name, describe.
Result<FabricChoice> choose(const Flags& flags) {
  FabricChoice choice = FabricChoice::shm(flags.cluster);
  if (flags.config.empty()) {
    RDMACC_RETURN_IF_ERROR(check(flags));
    RDMACC_RETURN_IF_ERROR(check_memory("--memory", topology_of(flags)));
  } else {
    const std::optional<FabricKind> kind = remote_fabric_kind(flags.fabric);
    if (!kind) {
      return Status(Code::kInvalidArgument, "--fabric=" + flags.fabric + " does not span hosts");
    }
    Result<ClusterConfig> config = read_cluster_config(flags.config);
    if (!config.ok()) return config.status();
    RDMACC_RETURN_IF_ERROR(check_memory("memory_mb", config->topology));
    if (flags.from_disk && config->data_dir.empty()) {
      return Status(Code::kInvalidArgument,
                    "--from-disk needs durability = disk in " + flags.config);
    }
    if (flags.node >= config->nodes.size()) {
      return Status(Code::kInvalidArgument,
                    "there is no node " + std::to_string(flags.node) + " in " + flags.config);
    }
    config->log = [](const std::string& sentence) { spdlog::warn(sentence); };
    choice = FabricChoice::remote(*kind, std::move(*config));
    choice.verbs = flags.verbs;
    choice.verbs.domains = region_domains(RegionLayout(choice.config.topology));
  }
  choice.huge_pages = !flags.no_huge_pages;
  return choice;
}

// The cluster's own topology counts; flags that contradict it are a mistake.
Status check_same(const Flags& flags, const Topology& topology) {
  if (topology.nodes == flags.nodes && topology.threads_per_node == flags.threads &&
      topology.workers_max == flags.workers_max &&
      topology.region_bytes == flags.memory_mb * kMegabyte) {
    return Status();
  }
  return Status(Code::kInvalidArgument,
                "cluster " + flags.cluster + " has --nodes=" + std::to_string(topology.nodes) +
                    " --threads=" + std::to_string(topology.threads_per_node) +
                    " --memory=" + std::to_string(topology.region_bytes / kMegabyte) +
                    " --workers-max=" + std::to_string(topology.workers_max));
}

Result<std::unique_ptr<Fabric>> open_fabric(const Flags& flags, const FabricChoice& choice) {
  if (flags.create) RDMACC_RETURN_IF_ERROR(create_cluster(choice, topology_of(flags)));
  Result<std::unique_ptr<Fabric>> fabric =
      open_fabric_as_node(choice, static_cast<NodeId>(flags.node));
  if (!fabric.ok()) {
    if (fabric.status().code() != Code::kNotFound) return fabric.status();
    return Status(Code::kNotFound, "there is no cluster " + flags.cluster + "; --create makes it");
  }
  if (flags.config.empty()) RDMACC_RETURN_IF_ERROR(check_same(flags, (*fabric)->topology()));
  return fabric;
}

// Each node has a folder of its own in data_dir, so that several may be on one host.
DurableOptions durable_options(const ClusterConfig& config, uint32_t node) {
  DurableOptions options;
  options.folder = config.data_dir + "/node" + std::to_string(node);
  options.cluster = config.name;
  options.checkpoint_bytes = config.checkpoint_log_bytes;
  return options;
}

// Not while another process of the node has its files.
Status discard_memory(const Flags& flags, const FabricChoice& choice) {
  const auto node = static_cast<NodeId>(flags.node);
  Result<DataFolder> folder = DataFolder::open(durable_options(choice.config, flags.node).folder);
  if (!folder.ok()) return folder.status();
  return discard_node_memory(choice, node);
}

// `again`: it was taken for dead, and is to be opened anew.
Status serve(const Flags& flags, const FabricChoice& choice, bool* again) {
  *again = false;
  Result<std::unique_ptr<Fabric>> fabric = open_fabric(flags, choice);
  if (!fabric.ok()) return fabric.status();
  ProcedureRegistry procedures;
  add_workload_procedures(procedures, WorkloadCluster{(*fabric)->topology().nodes, false});
  NodeOptions options;
  options.order.procedures = &procedures;
  options.log = [](const std::string& sentence) { spdlog::info(sentence); };
  if (!choice.config.data_dir.empty()) {
    options.durable = durable_options(choice.config, flags.node);
  }
  Result<std::unique_ptr<Node>> node =
      Node::open(**fabric, static_cast<NodeId>(flags.node), options);
  if (!node.ok()) return node.status();

  Scheduler& scheduler = (*node)->first().worker().scheduler();
  if (flags.watch_pid != 0) {
    const bool watching = scheduler.spawn([&, watch = ProcessWatch(flags.watch_pid)] {
      while (!watch.gone()) scheduler.sleep_for(kWatchEveryUs);
      // No other process is left that would.
      if (flags.node == 0) destroy_cluster(choice);
      stop.store(true);
    });
    CHECK(watching);
  }
  (*node)->when_serving([] {
    if (!told_ready) std::printf("ready\n");
    told_ready = true;
    std::fflush(stdout);
  });
  const Status ended = (*node)->run(stop, flags.spin_us);
  *again = (*node)->evicted() && !stop.load();
  spdlog::info("node {}: ends", flags.node);
  return ended;
}

void set_up_process() {
  struct sigaction action = {};
  action.sa_handler = on_signal;
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
  signal(SIGPIPE, SIG_IGN);
  spdlog::set_default_logger(spdlog::stderr_color_st("rdmacc_node"));
  spdlog::set_pattern("%Y-%m-%d %H:%M:%S.%e [%P] %^%l%$ %v");
}

int run(int argc, char** argv) {
  CLI::App app("One node of a pg_rdmacc cluster");
  Flags flags;
  add_options(app, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitUsage;
  }
  const Result<FabricChoice> choice = choose(flags);
  if (!choice.ok()) {
    std::fprintf(stderr, "rdmacc_node: %s\n", choice.status().message().c_str());
    return kExitUsage;
  }
  set_up_process();
  bool again = false;
  Status status = flags.from_disk ? discard_memory(flags, choice.value()) : Status();
  if (status.ok()) status = serve(flags, choice.value(), &again);
  while (!stop.load()) {
    const bool discard = status.code() == Code::kCorrupt && status.detail() == kDiscardMemory;
    if (!again && !discard) break;
    spdlog::warn("node {}: starts anew: {}", flags.node, status.message());
    usleep(kAnewPauseUs);
    again = false;
    status = discard ? discard_memory(flags, choice.value()) : Status();
    if (status.ok()) status = serve(flags, choice.value(), &again);
  }
  if (!status.ok()) {
    std::fprintf(stderr, "rdmacc_node: %s\n", status.to_string().c_str());
    return status.code() == Code::kInvalidArgument ? kExitUsage : kExitFailed;
  }
  return 0;
}

}  // namespace
}  // namespace rdmacc

int main(int argc, char** argv) {
  try {
    return rdmacc::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rdmacc_node: %s\n", error.what());
    return 1;
  }
}
