#pragma once
#include <deque>
#include <map>
#include <memory>
#include <set>

#include "engine/log/caller_fence.h"
#include "engine/protocols/calvin/executor.h"

namespace rdmacc {

constexpr MethodId kMethodOrderSubmit = 41;
constexpr MethodId kMethodOrderNudge = 42;
constexpr MethodId kMethodOrderSettle = 43;
constexpr MethodId kMethodOrderProgress = 44;

struct SequencerOptions {
  const ProcedureRegistry* procedures = nullptr;  // nullptr: none
  OrderObserver observer;                         // empty: not observed
  std::string refuse;                             // not empty: no transactions, and why
};

// Sequencer and scheduler of one node (RCC §4.6), on its thread 0. Coordinators hand requests to
// the sequencer of their home node; the nodes' sequencers agree on the order by epochs:
//
//   seal       the requests that have arrived become this node's batch of epoch e, in its area
//   broadcast  to all nodes; a node that receives a batch of e seals its own, empty or not
//   execute    once all batches of e are here, in the order of nodes and places
//
//  S1  A node seals e + 1 only when it has executed e. So when all batches of e + 1 are somewhere,
//      every node has executed e, and two batches and one epoch's forwarded values per sender are
//      all that an area has to hold.
//  S2  A batch does not change once it was sent: it is in the own area before, and a node that
//      starts again sends what it finds there.
//  S3  There is no timer: an epoch begins with a request, and a node without requests sleeps.
//  S4  A node that is down stops the order, since its batch is lacking; it goes on, from the areas
//      alone, when the node is back.
class Sequencer {
 public:
  // `storage` and `fence` are the node's and outlive it, as do the procedures.
  Sequencer(Worker& worker, const Topology& topology, StorageService& storage, CallerFence& fence,
            SequencerOptions options);
  Sequencer(const Sequencer&) = delete;
  Sequencer& operator=(const Sequencer&) = delete;

  // Registers its methods, and goes on with what an earlier process of the node has begun.
  void serve();

  // For changes of the index by the node itself: waits until this node has no epoch sealed and not
  // executed, and seals none until resume(). False: not by `deadline_us`, and there is nothing to
  // resume. Several coroutines may have it paused.
  bool pause(uint64_t deadline_us = UINT64_MAX);
  void resume();

 private:
  struct Pending {
    RequestBytes bytes;
    OrderedRequest request;
    Status status;
    OrderedOutcome outcome;
    Position position;
    Completion executed;
  };
  struct Batch {
    uint64_t word = 0;  // time and plan
    std::vector<OrderedRequest> requests;
  };

  Status submit(WorkerId from, std::span<const std::byte> bytes, Rpc::Bytes& reply);
  Status settle();
  uint64_t ask_progress(NodeId node);
  void wake();
  void run();
  void recover();
  void hold_callers(uint64_t epoch);

  bool sealed(uint64_t epoch) const;
  bool may_begin(uint64_t epoch) const;
  bool batch_from(NodeId node, uint64_t epoch) const;
  bool all_batches(uint64_t epoch) const;
  void seal(uint64_t epoch);
  uint64_t time_of_batch() const;
  StagePlan plan_of_batch(uint64_t epoch) const;
  StagePlan plan_in_batch_of(NodeId node, uint64_t epoch) const;
  void broadcast(uint64_t epoch, bool after_sleep);
  void nudge(uint64_t epoch);
  void execute(uint64_t epoch);
  void execute_one(const OrderedAt& at);
  Batch load_batch(NodeId node, uint64_t epoch) const;
  void tell_progress(NodeId node, StagePlan plan);
  void wait_for(const std::function<bool()>& arrived);
  void give_up_waiting();
  uint64_t now_us() const { return worker_.endpoint().now_us(); }

  Worker& worker_;
  const Topology topology_;
  StorageService& storage_;
  CallerFence& fence_;
  const OwnedRegion region_;
  const OrderArea area_;
  OrderLink link_;
  OrderExecutor executor_;
  const std::string refuse_;

  // By node: the epoch whose batch is known to be whole, so that it is not looked through again.
  mutable std::vector<uint64_t> whole_;
  std::deque<std::shared_ptr<Pending>> pending_;   // not sealed
  std::deque<std::shared_ptr<Pending>> in_batch_;  // sealed by this process, in batch order
  bool recovered_ = false;
  bool running_ = false;
  uint32_t pauses_ = 0;  // coroutines that have it paused
  struct Telling {
    StagePlan plan;
    bool again = false;
  };
  std::map<NodeId, Telling> telling_;  // progress that is being told
};

}  // namespace rdmacc
