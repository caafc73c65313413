#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/node/node_thread.h"
#include "engine/protocols/calvin/order_client.h"
#include "engine/session.h"
#include "rdma/sim/sim_fabric.h"

namespace rdmacc {

// A simulated cluster whose nodes know a few procedures on one table, and the log of all that
// they executed.
class OrderCluster {
 public:
  enum : uint32_t { kPut = 1, kTransfer = 2, kCopy = 3, kNumber = 4, kStale = 5 };
  struct Logged {
    OrderedRequest request;
    NodeId home = 0;
    uint64_t stamp = 0;
  };
  using Rows = std::map<std::string, std::pair<std::string, uint64_t>>;  // row, stamp

  OrderCluster(uint64_t seed, NodeId nodes, const SimOptions& options = {});
  ~OrderCluster();

  SimFabric& fabric() { return *fabric_; }
  const Topology& topology() const { return topology_; }
  Worker& node_worker(NodeId node) { return nodes_[node]->worker(); }
  OrderArea area(NodeId node);
  Coordinator& add_coordinator();
  // Kills a node and starts it again after `down_ns`, as the simulation goes on.
  void restart_node(NodeId node, uint64_t down_ns);

  // Runs `task` in a coroutine of the coordinator; false if it does not end.
  [[nodiscard]] bool run(Coordinator& coordinator, const std::function<void()>& task);
  [[nodiscard]] bool run_until(const std::function<bool()>& done) {
    return fabric_->run_until(done, 20'000'000);
  }
  void create_table(Coordinator& coordinator);
  TableId table() const { return table_; }

  OrderedRequest request(uint32_t procedure, std::vector<std::string> reads,
                         std::vector<std::string> writes, std::string inputs, StagePlan plan) const;
  // Has the request executed for the coordinator, inside the gate.
  Status submit(Coordinator& coordinator, OrderedRequest request, OrderedOutcome& outcome,
                bool& unknown);
  // By position in the order.
  const std::map<uint64_t, Logged>& log() const { return log_; }
  // What the log comes to when one after the other is executed.
  Rows model() const;
  // What the cluster stores.
  Rows rows(Coordinator& coordinator);
  // Has the nodes execute a log of another cluster, as if their sequencers had agreed on it.
  void replay(Coordinator& coordinator, const std::map<uint64_t, Logged>& log);

 private:
  void open_node(NodeId node);

  Topology topology_;
  NodeOptions node_options_;
  ProcedureRegistry procedures_;
  std::unique_ptr<SimFabric> fabric_;
  std::vector<std::unique_ptr<NodeThread>> nodes_;
  std::vector<std::unique_ptr<Coordinator>> coordinators_;
  std::map<NodeId, uint64_t> back_at_ns_;
  std::map<uint64_t, Logged> log_;
  TableId table_ = kNoTable;
};

// A random request on `keys` keys.
OrderedRequest random_request(const OrderCluster& cluster, Random& random, uint32_t keys,
                              uint16_t code);

}  // namespace rdmacc
