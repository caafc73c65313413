#include "rdma/bootstrap/cluster_watch.h"

#include "rdma/bootstrap/claim_table.h"

namespace rdmacc {

ClusterWatch::ClusterWatch(std::unique_ptr<Membership> membership)
    : nodes_(membership->config().nodes.size()), membership_(std::move(membership)) {}

Result<std::unique_ptr<ClusterWatch>> ClusterWatch::open(const ClusterConfig& config) {
  Result<std::unique_ptr<Membership>> membership = Membership::open(config);
  if (!membership.ok()) return membership.status();
  return std::unique_ptr<ClusterWatch>(new ClusterWatch(std::move(membership.value())));
}

void ClusterWatch::on_pong(NodeId node, const Result<uint64_t>& memory_id) {
  WatchedNode& watched = nodes_[node];
  CHECK(watched.asked);  // one answer to each question
  watched.asked = false;
  watched.news = {true, memory_id.ok(), memory_id.status().message()};
  if (node != 0 || !memory_id.ok()) return;
  memory_id_ = memory_id.value();
  ++answers_;
}

void ClusterWatch::step() {
  membership_->poll();
  for (NodeId node = 0; node < nodes_.size(); ++node) {
    WatchedNode& watched = nodes_[node];
    const uint64_t now_ns = monotonic_now_ns();
    if (watched.asked && now_ns - watched.asked_ns > kSilenceNs) {
      watched.news = {true, false, "it does not answer"};
    }
    if (watched.asked || now_ns - watched.asked_ns < kAskNs) continue;
    watched.asked = true;
    watched.asked_ns = now_ns;
    membership_->ping(node, [this, node](Result<uint64_t> memory_id) { on_pong(node, memory_id); });
  }
  membership_->poll();
}

}  // namespace rdmacc
