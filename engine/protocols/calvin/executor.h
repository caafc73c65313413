#pragma once
#include <deque>

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
using OrderObserver =
    std::function<void(const OrderedAt& at, const OrderedOutcome& outcome, bool effective)>;

// Executes the requests of one epoch at one node (RCC §4.6). Participants store part of the read or
// write set; the home and those of the write set execute, the others are passive. A participant
// tells every executing node its verdict and values; an executing node waits for all verdicts, so
// that all decide the same, and installs its local writes.
//
// Requests overlap as far as the order allows. What a request reads here is as it must be once the
// earlier requests that write the same keys here are installed: right then, perhaps long before
// its turn, its local part is judged and forwarded. So those that do not conflict all wait for the
// other nodes at the same time. They are decided and installed one after another in the order,
// which is what progress and the redo record speak of.
//
// What a restarted node repeats has the same effect once: its verdict is in its area from before
// the first write, others' verdicts arrive in its area, and the redo record says what is installed.
class OrderExecutor {
 public:
  // Returns when `arrived` says so; other coroutines run meanwhile.
  using WaitFor = std::function<void(const std::function<bool()>& arrived)>;

  OrderExecutor(OrderLink& link, const ProcedureRegistry* procedures, OrderObserver observer,
                WaitFor wait_for);

  // The requests of an epoch, in their order, of which the first `done` have been executed by an
  // earlier process.
  void begin(std::vector<OrderedAt> requests, uint32_t done);
  // The next of them. `status` and `outcome` are set where this node executes it.
  void execute(uint32_t index, Status& status, OrderedOutcome& outcome);
  // All of them are executed; returns when the others have what they need of this node.
  void end();
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
  // A request of the epoch that has not been executed.
  struct Underway {
    OrderedAt at;
    Shares shares;
    StageContext stage;
    std::unique_ptr<LocalPart> local;
  };
  // Gives for each request the number of those before it that must be installed here first.
  std::vector<uint32_t> dependencies() const;
  void judge_after(uint32_t installed);
  void judge(const OrderedAt& at, const Shares& shares, LocalPart& local);
  Status make_room(const OrderedAt& at, LocalPart& local);
  void note_forward(const OrderedAt& at, const Shares& shares);
  void forward();
  bool is_gone(TableId table, StageContext& stage);
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

  // Of the epoch under way.
  std::unique_ptr<VerbArena> arena_;
  std::deque<Underway> underway_;
  std::vector<std::vector<uint32_t>> judged_after_;  // by how many must be installed first
  EntriesWanted entries_wanted_;                     // by the inserts that were judged
  std::vector<OrderForward> forwards_;               // judged, and not on their way yet
  Completion forwarding_;
};

}  // namespace rdmacc
