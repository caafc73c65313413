#include "tests/fabric/fabric_harness.h"

#include <chrono>
#include <cstdlib>
#include <cstring>

namespace rdmacc {
namespace {

constexpr uint64_t kEventsMax = 50'000'000;
constexpr auto kWallMax = std::chrono::seconds(60);

}  // namespace

std::vector<FabricKind> every_fabric() {
  const char* const asked = getenv("FABRIC");
  if (asked == nullptr) return {FabricKind::kShm, FabricKind::kSim, FabricKind::kTcp};
  CHECK(std::string_view(asked) == "verbs");
  return {FabricKind::kVerbs};
}

std::string fabric_kind_name(const testing::TestParamInfo<FabricKind>& param) {
  return fabric_name(param.param);
}

FabricHarness::FabricHarness(FabricKind kind, HarnessOptions options) : options_(options) {
  const char* const delays = getenv("VERB_DELAYS");
  if (!options_.verb_delays && delays != nullptr) options_.verb_delays = std::stoull(delays);
  if (kind == FabricKind::kSim) {
    std::unique_ptr<SimFabric> sim = SimFabric::create(options.topology, options.sim);
    sim_ = sim.get();
    fabric_ = std::move(sim);
  } else if (kind == FabricKind::kShm) {
    cluster_ = unique_cluster();
    auto shm = ShmFabric::create(cluster_, options.topology,
                                 {.mapped = options_.mapped, .verb_delays = options_.verb_delays});
    CHECK(shm.ok());
    fabric_ = std::move(*shm);
  } else if (kind == FabricKind::kTcp) {
    open_tcp(make_config());
  } else {
    open_verbs(make_config());
  }
  workers_.resize(options.topology.nodes);
  for (NodeId n = 0; n + options.nodes_down < options.topology.nodes; ++n) start_node(n);
  for (uint16_t i = 0; i < options.coordinators; ++i) start_coordinator();
}

ClusterConfig FabricHarness::make_config() {
  if (options_.member_table) {
    ClusterConfig config;
    config.name = cluster_ = unique_cluster();
    config.topology = options_.topology;
    return config;
  }
  auto loopback = LoopbackCluster::make(unique_cluster(), options_.topology);
  CHECK(loopback.ok());
  loopback_ = std::move(*loopback);
  ClusterConfig config = loopback_->config();
  config.log = options_.log;
  return config;
}

void FabricHarness::open_tcp(const ClusterConfig& config) {
  for (NodeId n = 0; n + options_.nodes_down < options_.topology.nodes; ++n) {
    auto node = TcpFabric::open_as_node(config, n, {.verb_delays = options_.verb_delays});
    CHECK(node.ok());
    node_fabrics_.push_back(std::move(*node));
  }
  auto tcp = TcpFabric::open(config, {.verb_delays = options_.verb_delays});
  CHECK(tcp.ok());
  fabric_ = std::move(*tcp);
}

void FabricHarness::open_verbs(const ClusterConfig& config) {
  if (options_.member_table) members_ = std::make_unique<MemberTable>(config);
  VerbsOptions verbs = options_.verbs;
  for (NodeId n = 0; n + options_.nodes_down < options_.topology.nodes; ++n) {
    verbs.device = verbs_device(n);
    auto membership =
        members_ != nullptr ? members_->join_as_node(n) : Membership::open_as_node(config, n);
    CHECK(membership.ok());
    auto node = VerbsFabric::open_as_node(std::move(*membership), n, verbs);
    if (!node.ok()) std::fprintf(stderr, "%s\n", node.status().to_string().c_str());
    CHECK(node.ok());
    node_fabrics_.push_back(std::move(*node));
  }
  verbs.device = verbs_device(1);
  auto membership = members_ != nullptr ? members_->join() : Membership::open(config);
  CHECK(membership.ok());
  auto coordinators = VerbsFabric::open(std::move(*membership), verbs);
  CHECK(coordinators.ok());
  fabric_ = std::move(*coordinators);
}

FabricHarness::~FabricHarness() {
  for (auto& worker : workers_) {
    if (worker != nullptr) stop(*worker);
  }
  fabric_.reset();
  node_fabrics_.clear();
  if (loopback_ != nullptr) {
    TcpFabric::destroy(loopback_->config());
    VerbsFabric::destroy(loopback_->config());
  }
  if (!cluster_.empty()) ShmFabric::destroy(cluster_);
}

Worker& FabricHarness::add(size_t place, Result<std::unique_ptr<Endpoint>> endpoint) {
  CHECK(endpoint.ok());
  workers_[place] = std::make_unique<Worker>(std::move(*endpoint), options_.scheduler);
  Worker& worker = *workers_[place];
  if (sim_ != nullptr) sim_->attach(worker.id(), &worker.scheduler());
  return worker;
}

Worker& FabricHarness::start_node(NodeId node) {
  return add(node, fabric_of(node).join_as_node(node, 0));
}

Worker& FabricHarness::start_coordinator() {
  workers_.emplace_back();
  return add(workers_.size() - 1, fabric_->join());
}

void FabricHarness::stop(Worker& worker) {
  if (sim_ != nullptr) sim_->attach(worker.id(), nullptr);
  for (auto& owned : workers_) {
    if (owned.get() == &worker) owned.reset();
  }
}

bool FabricHarness::run_until(const std::function<bool()>& done) {
  if (sim_ != nullptr) return sim_->run_until(done, kEventsMax);
  const auto deadline = std::chrono::steady_clock::now() + kWallMax;
  while (!done()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    for (size_t i = 0; i < workers_.size(); ++i) {
      if (workers_[i] != nullptr) workers_[i]->scheduler().step();
    }
  }
  return true;
}

void FabricHarness::run(std::vector<std::pair<Worker*, std::function<void()>>> tasks) {
  size_t left = tasks.size();
  for (auto& [worker, task] : tasks) {
    CHECK(worker->scheduler().spawn([&left, task = std::move(task)] {
      task();
      --left;
    }));
  }
  // A coroutine that is still under way refers to this frame: there is no way on.
  CHECK(run_until([&left] { return left == 0; }));
}

uint64_t FabricHarness::word_at(NodeId node, uint64_t offset) {
  uint64_t value;
  std::memcpy(&value, workers_[node]->endpoint().local_region() + offset, sizeof(value));
  return value;
}

}  // namespace rdmacc
