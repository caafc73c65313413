#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rdma/fabric.h"

// Who is in a cluster whose processes do not share memory, and the authenticated, encrypted and
// versioned channel over which they tell each other what a fabric needs to know (queue pair
// numbers, remote keys, addresses). tcp and verbs stand on it; nothing above `rdma/` sees it.
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
  // Who asks: the channel has proven that it is a member and which claims are its process's.
  struct Peer {
    std::string address;
    std::vector<Claim> claims;
  };
  // Answers a request of a peer, on the channel's own thread of a node. An error is sent as such.
  using Handler =
      std::function<Result<Bytes>(const Peer& peer, std::span<const std::byte> request)>;
  // Ends all access of `dead` to this node's memory before it returns. On the channel's thread.
  using Fence = std::function<void(Claim dead)>;

  // A coordinator's membership: connects to every node that is up. Owns no thread: poll() and
  // wait_fd() are called by the endpoint of the process, or by nobody while it sleeps.
  static Result<std::unique_ptr<Membership>> open(const ClusterConfig& config);
  // A node's: listens at its address and serves on one thread of its own. Node 0 also is the
  // registrar, whose table of claims outlives its process.
  static Result<std::unique_ptr<Membership>> open_as_node(const ClusterConfig& config, NodeId node);

  virtual ~Membership() = default;
  virtual const ClusterConfig& config() const = 0;

  // kNoWorkerSlot: all are taken. kUnavailable: node 0 does not answer.
  virtual Result<Claim> claim() = 0;
  virtual Result<Claim> claim_node(uint16_t thread) = 0;
  virtual void leave(Claim claim) = 0;

  // Sends `request` to `node` and waits for its answer, at most until `timeout_ms` have passed.
  virtual Result<Bytes> exchange(NodeId node, Topic topic, std::span<const std::byte> request,
                                 uint32_t timeout_ms) = 0;
  // Nodes only; before the first claim_node().
  virtual void set_handler(Topic topic, Handler handler) = 0;
  virtual void set_fence(Fence fence) = 0;

  // As Endpoint::incarnation_of(): from what node 0 has told last. Thread-safe and cheap.
  virtual uint32_t incarnation_of(WorkerId worker) = 0;
  // Counts every change that incarnation_of() may see.
  virtual uint64_t version() const = 0;
  virtual std::vector<WorkerId> departed() = 0;
  virtual void release(WorkerId worker) = 0;

  // Nanoseconds since the cluster's epoch, as node 0 counts them; never steps back. On other hosts
  // it is off by at most clock_error_ns().
  virtual uint64_t now_ns() = 0;
  virtual uint64_t clock_error_ns() const = 0;

  // Reads what has arrived on a coordinator's channels; true if there was anything.
  virtual bool poll() = 0;
  // To wait on beside a fabric's own descriptors; -1 on a node, whose thread does the work.
  virtual int wait_fd() const = 0;
};

}  // namespace rdmacc
