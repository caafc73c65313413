#pragma once
#include "engine/protocols/calvin/request.h"
#include "rdma/rpc/worker.h"

namespace rdmacc {

// A coordinator's way into the order: hands requests to the sequencer of its home node, which
// differs from coordinator to coordinator. One per worker, its thread alone.
class OrderClient : public OrderedCommit {
 public:
  OrderClient(Worker& worker, const Topology& topology) : worker_(worker), topology_(topology) {}

  // kNoSpace: larger than a request may be. When the home node is lost on the way, it waits until
  // that is back and all that it had sealed is executed, so that nothing of the request takes
  // place after this has returned, unless the outcome says that it may; what became of it stays
  // unknown.
  Status submit(const OrderedRequest& request, OrderedOutcome& outcome, bool& unknown,
                VerbCounters& counters) override;

 private:
  WorkerId home() const {
    return topology_.worker_of(static_cast<NodeId>(worker_.id() % topology_.nodes));
  }

  Worker& worker_;
  const Topology topology_;
};

}  // namespace rdmacc
