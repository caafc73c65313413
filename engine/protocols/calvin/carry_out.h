#pragma once
#include "engine/protocols/calvin/order_area.h"
#include "engine/storage/wire/messages.h"
#include "engine/txn/rule/stage.h"
#include "rdma/rpc/worker.h"

// How one node's bytes get into another's order area: the one place of this protocol that knows
// primitives. One-sided, the sender WRITEs the block and then its tag; by RPC it sends the block
// and the receiver stores it the same way. Either way each call ends when every receiver has it: a
// node that is down is tried again until it is back, since nothing can go on without it.

namespace rdmacc {

constexpr MethodId kMethodOrderDeliver = 40;

struct OrderLink {
  Worker& worker;
  const Topology topology;
  const OrderArea& area;
  const NodeId node;  // this one

  OrderLink(Worker& of_worker, const Topology& of_topology, const OrderArea& of_area)
      : worker(of_worker),
        topology(of_topology),
        area(of_area),
        node(static_cast<NodeId>(of_worker.id() / of_topology.threads_per_node)) {}
};

// The own batch of `epoch`, as it stands in the own area, to all other nodes.
void carry_out_broadcast(OrderLink& link, StagePlan plan, uint64_t epoch);
// The own verdicts for some requests of one epoch, as they stand in the own area.
struct OrderForward {
  Position position;
  StagePlan plan;
  std::vector<NodeId> to;
};
void carry_out_forward(OrderLink& link, std::span<const OrderForward> forwards);
// How far this node is, to a node that waits for it. The latest one wins.
void carry_out_progress(OrderLink& link, StagePlan plan, NodeId to);

// Stores what other nodes send by RPC; `arrived` is called after each.
void serve_deliveries(OrderLink& link, std::function<void()> arrived);

}  // namespace rdmacc
