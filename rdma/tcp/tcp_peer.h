#pragma once
#include <deque>
#include <memory>
#include <optional>

#include "rdma/tcp/tcp_cluster.h"
#include "rdma/tcp/tcp_connection.h"

namespace rdmacc {

// Answers of the control channel on their way to the endpoint that asked, from whichever thread.
struct TcpInbox {
  struct Ticket {
    WorkerId thread;
    uint64_t asked;  // which of the peer's questions
    Result<Membership::Bytes> answer;
  };
  std::mutex mutex;
  std::vector<Ticket> tickets;
  std::atomic<bool> any = false;
  std::atomic<bool> wake_requested = false;
  std::atomic<bool> sleeping = false;
  Descriptor event;  // of the endpoint's epoll

  void wake();
};

// What the peers of one node's threads share.
struct TcpWay {
  bool lost = false;      // a connection ended: the next ticket is asked for with that
  bool clearing = false;  // by one of them, now; the others wait for its answer
};

// What a peer needs of the endpoint whose it is.
struct TcpSelf {
  std::shared_ptr<TcpCluster> cluster;
  Membership::Claim claim;
  int epoll = -1;
  std::shared_ptr<TcpInbox> inbox;
};

// One worker's way to one thread of a node: the connection that it dials when it has something to
// say, the chains that are under way on it, and what becomes of them when it ends. One thread.
//
// Chains fail when the connection ends, when the node does not answer them for chain_us_max, or
// when it cannot be dialled for dial_us_max (see TcpOptions); at once when the node is known to be
// dead. A chain of WRITEs that is not waited for is posted again on the next connection instead: it
// must happen, and it comes before everything that is posted later. The node knows by its sequence
// what of it has happened already (tcp_progress.h).
class TcpPeer {
 public:
  TcpPeer(TcpSelf& self, TcpWay& way, NodeId node, uint16_t thread);

  void post(std::span<const Verb> chain, Completion* completion, uint64_t now_us);
  // False: no room now.
  bool send(std::span<const std::byte> datagram);

  using Deliver = std::function<void(std::span<const std::byte> datagram)>;
  // ---- From poll(); true if a chain completed or a datagram came.
  bool on_event(uint32_t events, const Deliver& deliver);
  void on_answer(uint64_t asked, const Result<Membership::Bytes>& answer);
  // Dials, gives up, notices what has gone; `next_us`: when to look again at the latest.
  bool tick(uint64_t now_us, uint64_t* next_us);
  void flush();
  // Ends the connection; true when this is news to the other threads of the node as well.
  bool take_loss() { return std::exchange(lost_, false); }
  // Ends what there is because of another thread of the same node.
  void lose_with_node();
  bool open() const { return state_ == State::kOpen; }
  // ---- When the worker leaves: completions are no longer delivered, and whether there are
  // chains that were not waited for and that are not known to have been carried out.
  void forget_completions();
  bool owes() const;
  // Posts a READ if none is under way, whose reply shows that everything before it is done.
  void confirm(uint64_t now_us);
  bool idle() const { return pending_.empty() && queued_.empty(); }
  bool unsent() const { return state_ == State::kOpen && connection_->unsent() > 0; }
  NodeId node() const { return node_; }

 private:
  enum class State : uint8_t { kIdle, kAsking, kConnecting, kGreeting, kOpen };
  struct Pending {
    uint64_t sequence;
    Completion* completion;  // nullptr: not waited for, or a later segment completes it
    uint32_t targets;        // of targets_ that its reply fills
    bool replied;            // it asks for a reply
    bool passive;            // its chain is not waited for
    uint64_t posted_us;
    std::vector<std::byte> again;  // the frame, if it is posted again
  };
  struct Target {
    void* local;
    uint32_t bytes;
  };

  void append_frame(std::span<const Verb> verbs, Completion* completion, bool passive,
                    uint64_t now_us);
  std::byte* extend(size_t bytes);
  void ask(uint64_t now_us);
  void dial(const TcpTicket& ticket);
  bool on_challenge();
  bool on_frames(const Deliver& deliver);
  bool on_reply(const TcpFrame& frame);
  void watch(bool fresh);
  void lose(const std::string& why);
  void fail_chains();
  bool self_gone() const;
  const Pending* first_waited() const;
  void end_question();
  void retry_later();

  TcpSelf& self_;
  TcpWay& way_;
  const NodeId node_;
  const uint16_t thread_;
  const WorkerId worker_;
  State state_ = State::kIdle;
  std::unique_ptr<TcpConnection> connection_;
  bool watching_write_ = false;
  uint32_t peer_incarnation_ = 0;
  TcpTicket ticket_{};
  TcpHello hello_{};

  std::vector<std::byte> queued_;  // frames for the next connection
  std::deque<Pending> pending_;
  std::deque<Target> targets_;
  std::vector<Verb> pieces_;
  uint64_t next_sequence_ = 1;
  uint64_t confirm_word_ = 0;

  bool lost_ = false;
  bool clearing_ = false;     // way_, with the question under way
  uint64_t asked_ = 0;        // number of the question under way
  uint64_t dialling_us_ = 0;  // since when; 0: not
  uint64_t retry_us_ = 0, back_off_us_ = 0;
};

}  // namespace rdmacc
