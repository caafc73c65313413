#pragma once
#include "engine/protocols/calvin/carry_out.h"
#include "engine/protocols/calvin/local_part.h"
#include "engine/protocols/calvin/procedure.h"

namespace rdmacc {

// A request at its place in the order.
struct OrderedAt {
  Position position;
  uint64_t stamp = 0;
  NodeId home = 0;  // whose batch has it
  const OrderedRequest* request = nullptr;
};

// Told of every request that a node has executed: at its home and where it writes, and once more
// when a restarted node repeats it. `effective`: it was not refused.
using OrderObserver = std::function<void(const OrderedAt& at, bool effective)>;

// Executes requests at one node, one after another in the order (RCC §4.6). Participants store
// part of the read or write set; the home and those of the write set execute, the others are
// passive. A participant tells every executing node its verdict and values and goes on; who
// executes waits for all verdicts, so that all decide the same, and installs its local writes.
//
// What a restarted node repeats has the same effect once: its verdict is in its area from before
// the first write, others' verdicts arrive in its area, and the redo record says what is installed.
class OrderExecutor {
 public:
  // Returns when `arrived` says so; other coroutines run meanwhile.
  using WaitFor = std::function<void(const std::function<bool()>& arrived)>;

  OrderExecutor(OrderLink& link, const ProcedureRegistry* procedures, OrderObserver observer,
                WaitFor wait_for);

  // `status` and `outcome` are set where this node executes the request.
  void execute(const OrderedAt& at, Status& status, OrderedOutcome& outcome);
  // Does this node write for the request?
  bool writes_here(const OrderedRequest& request) const {
    return shares_of(request).writes[link_.node];
  }
  // By node.
  std::vector<bool> writers_of(const OrderedRequest& request) const {
    return shares_of(request).writes;
  }
  // After a restart, before anything else: ends the install that the earlier process was in, and
  // takes its locks off.
  Status finish_redo(StorageService& storage);

 private:
  struct Shares {
    std::vector<bool> stores, writes;  // by node
  };
  Shares shares_of(const OrderedRequest& request) const;
  void judge(const OrderedAt& at, const Shares& shares, LocalPart& local);
  void make_room(LocalPart& local, const std::vector<OrderedWrite>& writes);
  void look_again(LocalPart& local);
  Status gather(const OrderedAt& at, const Shares& shares, OrderedOutcome& outcome);
  Status run_procedure(const OrderedRequest& request, OrderedOutcome& outcome) const;
  void apply(const OrderedAt& at, const std::vector<OrderedWrite>& writes, StageContext& stage,
             std::unique_ptr<LocalPart>& local);
  void pause();

  static constexpr uint32_t kLocationCacheEntries = 16 * 1024;
  OrderLink& link_;
  EngineContext engine_;
  const ProcedureRegistry* const procedures_;
  const OrderObserver observer_;
  const WaitFor wait_for_;
  VerbCounters counters_, allocation_counters_;
};

}  // namespace rdmacc
