#pragma once
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "rdma/bootstrap/cluster_clock.h"
#include "rdma/bootstrap/paced_log.h"
#include "rdma/bootstrap/registrar.h"
#include "rdma/bootstrap/secure_channel.h"

namespace rdmacc {

// Membership of one process. All of it is under one mutex; the callbacks are called with it held.
// member.cc has the public face and the event loop, member_outgoing.cc the channels that this
// member opens, member_incoming.cc those that others open to a node, and the answers.
class Member final : public Membership {
 public:
  // node == kNoNode: a coordinator's.
  static Result<std::unique_ptr<Membership>> make(const ClusterConfig& config, NodeId node);
  ~Member() override;

  const ClusterConfig& config() const override { return config_; }
  Result<Claim> claim() override { return claim_as(kNoThread); }
  Result<Claim> claim_node(uint16_t thread) override;
  void leave(Claim claim) override;
  Result<Bytes> exchange(NodeId node, Topic topic, std::span<const std::byte> request,
                         uint32_t timeout_ms) override;
  void post(NodeId node, Topic topic, std::span<const std::byte> request, Answer answer) override;
  void ping(NodeId node, Pong pong) override;
  void set_handler(Topic topic, Handler handler) override;
  void set_fence(Fence fence) override;
  uint32_t incarnation_of(WorkerId worker) override;
  uint64_t version() const override { return version_.load(std::memory_order_acquire); }
  std::vector<WorkerId> departed() override;
  void release(WorkerId worker) override;
  uint64_t now_ns() override { return clock_.now_ns(); }
  ClockBounds clock_bounds() const override { return clock_.bounds(); }
  bool poll() override;
  int wait_fd() const override { return thread_.joinable() ? -1 : epoll_.get(); }

 private:
  // A channel to `node`, made when there is something to ask (that to node 0: always again).
  struct Outgoing {
    std::unique_ptr<SecureChannel> channel;
    bool greeted = false;    // its HelloReply has come
    bool presented = false;  // it knows all of our claims
    bool interested_in_write = false;
    uint32_t next_request = 1;
    uint64_t asked_ns = 0;     // when the hello was sent
    uint64_t deadline_ns = 0;  // of the greeting
    uint64_t retry_at_ns = 0;
    uint64_t back_off_ns = 0;
    std::string why;  // the last one ended
    Code why_code = Code::kUnavailable;
    std::map<uint32_t, Answer> asked;
    std::vector<ClaimProof> greeted_with;
  };
  // The sender of a request: a process behind a channel, or this one itself.
  struct Requester {
    Registrar::Owner owner = 0;
    NodeId node = kNoNode;
    ProcessIdentity process;
    std::string address;
    std::vector<ClaimProof> presented;
  };
  struct Incoming {
    std::unique_ptr<SecureChannel> channel;
    Requester requester;
    bool greeted = false;
    bool interested_in_write = false;
    uint64_t deadline_ns = 0;    // of the greeting
    uint64_t table_version = 0;  // told last
    bool table_unread = false;   // and not acknowledged yet
    uint32_t next_request = 1;
    std::map<uint32_t, Claim> fences_asked;
  };
  using Respond = std::function<void(Result<Bytes>)>;
  // A leave, or a claim of a node's thread, that waits until a worker is fenced everywhere.
  struct Deferred {
    Registrar::Owner owner;
    ClaimProof leaving;  // or kNoWorker: a claim
    uint16_t thread = 0;
    uint64_t deadline_ns = 0;
    Respond respond;
  };

  Member(const ClusterConfig& config, NodeId node);
  Status start();
  bool is_node() const { return own_node_ != kNoNode; }
  void serve();
  void wake_thread();

  // ---- member.cc, with the mutex held
  bool pump_locked(std::span<const uint64_t> ready);
  bool drive_queued(uint64_t now_ns);
  void watch(SecureChannel& channel, uint64_t id, bool fresh, bool* interested_in_write);
  void set_incarnation(WorkerId worker, uint32_t incarnation, const RandomToken* token);
  // Asks and waits; not with the mutex held, as the three below.
  Result<Bytes> call(NodeId node, ControlType type, std::span<const std::byte> payload,
                     uint64_t timeout_ns);
  bool interrupted() const { return config_.interrupted && config_.interrupted(); }
  bool wait_until_ns(uint64_t deadline_ns, const std::function<bool()>& done);
  void pump_once(int timeout_ms);

  // ---- member_claims.cc
  Result<Claim> claim_as(uint16_t thread);
  Result<Claim> ask_for_claim(uint16_t thread, uint64_t deadline_ns);
  // With the mutex held:
  Result<Claim> take_claim(const Result<Bytes>& answer);
  void erase_claim(Claim claim);

  // ---- member_outgoing.cc, with the mutex held
  void ask(NodeId node, ControlType type, std::span<const std::byte> payload, Answer answer);
  bool connect_to(NodeId node, uint64_t now_ns);
  bool drive_outgoing(NodeId node, uint64_t now_ns);
  void on_outgoing_frame(NodeId node, const ControlFrame& frame);
  void on_hello_reply(NodeId node, const ControlFrame& frame);
  void on_table(const ControlFrame& frame);
  void lose_outgoing(NodeId node, uint64_t now_ns);
  void refresh_clock(uint64_t now_ns);
  static Status memory_lost();
  void forget_memory();

  // ---- member_incoming.cc
  void accept_all(uint64_t now_ns);
  bool drive_incoming(uint64_t id, uint64_t now_ns);
  void on_incoming_frame(Incoming& incoming, const ControlFrame& frame);
  void on_hello(Incoming& incoming, const ControlFrame& frame);
  void handle(Requester& requester, ControlType type, std::span<const std::byte> payload,
              const Respond& respond);
  void handle_claim(Requester& requester, uint16_t thread, const Respond& respond);
  Result<Bytes> handle_exchange(const Requester& requester, std::span<const std::byte> payload);
  void lose_incoming(uint64_t id);
  // Tells all members what has changed, asks for fences, answers what has waited for them.
  void settle(uint64_t now_ns);
  void tell_tables();
  ClockReading read_clock();

  const ClusterConfig config_;
  const NodeId own_node_;
  const ProcessIdentity process_ = ProcessIdentity::self();
  const int owner_pid_;
  std::vector<SocketAddress> addresses_;
  Descriptor lock_, listener_, epoll_, nudge_;
  std::unique_ptr<TlsContext> tls_;
  ClusterClock clock_;
  PacedLog log_;
  std::atomic<bool> stop_ = false;
  std::atomic<uint64_t> version_ = 1;
  std::vector<std::atomic<uint32_t>> incarnations_;  // by worker

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::vector<RandomToken> tokens_;  // by worker; on nodes
  std::vector<Outgoing> outgoing_;   // by node
  std::map<uint64_t, Incoming> incoming_;
  uint64_t next_incoming_;
  Requester self_;
  std::unique_ptr<Registrar> registrar_;  // on node 0
  std::vector<Deferred> deferred_;
  std::vector<ClaimProof> claims_;  // of this process
  bool has_claimed_ = false;        // also when there are none any more
  bool memory_lost_ = false;        // in which it has: nothing here is a member any more
  std::map<Topic, Handler> handlers_;
  Fence fence_;
  uint64_t clock_asked_ns_ = 0;

  std::thread thread_;
};

}  // namespace rdmacc
