#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "engine/storage/wire/storage_client.h"
#include "engine/storage/wire/storage_service.h"
#include "rdma/sim/sim_fabric.h"

namespace rdmacc {

// Nodes that serve their storage, and coordinators, in the simulator. Every node's maintenance
// runs all the time.
class StorageCluster {
 public:
  struct Coordinator {
    explicit Coordinator(std::unique_ptr<Endpoint> endpoint, const Topology& topology)
        : worker(std::move(endpoint)), client(worker, topology), layout(topology) {}
    uint64_t next_ctts() {
      last_us = std::max(last_us + 1, worker.endpoint().now_us());
      return (last_us << 16) | worker.id();
    }
    Worker worker;
    StorageClient client;
    RegionLayout layout;
    uint64_t last_us = 0;
    uint32_t transactions = 0;  // under way
    bool announced = false;     // in the worker's line
    bool killed = false;
  };
  struct Options {
    uint64_t seed = 1;
    NodeId nodes = 2;
    size_t coordinators = 1;
    uint64_t memory_bytes = 8ull << 20;  // beyond the smallest region
    bool maintain = true;
    bool lossy = false;
    bool dead_node_unreachable = false;
  };

  explicit StorageCluster(const Options& options);
  ~StorageCluster();

  // Runs the bodies as coroutines, one each on coordinator i mod n; fails the test on a hang.
  void run(std::vector<std::function<void(Coordinator&)>> bodies, uint64_t events_max = 20'000'000);
  void run(std::function<void(Coordinator&)> body) { run(std::vector{std::move(body)}); }
  // Runs something on a node's own thread.
  void run_on_node(NodeId node, std::function<void()> body);
  // As run(), but node `victim` dies after this many more events, and is opened again a while
  // later.
  void run_and_kill(NodeId victim, uint64_t after_events,
                    std::vector<std::function<void(Coordinator&)>> bodies);
  void kill_node(NodeId node);
  void start_node(NodeId node);
  // Kills and opens it again; a node that cannot be opened stays away.
  Status try_restart(NodeId node);
  void kill_coordinator(size_t i);

  SimFabric& fabric() { return *fabric_; }
  const Topology& topology() const { return topology_; }
  RegionLayout layout() const { return RegionLayout(topology_); }
  StorageService& storage(NodeId node) { return *nodes_[node].storage; }
  Worker& node_worker(NodeId node) { return *nodes_[node].worker; }
  std::byte* region(NodeId node) { return nodes_[node].region; }
  Coordinator& coordinator(size_t i) { return *coordinators_[i]; }
  // Rounds of maintenance without transactions: all that is in limbo becomes free.
  void settle();

 private:
  struct Node {
    std::unique_ptr<Worker> worker;
    std::unique_ptr<StorageService> storage;
    std::byte* region = nullptr;
  };
  Status open_node(NodeId node);
  size_t spawn(std::vector<std::function<void(Coordinator&)>> bodies);

  Topology topology_;
  bool maintain_;
  std::unique_ptr<SimFabric> fabric_;
  std::vector<Node> nodes_;
  std::vector<std::unique_ptr<Coordinator>> coordinators_;
  size_t running_ = 0;
};

// A transaction of the coordinator as reclamation sees it: announces the epoch while it lives.
class AnnouncedEpoch {
 public:
  explicit AnnouncedEpoch(StorageCluster::Coordinator& coordinator);
  ~AnnouncedEpoch();
  AnnouncedEpoch(const AnnouncedEpoch&) = delete;
  AnnouncedEpoch& operator=(const AnnouncedEpoch&) = delete;

 private:
  StorageCluster::Coordinator& coordinator_;
};

}  // namespace rdmacc
