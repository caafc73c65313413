#include "tests/fabric/fabric_harness.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>

namespace rdmacc {
namespace {

constexpr uint64_t kEventsMax = 50'000'000;
constexpr auto kWallMax = std::chrono::seconds(20);

}  // namespace

std::string unique_cluster() {
  static std::atomic<int> number = 0;
  return "test-" + std::to_string(getpid()) + "-" + std::to_string(++number);
}

std::string fabric_kind_name(const testing::TestParamInfo<FabricKind>& param) {
  return fabric_name(param.param);
}

FabricHarness::FabricHarness(FabricKind kind, HarnessOptions options) : options_(options) {
  if (kind == FabricKind::kSim) {
    std::unique_ptr<SimFabric> sim = SimFabric::create(options.topology, options.sim);
    sim_ = sim.get();
    fabric_ = std::move(sim);
  } else if (kind == FabricKind::kShm) {
    cluster_ = unique_cluster();
    auto shm = ShmFabric::create(cluster_, options.topology);
    CHECK(shm.ok());
    fabric_ = std::move(*shm);
  } else {
    auto loopback = LoopbackCluster::make(unique_cluster(), options.topology);
    CHECK(loopback.ok());
    loopback_ = std::move(*loopback);
    ClusterConfig config = loopback_->config();
    config.log = options.log;
    for (NodeId n = 0; n + options.nodes_down < options.topology.nodes; ++n) {
      auto node = TcpFabric::open_as_node(config, n);
      CHECK(node.ok());
      node_fabrics_.push_back(std::move(*node));
    }
    auto tcp = TcpFabric::open(config);
    CHECK(tcp.ok());
    fabric_ = std::move(*tcp);
  }
  workers_.resize(options.topology.nodes);
  for (NodeId n = 0; n + options.nodes_down < options.topology.nodes; ++n) start_node(n);
  for (uint16_t i = 0; i < options.coordinators; ++i) start_coordinator();
}

FabricHarness::~FabricHarness() {
  for (auto& worker : workers_) {
    if (worker != nullptr) stop(*worker);
  }
  fabric_.reset();
  node_fabrics_.clear();
  if (loopback_ != nullptr) TcpFabric::destroy(loopback_->config());
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
