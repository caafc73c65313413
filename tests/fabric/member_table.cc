#include "tests/fabric/member_table.h"

#include <algorithm>
#include <chrono>

namespace rdmacc {

class MemberTable::Member : public Membership {
 public:
  Member(MemberTable& table, bool is_node, NodeId node)
      : table_(table), is_node_(is_node), node_(node) {}

  ~Member() override {
    const std::lock_guard<std::mutex> lock(table_.mutex_);
    if (is_node_) table_.nodes_.erase(node_);
  }

  const ClusterConfig& config() const override { return table_.config_; }

  Result<Claim> claim() override {
    const Topology& topology = config().topology;
    return remember(
        table_.claim(topology.node_workers(), topology.workers_max, "every worker slot is taken"));
  }

  Result<Claim> claim_node(uint16_t thread) override {
    const WorkerId worker = config().topology.worker_of(node_, thread);
    Result<Claim> claim =
        table_.claim(worker, static_cast<WorkerId>(worker + 1), "the node is running");
    if (!claim.ok()) return Status(Code::kUnavailable, claim.status().message());
    return remember(std::move(claim));
  }

  void leave(Claim claim) override {
    {
      const std::lock_guard<std::mutex> lock(table_.mutex_);
      std::erase_if(claims_, [&](const Claim& own) { return own.worker == claim.worker; });
    }
    table_.end(claim, State::kFree);
  }

  Result<Bytes> exchange(NodeId node, Topic topic, std::span<const std::byte> request,
                         uint32_t) override {
    Peer peer{"here", {}};
    Handler handler;
    {
      const std::lock_guard<std::mutex> lock(table_.mutex_);
      peer.claims = claims_;
      const auto found = table_.nodes_.find(node);
      if (found != table_.nodes_.end()) handler = found->second.handlers[topic];
    }
    if (!handler) return Status(Code::kUnavailable, "no such node");
    CHECK(request.size() <= kMessageBytesMax);
    return handler(peer, request);
  }

  void post(NodeId node, Topic topic, std::span<const std::byte> request, Answer answer) override {
    answer(exchange(node, topic, request, 0));
  }

  void set_handler(Topic topic, Handler handler) override {
    const std::lock_guard<std::mutex> lock(table_.mutex_);
    table_.nodes_[node_].handlers[topic] = std::move(handler);
  }
  void set_fence(Fence fence) override {
    const std::lock_guard<std::mutex> lock(table_.mutex_);
    table_.nodes_[node_].fence = std::move(fence);
  }

  uint32_t incarnation_of(WorkerId worker) override {
    const std::lock_guard<std::mutex> lock(table_.mutex_);
    const Slot& slot = table_.slots_[worker];
    return slot.state == State::kLive ? slot.incarnation : 0;
  }
  uint64_t version() const override {
    const std::lock_guard<std::mutex> lock(table_.mutex_);
    return table_.version_;
  }
  std::vector<WorkerId> departed() override {
    const std::lock_guard<std::mutex> lock(table_.mutex_);
    std::vector<WorkerId> dead;
    for (WorkerId w = config().topology.node_workers(); w < table_.slots_.size(); ++w) {
      if (table_.slots_[w].state == State::kDeparted) dead.push_back(w);
    }
    return dead;
  }
  void release(WorkerId worker) override {
    const std::lock_guard<std::mutex> lock(table_.mutex_);
    if (table_.slots_[worker].state == State::kDeparted) {
      table_.slots_[worker].state = State::kFree;
    }
  }

  uint64_t now_ns() override {
    static const auto epoch = std::chrono::steady_clock::now() - std::chrono::seconds(1);
    return static_cast<uint64_t>(
        std::chrono::nanoseconds(std::chrono::steady_clock::now() - epoch).count());
  }
  ClockBounds clock_bounds() const override {
    const uint64_t now_us = const_cast<Member*>(this)->now_ns() / 1000;
    return {now_us, now_us + 1};
  }
  bool poll() override { return false; }
  int wait_fd() const override { return -1; }

 private:
  Result<Claim> remember(Result<Claim> claim) {
    const std::lock_guard<std::mutex> lock(table_.mutex_);
    if (claim.ok()) claims_.push_back(*claim);
    return claim;
  }

  MemberTable& table_;
  const bool is_node_;
  const NodeId node_;
  std::vector<Claim> claims_;
};

MemberTable::MemberTable(ClusterConfig config)
    : config_(std::move(config)), slots_(config_.topology.workers_max) {}

Result<std::unique_ptr<Membership>> MemberTable::join() {
  return std::unique_ptr<Membership>(std::make_unique<Member>(*this, false, NodeId{0}));
}

Result<std::unique_ptr<Membership>> MemberTable::join_as_node(NodeId node) {
  return std::unique_ptr<Membership>(std::make_unique<Member>(*this, true, node));
}

Result<Membership::Claim> MemberTable::claim(WorkerId first, WorkerId end, const char* none) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (WorkerId w = first; w < end; ++w) {
    if (slots_[w].state != State::kFree) continue;
    slots_[w].state = State::kLive;
    ++version_;
    return Membership::Claim{w, ++slots_[w].incarnation};
  }
  return Status(Code::kNoWorkerSlot, none);
}

void MemberTable::kill(WorkerId worker) {
  Membership::Claim dead{worker, 0};
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    CHECK(slots_[worker].state == State::kLive);
    dead.incarnation = slots_[worker].incarnation;
  }
  end(dead, State::kDeparted);
}

// No member sees it any more, then every node fences it, and then it is what it is to be.
void MemberTable::end(Membership::Claim claim, State state) {
  std::vector<Membership::Fence> fences;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    Slot& slot = slots_[claim.worker];
    if (slot.incarnation != claim.incarnation || slot.state != State::kLive) return;
    slot.state = State::kEnding;
    ++version_;
    for (const auto& [node, side] : nodes_) {
      if (side.fence) fences.push_back(side.fence);
    }
  }
  for (const Membership::Fence& fence : fences) fence(claim);
  const std::lock_guard<std::mutex> lock(mutex_);
  slots_[claim.worker].state = state;
  ++version_;
}

}  // namespace rdmacc
