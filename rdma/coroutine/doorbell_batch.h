#pragma once
#include <boost/container/small_vector.hpp>

#include "rdma/base/verb_counters.h"
#include "rdma/coroutine/scheduler.h"

// One round of a coroutine: the verbs that all records of a stage want next, gathered into one
// chain per node. execute() rings every doorbell and yields once until all chains are done, so
// requests to several nodes are outstanding together (DrTM+H §3.2, §3.3). Only the last verb of
// a chain is signalled. A batch of a few verbs takes no memory from the heap.

namespace rdmacc {

class DoorbellBatch {
 public:
  DoorbellBatch(Scheduler& scheduler, VerbCounters& counters)
      : scheduler_(scheduler), counters_(counters) {}

  void read(GlobalAddress from, void* local, size_t bytes, WordOrder order = WordOrder::kAscending);
  void write(GlobalAddress to, const void* local, size_t bytes);
  void compare_swap(GlobalAddress at, uint64_t expected, uint64_t desired, uint64_t* seen);
  void fetch_add(GlobalAddress at, uint64_t addend, uint64_t* seen);

  bool empty() const { return verbs_.empty(); }
  // Rings, yields until everything is done, and is empty again. kUnavailable when a node could
  // not be reached: which of its verbs took effect is unknown. No-op when empty.
  Status execute();
  // Rings without waiting. The local buffers must stay valid until the next execute() of any
  // batch to the same nodes has returned (chains to one node complete in order).
  void ring_unacknowledged();

 private:
  template <typename T>
  using Verbs = boost::container::small_vector<T, 8>;

  void add(NodeId node, const Verb& verb);
  // Counts the chains in `completion`, unless it is nullptr, and rings their doorbells.
  void ring(Completion* completion);
  void ring_by_node(Completion* completion);

  Scheduler& scheduler_;
  VerbCounters& counters_;
  Verbs<Verb> verbs_;    // of all nodes, in the order they came
  Verbs<NodeId> nodes_;  // of each verb
  NodeId node_min_ = 0, node_max_ = 0;
};

}  // namespace rdmacc
