#pragma once
#include <deque>

#include "rdma/fabric/fabric.h"
#include "rdma/verbs/verbs_memory.h"
#include "rdma/verbs/verbs_queue_pair.h"

namespace rdmacc {

// A worker's reliable connection to one node: its chains on their way to the send queue, in it, and
// to their completion. One thread's; the poller of the worker's completion queue hands over what
// is this connection's.
//
// Every verb is one work request, linked to the next, so that a chain is one doorbell. Only some
// ask for a completion: the last of a chain that is waited for, and one in a quarter of the queue,
// so that its slots are known to be free again. A completion says that all before it are
// done, passively acknowledged ones included. What finds no room waits here, in order.
//
// Order (F1): the device carries a queue pair's requests out in order, but a WRITE or an atomic may
// overtake a READ, and a WRITE an atomic, unless it is fenced. Within a chain that is done, but for
// an atomic that follows READs of other words: locking several records would take as many round
// trips. A READ of an earlier chain may see what a later chain of this worker writes.
//
// Soft-RoCE may miss that a fenced request's time has come (its requester looks for what is before
// it, and only then says that it waits), so there it is held back here until then.
//
// With several queue pairs one is in use at a time: the next one's turn comes when nothing is in
// flight, or after kChainsPerTurn chains, once they are done. So the order stays that of one.
//
// An error breaks the connection: all queue pairs go, so that nothing touches the buffers any
// more, and every chain that is waited for fails with unknown effects.
class VerbsConnection {
 public:
  struct Shape {
    NodeId node = 0;
    ibv_cq* completions = nullptr;
    uint64_t region_bytes = 0;
  };

  VerbsConnection(const VerbsDevice& device, VerbsMemory& memory, const VerbsOptions& options,
                  const Shape& shape);
  VerbsConnection(const VerbsConnection&) = delete;
  VerbsConnection& operator=(const VerbsConnection&) = delete;

  bool connected() const { return connected_; }
  // Makes new queue pairs and tells their addresses; forgets the former ones.
  Result<std::vector<VerbsQueuePairAddress>> prepare();
  Status connect(const VerbsAnswer& answer);
  // Gives up what prepare() made.
  void abandon();

  // Only while connected. What cannot be posted breaks the connection.
  void ring(std::span<const Verb> chain, Completion* completion);
  // Success up to the request that a completion names, or an error. Appends the completions to
  // signal.
  void complete(const ibv_wc& work, std::vector<Completion*>& done);
  // Posts what there is room for now.
  void post();
  // Chains that were lost with the connection, each to be told once.
  std::vector<Completion*> take_failed();

  // Nothing is waited for any more; what was rung is still carried out.
  void forget_waiters();

  bool idle() const { return queued_.empty() && posted_ == retired_; }
  bool anything_failed() const { return !failed_.empty(); }
  // Asks for a completion of all that was posted, by an 8-byte READ to `scratch`.
  void ask_for_completion(std::byte* scratch);
  // Something that was not waited for was lost, or may have been, when it broke.
  bool lost_unacknowledged() const { return lost_unacknowledged_; }
  // The reason of the last break.
  const std::string& complaint() const { return complaint_; }
  // How often it broke.
  uint64_t breaks() const { return breaks_; }

  // Which connection a completion belongs to.
  static NodeId node_of(const ibv_wc& work) { return static_cast<NodeId>(work.wr_id >> 48); }

 private:
  struct Request {
    ibv_send_wr work;
    ibv_sge local;
    Completion* completion;  // of the chain that ends here
    bool last;               // of its chain
    bool asks;               // for a completion in any case
    bool held;               // until all before it are done
  };
  struct InFlight {
    uint64_t end;  // the chain's last request, counted from 1
    Completion* completion;
  };

  static constexpr uint32_t kChainsPerTurn = 32;
  static constexpr uint32_t kInlineBytesWanted = 256;

  void add(const Verb& verb, bool fenced);
  void translate(const Verb& verb, uint64_t done, const VerbsDomainKey& domain, uint64_t bytes,
                 Request* request);
  const VerbsDomainKey& domain_at(uint64_t offset) const;
  bool next_turn();
  bool signalled(const Request& request);
  void post_linked(size_t count);
  void fail(const std::string& why);

  const VerbsDevice& device_;
  VerbsMemory& memory_;
  const VerbsOptions& options_;
  const Shape shape_;
  const uint32_t signal_every_;
  const bool holds_fenced_;

  bool connected_ = false;
  uint16_t generation_ = 0;  // of queue pairs; completions of former ones are dropped
  std::vector<VerbsHandle<ibv_qp>> queue_pairs_;
  std::vector<VerbsQueuePairAddress> addresses_;
  std::vector<VerbsDomainKey> domains_;
  uint32_t inline_bytes_ = 0;

  size_t turn_ = 0;  // whose queue pair's it is
  uint32_t chains_of_turn_ = 0;
  bool turn_ends_ = false;  // when all that is in flight is done
  std::deque<Request> queued_;
  std::deque<InFlight> in_flight_;
  uint64_t posted_ = 0, retired_ = 0, last_signalled_ = 0;  // requests, counted from 1
  uint64_t last_unacknowledged_ = 0;  // the last request of a chain that is not waited for
  bool lost_unacknowledged_ = false;
  std::vector<Completion*> failed_;
  std::string complaint_;
  uint64_t breaks_ = 0;
};

}  // namespace rdmacc
