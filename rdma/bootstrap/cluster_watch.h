#pragma once
#include <memory>
#include <string>
#include <vector>

#include "rdma/bootstrap/membership.h"

namespace rdmacc {

// Whether the nodes of a cluster answer, for a process that is no worker of it: it holds a channel
// to each of them and asks now and then. One thread; owns none.
class ClusterWatch {
 public:
  struct NodeNews {
    bool known = false;  // false: it was asked, or will be, for the first time
    bool answers = false;
    std::string why;  // when it does not
  };

  // kInvalidArgument: the config or the secret is not as it must be.
  static Result<std::unique_ptr<ClusterWatch>> open(const ClusterConfig& config);

  // Reads what has come and asks nodes not asked for half a second. Never waits.
  void step();
  const NodeNews& node(NodeId node) const { return nodes_[node].news; }
  // Of node 0's memory when it answered last (Membership::ping()); 0: it never has.
  uint64_t memory_id() const { return memory_id_; }
  // How often it has answered.
  uint64_t answers() const { return answers_; }

 private:
  static constexpr uint64_t kAskNs = 500'000'000;
  static constexpr uint64_t kSilenceNs = 3'000'000'000;

  struct WatchedNode {
    NodeNews news;
    bool asked = false;
    uint64_t asked_ns = 0;
  };

  explicit ClusterWatch(std::unique_ptr<Membership> membership);
  void on_pong(NodeId node, const Result<uint64_t>& memory_id);

  std::vector<WatchedNode> nodes_;
  uint64_t memory_id_ = 0, answers_ = 0;
  const std::unique_ptr<Membership> membership_;  // its answers come to what is above
};

}  // namespace rdmacc
