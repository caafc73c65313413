#pragma once
#include <boost/container/small_vector.hpp>

#include "engine/txn/driver/engine_context.h"
#include "engine/txn/remote/stage_message.h"
#include "rdma/base/check.h"

namespace rdmacc {

// The requests of one stage by RPC, under construction, sent, and read: one open one per node, and
// as many as its items need. Their memory is used again by the next ones of the worker.
class StageRequests {
 public:
  // A request is closed once it has this many bytes or items.
  static constexpr size_t kBytesMax = 512 * 1024;
  static constexpr uint32_t kItemsMax = 2048;

  StageRequests(StageContext& context, StageWork work) : context_(context), work_(work) {}
  ~StageRequests() {
    for (Rpc::Call& call : calls_) {
      context_.engine.messages.give_back(std::move(call.request));
      context_.engine.messages.give_back(std::move(call.reply));
    }
  }
  StageRequests(const StageRequests&) = delete;
  StageRequests& operator=(const StageRequests&) = delete;

  // Where to write the next item for `node`; `item` is remembered for the answer.
  MessageWriter add(NodeId node, size_t item, uint32_t items_max = kItemsMax) {
    CHECK(node < context_.engine.topology.nodes);
    size_t call = calls_.size();
    while (call > 0 && calls_[call - 1].to != worker_of(node)) call--;
    if (call == 0 || calls_[call - 1].request.size() > kBytesMax ||
        counts_[call - 1] >= items_max) {
      begin(node);
      call = calls_.size();
    }
    counts_[call - 1]++;
    items_.push_back({call - 1, item});
    return MessageWriter(calls_[call - 1].request);
  }

  void send() {
    for (size_t i = 0; i < calls_.size(); i++) {
      set_count(calls_[i].request, counts_[i]);
    }
    if (calls_.empty()) return;
    context_.engine.worker.rpc().call_all({calls_.data(), calls_.size()}, context_.counters);
  }

  // Gives each answer's reader, positioned behind the status, with the items it is about. All
  // answers are read, errors or not: they say what was locked. The first error is given back.
  template <typename ReadItem, typename Lost>
  Status read(ReadItem read_item, Lost lost) {
    Status result;
    for (size_t i = 0; i < calls_.size(); i++) {
      Status status = calls_[i].status;
      if (status.ok()) {
        MessageReader in(calls_[i].reply);
        status = read_status(in);
        context_.engine.clock.observe(in.u64());  // what the owner has seen
        for (const auto& [call, item] : items_) {
          if (call != i || read_item(in, item)) continue;
          status = Status(Code::kCorrupt, "a stage's answer does not parse");
          break;
        }
      } else {
        for (const auto& [call, item] : items_) {
          if (call == i) lost(item);
        }
        // Whatever kept the answer from the coordinator, the owner may have locked before.
        if (status.code() == Code::kUnavailable || must_be_known()) {
          status = aborted(AbortReason::kNodeRestarted);
        }
      }
      if (status.code() == Code::kCorrupt && must_be_known()) {
        status = aborted(AbortReason::kNodeRestarted);
      }
      // A lost node outranks conflicts: what it locked is not known and must be looked for.
      const bool lost_node = reason_of(status) == AbortReason::kNodeRestarted;
      if (!status.ok() && (result.ok() || lost_node)) result = status;
    }
    return result;
  }

 private:
  struct Item {
    size_t call;
    size_t number;
  };

  // What locks, or commits: what the owner has done cannot be left open.
  bool must_be_known() const {
    return work_ == StageWork::kFind || work_ == StageWork::kScan || work_ == StageWork::kLock ||
           work_ == StageWork::kEnd;
  }
  WorkerId worker_of(NodeId node) const {
    // Only thread 0 of a node has its storage, which is asked for all locks of a transaction.
    const uint16_t thread = work_ == StageWork::kReleaseCtts ? 0 : context_.engine.worker.id();
    return context_.engine.topology.worker_of(node, thread);
  }
  void begin(NodeId node) {
    Rpc::Call& call = calls_.emplace_back();
    counts_.push_back(0);
    call.to = worker_of(node);
    call.method = kMethodStage;
    call.cancelled = context_.cancelled;
    call.request = context_.engine.messages.take();
    call.reply = context_.engine.messages.take();
    MessageWriter out(call.request);
    write_header(out, StageHeader{work_, context_.rules.protocol, context_.rules.lock_mode,
                                  context_.stamps, 0});
  }

  StageContext& context_;
  const StageWork work_;
  boost::container::small_vector<Rpc::Call, 4> calls_;
  boost::container::small_vector<uint32_t, 4> counts_;  // items of each call
  boost::container::small_vector<Item, 16> items_;      // in the order in which they were added
};

}  // namespace rdmacc
