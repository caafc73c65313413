#pragma once
#include <atomic>
#include <deque>
#include <mutex>

#include "rdma/verbs/verbs_connection.h"
#include "rdma/verbs/verbs_datagrams.h"
#include "rdma/verbs/verbs_server.h"

namespace rdmacc {

// What a VerbsFabric and its endpoints share within one process. The membership's thread uses the
// server, so it goes first.
struct VerbsCluster {
  VerbsOptions options;
  std::unique_ptr<VerbsServer> server;  // nullptr on a coordinator
  NodeId node = 0;                      // on a node
  std::unique_ptr<Membership> membership;
  std::atomic<uint64_t> breaks{0};  // of connections that were made here

  const Topology& topology() const { return membership->config().topology; }
  bool serves(NodeId other) const { return server != nullptr && node == other; }
};

// Answers on their way from the membership's thread to an endpoint's, which they wake. It outlives
// the endpoint as long as an answer may come.
class VerbsMailbox {
 public:
  struct ControlMessage {
    NodeId from;
    uint32_t request;
    Result<Membership::Bytes> answer;
  };

  explicit VerbsMailbox(int wake_fd) : wake_fd_(wake_fd) {}
  ~VerbsMailbox();
  VerbsMailbox(const VerbsMailbox&) = delete;
  VerbsMailbox& operator=(const VerbsMailbox&) = delete;

  int wake_fd() const { return wake_fd_; }
  void put(ControlMessage message);
  bool empty() const { return !any_.load(std::memory_order_acquire); }
  std::vector<ControlMessage> take();

 private:
  const int wake_fd_;
  std::atomic<bool> any_{false};
  std::mutex mutex_;
  std::vector<ControlMessage> messages_;
};

// One worker's end of the verbs fabric: a device of its own, a connection to every node, one
// completion queue for all of them, and one for its datagrams. After fork() it belongs to the
// parent: a child must not use it, and its destructor there does nothing.
class VerbsEndpoint : public Endpoint {
 public:
  static Result<std::unique_ptr<VerbsEndpoint>> open(std::shared_ptr<VerbsCluster> cluster,
                                                     Membership::Claim claim);
  // What is not waited for is given time to happen: it may be the release of a lock.
  ~VerbsEndpoint() override;

  void ring(NodeId node, std::span<const Verb> chain, Completion* completion) override;
  bool send(WorkerId to, std::span<const std::byte> datagram) override;
  void set_datagram_handler(DatagramHandler handler) override { handler_ = std::move(handler); }
  bool poll() override;
  void wait(uint64_t deadline_us) override;
  void wake() override;
  uint64_t now_us() override { return now_ns() / 1000; }
  uint64_t now_ns() override { return cluster_->membership->now_ns(); }
  ClockBounds clock_bounds() override { return cluster_->membership->clock_bounds(); }
  Random& random() override { return random_; }
  Result<std::byte*> allocate_registered(size_t bytes) override { return memory_.allocate(bytes); }
  std::byte* local_region() override;
  Status back_region(uint64_t offset, uint64_t bytes) override;
  uint32_t incarnation_of(WorkerId worker) override {
    return cluster_->membership->incarnation_of(worker);
  }

 private:
  struct Chain {
    std::vector<Verb> verbs;
    Completion* completion;
  };
  // A node, its connection, and what is under way to get one. Chains that are rung meanwhile wait.
  struct Target {
    std::unique_ptr<VerbsConnection> connection;
    uint32_t asked = 0;       // number of the request that is under way; 0: none
    bool connecting = false;  // it is for a connection
    uint64_t asked_until_us = 0;
    uint64_t next_try_us = 0, pause_us = 0;
    std::deque<Chain> waiting;
    bool lost = false;  // a chain that is not waited for, before there was a connection
    uint64_t breaks_told = 0;
  };

  VerbsEndpoint(std::shared_ptr<VerbsCluster> cluster, Membership::Claim claim,
                std::unique_ptr<VerbsDevice> device);
  Status set_up();
  bool is_node() const { return cluster_->topology().is_node_worker(worker_); }
  uint16_t thread() const {
    return static_cast<uint16_t>(worker_ % cluster_->topology().threads_per_node);
  }

  // verbs_connection_setup.cc
  bool alive(NodeId node);
  bool due(Target& target);
  bool start_connecting(NodeId node);
  Status connect_now(NodeId node);
  void post_request(NodeId node, const Membership::Bytes& request);
  Membership::Bytes request_to(NodeId node, std::vector<VerbsQueuePairAddress> queue_pairs) const;
  Status take_answer(NodeId node, bool connecting, const Result<Membership::Bytes>& bytes);
  void end_asking(NodeId node, const Status& status);
  bool read_answers();
  // Is the address of the worker's present incarnation known? If not, its node is asked, if `ask`.
  bool know_peer(WorkerId worker, bool ask);

  bool poll_connections();
  bool poll_datagrams();
  bool tell_failed();
  void deliver(const VerbsDatagrams::Arrival& arrival);
  // False if what is not waited for may not have happened.
  bool drain();
  bool anything_to_do() const;
  bool arm_and_look();
  void sleep(uint64_t us);

  static constexpr int kBatch = 32;

  const std::shared_ptr<VerbsCluster> cluster_;
  const pid_t process_;
  const std::unique_ptr<VerbsDevice> device_;
  Random random_;
  DatagramHandler handler_;
  VerbsMemory memory_;
  VerbsHandle<ibv_comp_channel> channel_;
  VerbsHandle<ibv_cq> completions_;
  VerbsDatagrams datagrams_;
  std::vector<Target> targets_;                // by node
  std::vector<Completion*> failed_;            // to be told at the next poll()
  std::vector<Completion*> done_;              // while poll() tells
  std::vector<ibv_wc> seen_, seen_datagrams_;  // by wait(), for the next poll()
  std::byte* scratch_ = nullptr;
  std::shared_ptr<VerbsMailbox> mailbox_;
  uint32_t last_request_ = 0;
  uint32_t asking_ = 0;  // requests under way
  uint64_t membership_polled_us_ = 0;
  uint32_t polls_ = 0;
};

}  // namespace rdmacc
