#pragma once
#include <sys/types.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rdma/bootstrap/loopback_cluster.h"
#include "rdma/open/open_fabric.h"

namespace rdmacc {

// The nodes of one run as child processes, a cluster of their own: on shared memory, or talking
// over loopback with a throw-away secret. They end with this object, and with this process however
// that ends; the last of them to end removes what they leave. Start it before the process has
// threads.
class NodeProcesses {
 public:
  // What a child does instead of serving a node: for measurements of the fabric alone. Calls
  // `ready` when it serves, and returns when `stop` is set.
  using Body = std::function<Status(Fabric& fabric, NodeId node, const std::atomic<bool>& stop,
                                    const std::function<void()>& ready)>;

  struct NodeSettings {
    uint32_t spin_us = 50;
    std::string data_dir;  // empty: rows are in memory alone
  };
  // `choice` says which fabric and how; the cluster's name or config is made here.
  static Result<std::unique_ptr<NodeProcesses>> start(FabricChoice choice, const Topology& topology,
                                                      const NodeSettings& settings,
                                                      const std::atomic<bool>& interrupted);
  static Result<std::unique_ptr<NodeProcesses>> start_with(FabricChoice choice,
                                                           const Topology& topology,
                                                           const Body& body,
                                                           const std::atomic<bool>& interrupted);
  ~NodeProcesses();
  NodeProcesses(const NodeProcesses&) = delete;
  NodeProcesses& operator=(const NodeProcesses&) = delete;

  Fabric& fabric() { return *fabric_; }
  // As if their host had crashed: what this object removes when it goes is lost.
  void kill_all();
  // kUnavailable names a node that has ended by itself.
  Status check_alive();

 private:
  struct Child {
    NodeId node;
    pid_t pid;
    int ready_fd;
  };

  NodeProcesses() = default;

  Status fork_node(NodeId node, const Body& body);
  Status await_ready(const Child& child, const std::atomic<bool>& interrupted) const;

  std::unique_ptr<LoopbackCluster> loopback_;  // unless on shared memory
  FabricChoice choice_;
  std::unique_ptr<Fabric> fabric_;
  std::vector<Child> children_;
};

}  // namespace rdmacc
