#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rdma/fabric/fabric.h"

// Which processes are in a cluster whose processes do not share memory, and the authenticated,
// encrypted and versioned channel over which they tell each other what a fabric needs to know
// (queue pair numbers, remote keys, addresses). tcp and verbs stand on it; nothing above `rdma/`
// sees it.
//
// Node 0 gives out worker ids and incarnations. A process is alive as long as its channel to node 0
// is (the kernel answers for it, also while it sleeps: keepalive and a user timeout on the socket).
// When that channel ends, node 0 has every living node fence the worker, and only then departed()
// names it (F6).

namespace rdmacc {

struct HostPort {
  std::string host;
  uint16_t port = 0;
};

struct ClusterConfig {
  std::string name;             // [A-Za-z0-9_-]{1,64}, part of every handshake
  std::vector<HostPort> nodes;  // where each node's channel listens, by node id
  std::string secret_file;      // mode 0600, at least 32 bytes: the members' pre-shared key
  Topology topology;            // nodes == nodes.size(); the same in every member
  std::string data_dir;         // where each node's host keeps its rows on disk; empty: nowhere
  uint64_t checkpoint_log_bytes = 256ull << 20;  // of a node's log, after which it is cut
  // Where a member tells of refusals and losses, a sentence each and not too often; may be called
  // on any thread. Empty: nowhere.
  std::function<void(const std::string& sentence)> log;
  // Asked now and then while a coordinator's claim() waits; true ends the wait (kUnavailable).
  std::function<bool()> interrupted;
};

class Membership {
 public:
  using Bytes = std::vector<std::byte>;

  // What a fabric talks about over the channel; a message is bounded by kMessageBytesMax.
  enum class Topic : uint16_t { kTcpEndpoint = 1, kVerbsQueuePair = 2 };
  static constexpr size_t kMessageBytesMax = 64 * 1024;

  struct Claim {
    WorkerId worker = kNoWorker;
    uint32_t incarnation = 0;  // never 0 once claimed
  };
  // The sender of a request: the channel has proven that it is a member and which claims are its
  // process's.
  struct Peer {
    std::string address;
    std::vector<Claim> claims;
  };
  // Answers a request of a peer, on the channel's own thread of a node. An error is sent as such.
  // It must not block, nor call anything here but incarnation_of(), version() and the clock.
  using Handler =
      std::function<Result<Bytes>(const Peer& peer, std::span<const std::byte> request)>;
  // Ends all access of `dead` to this node's memory before it returns, and that of the worker's
  // earlier incarnations. On the channel's thread, under the same rules; incarnation_of() does not
  // give the dead one any more.
  using Fence = std::function<void(Claim dead)>;
  // Called once, on whichever thread reads the channel, under the same rules: it notes the answer
  // and wakes the thread that waits for it. kUnavailable: the channel could not be made, or ended.
  using Answer = std::function<void(Result<Bytes> answer)>;

  // A coordinator's membership: connects to node 0, and to other nodes when it has something to
  // ask. Owns no thread: poll() and wait_fd() are called by the endpoints of the process, or by
  // no thread while it sleeps. Made and used after fork(); a child's copy only closes descriptors.
  static Result<std::unique_ptr<Membership>> open(const ClusterConfig& config);
  // A node's: listens at its address and serves on one thread of its own. Node 0 also is the
  // registrar, whose table of claims outlives its process. kUnavailable: the node is running on
  // this host.
  static Result<std::unique_ptr<Membership>> open_as_node(const ClusterConfig& config, NodeId node);
  // Removes what the members of the cluster leave on this host, when none of them is left.
  static void destroy(const ClusterConfig& config);
  // True once node 0 has been started on this host, until destroy().
  static bool exists(const ClusterConfig& config);

  virtual ~Membership() = default;
  virtual const ClusterConfig& config() const = 0;

  // kNoWorkerSlot: all are taken. kUnavailable: node 0 does not answer, does not know our secret,
  // or has lost the memory in which this object has had claims (another object may have new ones).
  // kInvalidArgument: it has another topology, or the node is running elsewhere.
  // They, leave() and exchange() wait, but not for ever (20 s for a node's claim, 5 s otherwise).
  virtual Result<Claim> claim() = 0;
  virtual Result<Claim> claim_node(uint16_t thread) = 0;
  // Ends its access everywhere, and then frees the id.
  virtual void leave(Claim claim) = 0;

  // Sends `request` to `node` and waits for its answer, at most until `timeout_ms` have passed.
  virtual Result<Bytes> exchange(NodeId node, Topic topic, std::span<const std::byte> request,
                                 uint32_t timeout_ms) = 0;
  // The same without waiting, for an endpoint whose poll() must not block; poll() of a coordinator
  // makes it go on. Is not answered any more once this object goes.
  virtual void post(NodeId node, Topic topic, std::span<const std::byte> request,
                    Answer answer) = 0;
  // Whether `node` is there and takes this process for a member, without a claim; as post(), it
  // does not wait. Node 0 gives the id of its memory, which is another one after that was
  // lost; others 0.
  using Pong = std::function<void(Result<uint64_t> memory_id)>;
  virtual void ping(NodeId node, Pong pong) {
    pong(Status(Code::kUnavailable, "node " + std::to_string(node) + " is not asked"));
  }
  // Nodes only; before the first claim_node().
  virtual void set_handler(Topic topic, Handler handler) = 0;
  virtual void set_fence(Fence fence) = 0;

  // As Endpoint::incarnation_of(): from what node 0 has told last. Thread-safe and cheap. A worker
  // of this process whose claim is gone, because node 0 took it for dead, has another one or 0.
  virtual uint32_t incarnation_of(WorkerId worker) = 0;
  // Counts every change that incarnation_of() may see.
  virtual uint64_t version() const = 0;
  // On node 0; empty elsewhere.
  virtual std::vector<WorkerId> departed() = 0;
  virtual void release(WorkerId worker) = 0;

  // Nanoseconds since the cluster's epoch, as node 0 counts them; never steps back, although an
  // estimate on another host may have been ahead.
  virtual uint64_t now_ns() = 0;
  virtual ClockBounds clock_bounds() const = 0;

  // Reads what has arrived on a coordinator's channels; true if there was anything.
  virtual bool poll() = 0;
  // To wait on beside a fabric's own descriptors; -1 on a node, whose thread does the work.
  virtual int wait_fd() const = 0;
};

}  // namespace rdmacc
