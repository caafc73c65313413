#pragma once
#include <memory>
#include <vector>

#include "engine/node/node_thread.h"
#include "engine/session.h"
#include "rdma/sim/sim_fabric.h"

namespace rdmacc {

// Nodes and coordinators of one simulated cluster, for tests of sessions.
class SimEngine {
 public:
  explicit SimEngine(uint64_t seed, uint32_t replicas = 0, NodeId nodes = 2,
                     uint64_t region_bytes = 192ull << 20, bool one_by_one = false,
                     bool dead_node_unreachable = false) {
    topology_.nodes = nodes;
    topology_.workers_max = 16;
    topology_.region_bytes = region_bytes;
    SimOptions options;
    options.seed = seed;
    options.one_by_one = one_by_one;
    options.dead_node_unreachable = dead_node_unreachable;
    fabric_ = SimFabric::create(topology_, options);
    nodes_.resize(nodes);
    for (NodeId node = 0; node < nodes; node++) start_node(node);
    options_.replicas = replicas;
  }
  ~SimEngine() {
    for (auto& coordinator : coordinators_) fabric_->attach(coordinator->worker().id(), nullptr);
    for (auto& node : nodes_) {
      if (node != nullptr) fabric_->attach(node->worker().id(), nullptr);
    }
  }

  // Starts a node, or starts one again that was killed.
  void start_node(NodeId node) {
    CHECK(nodes_[node] == nullptr);
    auto thread = NodeThread::open(*fabric_, node, 0, NodeOptions{});
    CHECK(thread.ok());
    nodes_[node] = std::move(*thread);
    fabric_->attach(nodes_[node]->worker().id(), &nodes_[node]->worker().scheduler());
  }
  void kill_node(NodeId node) {
    const WorkerId worker = nodes_[node]->worker().id();
    fabric_->kill(worker);
    fabric_->attach(worker, nullptr);
    nodes_[node].reset();
  }

  EngineOptions& options() { return options_; }
  SimFabric& fabric() { return *fabric_; }
  NodeThread& node(NodeId node) { return *nodes_[node]; }

  using Wrap = std::function<std::unique_ptr<Endpoint>(std::unique_ptr<Endpoint>)>;

  // `wrap` may put something between the coordinator and its end of the fabric.
  Coordinator& add_coordinator(const Wrap& wrap = nullptr) {
    auto joined = fabric_->join();
    CHECK(joined.ok());
    std::unique_ptr<Endpoint> endpoint = std::move(*joined);
    if (wrap) endpoint = wrap(std::move(endpoint));
    coordinators_.push_back(
        std::make_unique<Coordinator>(std::move(endpoint), topology_, options_));
    Worker& worker = coordinators_.back()->worker();
    fabric_->attach(worker.id(), &worker.scheduler());
    return *coordinators_.back();
  }

  // Runs `task` in a coroutine of the coordinator, until it has returned.
  void run(Coordinator& coordinator, const std::function<void()>& task,
           uint64_t events_max = 50'000'000) {
    bool done = false;
    CHECK(coordinator.worker().scheduler().spawn([&] {
      task();
      done = true;
    }));
    CHECK(fabric_->run_until([&] { return done; }, events_max));
  }
  // Steps the cluster until `done`.
  bool run_until(const std::function<bool()>& done) { return fabric_->run_until(done, 50'000'000); }

 private:
  Topology topology_;
  EngineOptions options_;
  std::unique_ptr<SimFabric> fabric_;
  std::vector<std::unique_ptr<NodeThread>> nodes_;
  std::vector<std::unique_ptr<Coordinator>> coordinators_;
};

}  // namespace rdmacc
