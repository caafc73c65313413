#pragma once
#include <memory>
#include <new>
#include <vector>

#include "engine/storage/wire/storage_messages.h"
#include "rdma/rpc/worker.h"

namespace rdmacc {

// A message of items for one node.
template <typename Message>
struct SentMessage {
  NodeId node = 0;
  Message message;           // without its items once it is under way
  std::vector<size_t> from;  // of items that were added with it: their places in the caller's list
  Rpc::Call call;
  Completion completion;
};

// Items for the nodes, cut into messages, of which some are under way while the caller makes the
// next ones: a bulk statement has a million items, and its nodes have as much to do with each as it
// has. From a coroutine; add() yields when many are under way. When memory runs out no more are
// sent, and finish() says so once those that were are answered. While some are under way it goes
// only with its worker, which is not stepped any more.
template <typename Message, typename OnReply>
class MessageStream {
 public:
  // Calls are `like` that one. `on_reply(const SentMessage&)` is called for each message that its
  // node has carried out, of one node in their order.
  MessageStream(Worker& worker, const Topology& topology, const Rpc::Call& like, uint64_t ctts,
                VerbCounters& counters, const OnReply& on_reply)
      : worker_(worker),
        topology_(topology),
        like_(like),
        ctts_(ctts),
        counters_(counters),
        on_reply_(on_reply) {}
  MessageStream(const MessageStream&) = delete;
  MessageStream& operator=(const MessageStream&) = delete;

  template <typename Item>
  void add(NodeId node, const Item& item) {
    unless_out_of_memory([&] { add_to(open_to(node), item); });
  }
  template <typename Item>
  void add(NodeId node, const Item& item, size_t from) {
    unless_out_of_memory([&] {
      std::unique_ptr<Sent>& open = open_to(node);
      open->from.push_back(from);
      add_to(open, item);
    });
  }

  // Sends the rest, and waits for all. The first error.
  Status finish() {
    for (std::unique_ptr<Sent>& open : open_) {
      unless_out_of_memory([&] {
        if (open != nullptr) send(open);
      });
    }
    if (!sent_.empty()) ++counters_.round_trips;
    while (answered_ < sent_.size()) {
      const Status taken = guard([&] { await_oldest(); });
      if (!taken.ok()) note(taken);
    }
    return status_;
  }

 private:
  using Sent = SentMessage<Message>;
  static constexpr size_t kUnderWayMax = 60;
  static_assert(kUnderWayMax < Rpc::kCallsPerPeer);

  template <typename Body>
  static Status guard(const Body& body) {
    try {
      body();
    } catch (const std::bad_alloc&) {
      return Status(Code::kNoSpace, "out of memory");
    }
    return Status();
  }
  template <typename Body>
  void unless_out_of_memory(const Body& body) {
    if (out_of_memory_) return;
    const Status done = guard(body);
    if (done.ok()) return;
    out_of_memory_ = true;
    note(done);
  }
  void note(const Status& status) {
    if (status_.ok()) status_ = status;
  }

  std::unique_ptr<Sent>& open_to(NodeId node) {
    CHECK(node < topology_.nodes);
    if (open_.size() <= node) open_.resize(node + 1);
    if (open_[node] == nullptr) {
      open_[node] = std::make_unique<Sent>();
      open_[node]->node = node;
      open_[node]->message.ctts = ctts_;
    }
    return open_[node];
  }
  template <typename Item>
  void add_to(std::unique_ptr<Sent>& open, const Item& item) {
    open->message.items.push_back(item);
    if (open->message.items.size() == kItemsPerMessage) send(open);
  }
  void send(std::unique_ptr<Sent>& open) {
    open->call = like_;
    open->call.to = topology_.worker_of(open->node);
    open->message.write(open->call.request);
    open->message.items = {};
    sent_.push_back(std::move(open));
    Sent& sent = *sent_.back();
    sent.completion.outstanding = 1;
    try {
      worker_.rpc().post(sent.call, sent.completion);
    } catch (const std::bad_alloc&) {
      static_cast<void>(sent_.back().release());  // the Rpc may know it
      sent_.pop_back();
      throw;
    }
    ++counters_.messages;
    while (sent_.size() - answered_ > kUnderWayMax) await_oldest();
  }
  void await_oldest() {
    Completion& completion = sent_[answered_]->completion;
    if (completion.outstanding > 0) worker_.scheduler().await(completion);
    const std::unique_ptr<const Sent> oldest = std::move(sent_[answered_++]);
    note(oldest->call.status);
    if (oldest->call.status.ok()) on_reply_(*oldest);
  }

  Worker& worker_;
  const Topology& topology_;
  const Rpc::Call like_;
  const uint64_t ctts_;
  VerbCounters& counters_;
  const OnReply& on_reply_;
  std::vector<std::unique_ptr<Sent>> open_;  // by node
  std::vector<std::unique_ptr<Sent>> sent_;  // nullptr: answered, as all before it
  size_t answered_ = 0;
  Status status_;
  bool out_of_memory_ = false;
};

}  // namespace rdmacc
