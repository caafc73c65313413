#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rdma/bootstrap/loopback_cluster.h"
#include "rdma/open/fabric_kind.h"
#include "rdma/rpc/worker.h"
#include "rdma/shm/shm_fabric.h"
#include "rdma/sim/sim_fabric.h"
#include "rdma/tcp/tcp_fabric.h"
#include "rdma/verbs/verbs_fabric.h"
#include "tests/fabric/member_table.h"
#include "tests/fabric/surroundings.h"

// A small cluster of workers in one thread, on any fabric, so that one suite tests what all
// fabrics promise. Every wait is bounded. On tcp and verbs each node has a fabric of its own, as if
// it were a process, and the coordinators share another.

namespace rdmacc {

struct HarnessOptions {
  Topology topology{.nodes = 2, .threads_per_node = 1, .workers_max = 16, .region_bytes = 1 << 20};
  SimOptions sim;
  uint16_t coordinators = 2;
  NodeId nodes_down = 0;  // so many of the last nodes are not started
  // tcp, verbs: what members tell, on their threads.
  std::function<void(const std::string& sentence)> log;
  Scheduler::Options scheduler;
  VerbsOptions verbs;
  // shm, tcp: a seed of pauses between verbs. VERB_DELAYS in the environment gives one to every
  // harness that has none.
  std::optional<uint64_t> verb_delays;
  bool mapped = true;         // shm: ShmOptions::mapped
  bool member_table = false;  // verbs: members() in place of channels
};

class FabricHarness {
 public:
  explicit FabricHarness(FabricKind kind, HarnessOptions options = {});
  ~FabricHarness();

  Fabric& fabric() { return *fabric_; }  // the coordinators'
  Fabric& fabric_of(NodeId node) { return node_fabrics_.empty() ? *fabric_ : *node_fabrics_[node]; }
  SimFabric& sim() { return *sim_; }
  bool simulated() const { return sim_ != nullptr; }
  const std::string& cluster() const { return cluster_; }
  const ClusterConfig& config() const { return loopback_->config(); }  // tcp, verbs
  MemberTable& members() { return *members_; }                         // verbs

  Worker& node(NodeId node) { return *workers_[node]; }
  Worker& coordinator(size_t i) { return *workers_[options_.topology.nodes + i]; }
  Worker& start_node(NodeId node);
  Worker& start_coordinator();
  // Destroys the worker; it leaves in order, unless it was killed before.
  void stop(Worker& worker);

  // Steps all workers until `done`; false when that takes too long.
  [[nodiscard]] bool run_until(const std::function<bool()>& done);
  // Runs the tasks as coroutines until all have ended; fails the test if they do not.
  void run(std::vector<std::pair<Worker*, std::function<void()>>> tasks);
  void run(Worker& worker, std::function<void()> task) { run({{&worker, std::move(task)}}); }

  uint64_t word_at(NodeId node, uint64_t offset);

 private:
  ClusterConfig make_config();
  void open_tcp(const ClusterConfig& config);
  void open_verbs(const ClusterConfig& config);
  Worker& add(size_t place, Result<std::unique_ptr<Endpoint>> endpoint);

  HarnessOptions options_;
  std::string cluster_;
  std::unique_ptr<LoopbackCluster> loopback_;  // tcp, verbs
  std::unique_ptr<MemberTable> members_;
  std::vector<std::unique_ptr<Fabric>> node_fabrics_;
  std::unique_ptr<Fabric> fabric_;
  SimFabric* sim_ = nullptr;
  std::vector<std::unique_ptr<Worker>> workers_;  // nodes first; nullptr: stopped
};

// For INSTANTIATE_TEST_SUITE_P: what needs no device, or with FABRIC=verbs in the environment that
// alone.
std::vector<FabricKind> every_fabric();
std::string fabric_kind_name(const testing::TestParamInfo<FabricKind>& param);

}  // namespace rdmacc
