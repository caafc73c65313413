#pragma once
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <vector>

#include "engine/cluster/gate.h"
#include "rdma/sim/sim_fabric.h"

namespace rdmacc {

constexpr ProtocolId kProtocols = 3;

// A coordinator with its gate, and what the test knows of its transactions inside.
struct GateUser {
  GateUser(std::unique_ptr<Endpoint> endpoint, const Topology& topology)
      : worker(std::move(endpoint)), clock(worker.endpoint()), gate(worker, topology, clock) {}

  Worker worker;
  TimestampClock clock;
  Gate gate;
  std::array<int, kProtocols> inside{};
  bool killed = false;
};

// Node 0 with a formatted control area, and coordinators, in the simulator.
class GateCluster {
 public:
  explicit GateCluster(uint64_t seed, size_t users, WorkerId workers_max = 8) {
    topology_.nodes = 1;
    topology_.workers_max = workers_max;
    topology_.region_bytes = 64ull << 20;
    SimOptions options;
    options.seed = seed;
    fabric_ = SimFabric::create(topology_, options);
    auto endpoint = fabric_->join_as_node(0, 0);
    CHECK(endpoint.ok());
    const RegionLayout layout(topology_);
    CHECK((*endpoint)->back_region(0, layout.pages).ok());
    format_control_area((*endpoint)->local_region(), layout);
    region_ = (*endpoint)->local_region();
    node_ = std::make_unique<Worker>(std::move(*endpoint));
    fabric_->attach(node_->id(), &node_->scheduler());
    for (size_t i = 0; i < users; ++i) add_user();
  }
  ~GateCluster() {
    for (auto& user : users_) detach(*user);
    fabric_->attach(node_->id(), nullptr);
  }

  GateUser& add_user() {
    auto endpoint = fabric_->join();
    CHECK(endpoint.ok());
    users_.push_back(std::make_unique<GateUser>(std::move(*endpoint), topology_));
    fabric_->attach(users_.back()->worker.id(), &users_.back()->worker.scheduler());
    return *users_.back();
  }
  void kill(GateUser& user) {
    user.killed = true;
    fabric_->kill(user.worker.id());
  }
  // What node 0 does for a dead worker: its transactions end, then its line is cleared.
  void resolve_departed() {
    for (const WorkerId dead : fabric_->departed()) {
      for (auto& user : users_) {
        if (user->killed && user->worker.id() == dead) user->inside = {};
      }
      VerbCounters counters;
      CHECK(Gate::clear_line(*node_, RegionLayout(topology_), dead, counters).ok());
      fabric_->release(dead);
    }
  }
  // At most one protocol has transactions inside, those of unresolved dead workers included.
  int protocols_inside() const {
    int protocols = 0;
    for (ProtocolId protocol = 0; protocol < kProtocols; ++protocol) {
      bool any = false;
      for (const auto& user : users_) any = any || user->inside[protocol] > 0;
      protocols += any ? 1 : 0;
    }
    return protocols;
  }

  SimFabric& fabric() { return *fabric_; }
  Worker& node() { return *node_; }
  const Topology& topology() const { return topology_; }
  GateUser& user(size_t i) { return *users_[i]; }
  size_t users() const { return users_.size(); }
  GateLine& gate_line() {
    return *reinterpret_cast<GateLine*>(region_ + RegionLayout(topology_).control);
  }
  WorkerLine& line_of(const GateUser& user) {
    auto& worker = const_cast<GateUser&>(user).worker;
    return *reinterpret_cast<WorkerLine*>(region_ +
                                          RegionLayout(topology_).worker_line(worker.id()));
  }

 private:
  void detach(GateUser& user) {
    if (!user.killed) fabric_->attach(user.worker.id(), nullptr);
  }

  Topology topology_;
  std::unique_ptr<SimFabric> fabric_;
  std::byte* region_ = nullptr;
  std::unique_ptr<Worker> node_;
  std::vector<std::unique_ptr<GateUser>> users_;
};

}  // namespace rdmacc
