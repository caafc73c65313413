#pragma once
#include <sys/epoll.h>

#include <array>
#include <deque>

#include "rdma/fabric/verb_delays.h"
#include "rdma/tcp/tcp_peer.h"
#include "rdma/tcp/tcp_server_connection.h"

namespace rdmacc {

// One worker's end of the tcp fabric. A coordinator dials the node threads that it talks to; a
// node's thread does so as well, admits others, and is what its own node's region
// belongs to: verbs of its own to it need no message. After fork() it is the parent's.
class TcpEndpoint : public Endpoint {
 public:
  // Of a coordinator; a node's thread also has an admission and connections from `listener`.
  TcpEndpoint(std::shared_ptr<TcpCluster> cluster, Membership::Claim claim,
              std::shared_ptr<TcpAdmission> admission = nullptr,
              Descriptor listener = Descriptor());
  ~TcpEndpoint() override;
  TcpEndpoint(const TcpEndpoint&) = delete;
  TcpEndpoint& operator=(const TcpEndpoint&) = delete;
  // Right after the constructor.
  Status start();

  void ring(NodeId node, std::span<const Verb> chain, Completion* completion) override;
  bool send(WorkerId to, std::span<const std::byte> datagram) override;
  void set_datagram_handler(DatagramHandler handler) override { handler_ = std::move(handler); }
  bool poll() override;
  void spin(uint64_t deadline_us) override;
  void wait(uint64_t deadline_us) override;
  void wake() override { self_.inbox->wake(); }
  uint64_t now_us() override { return now_ns() / 1000; }
  uint64_t now_ns() override { return cluster_->membership->now_ns(); }
  ClockBounds clock_bounds() override { return cluster_->membership->clock_bounds(); }
  Random& random() override { return random_; }
  Result<std::byte*> allocate_registered(size_t bytes) override;
  std::byte* local_region() override { return host_ != nullptr ? host_->region : nullptr; }
  Status back_region(uint64_t offset, uint64_t bytes) override;
  void expect_backing(uint64_t offset, uint64_t bytes) override;
  uint32_t incarnation_of(WorkerId worker) override {
    return cluster_->membership->incarnation_of(worker);
  }

 private:
  struct OwnChain {
    size_t first_verb;
    size_t verb_count;
    Completion* completion;
  };
  // A chain that pauses may hold up, whose verbs leave piece by piece.
  struct DelayedChain {
    NodeId node;
    std::vector<Verb> verbs;
    Completion* completion;
    size_t left = 0;  // so many of the verbs
  };
  struct Block {
    void* start;
    size_t bytes;
  };

  TcpPeer& peer_of(NodeId node, uint16_t thread);
  void post(NodeId node, std::span<const Verb> chain, Completion* completion);
  bool post_delayed();
  bool post_rest(DelayedChain& chain);
  void post_piece(DelayedChain& chain, size_t end);
  void post_delayed_passive();
  bool carry_out_own();
  bool take_answers();
  bool handle_events();
  void handle_event(uint64_t id, uint32_t events, bool* any);
  void accept_connections();
  bool drive_connection(size_t place, uint32_t events);
  void end_server_connection(size_t place, const std::string& why);
  void flush_all();
  bool tick();
  void spread_losses();
  bool deliver_all_passive();
  void deliver(WorkerId from, std::span<const std::byte> datagram);

  const std::shared_ptr<TcpCluster> cluster_;
  const int owner_pid_;
  TcpSelf self_;
  Descriptor epoll_;
  Random random_;
  DatagramHandler handler_;
  std::vector<std::unique_ptr<TcpPeer>> peers_;  // by the node thread's worker id
  std::vector<TcpPeer*> known_peers_;
  std::vector<TcpWay> ways_;  // by node
  // What spin() or wait() has found, for the next poll().
  static constexpr int kEventsPerPoll = 64;
  std::array<epoll_event, kEventsPerPoll> events_;
  int event_count_ = 0;
  uint64_t next_tick_us_ = 0;
  uint64_t seen_version_ = 0;
  std::vector<Block> blocks_;

  // Own node's verbs, in the order of their doorbells; two of them as on shm.
  std::vector<Verb> own_verbs_, own_verbs_now_;
  std::vector<OwnChain> own_chains_, own_chains_now_;

  std::shared_ptr<VerbDelays> delays_;  // nullptr: no such fault
  std::deque<DelayedChain> delayed_;    // in the order of their doorbells

  // A node's thread alone.
  std::shared_ptr<TcpAdmission> admission_;
  Descriptor listener_;
  std::unique_ptr<TcpServerConnection::Host> host_;
  std::vector<std::unique_ptr<TcpServerConnection>> server_connections_;  // by place; nullptr: free
  std::vector<size_t> server_connection_of_;                              // by worker: its place
};

}  // namespace rdmacc
