#pragma once
#include <atomic>
#include <memory>

#include "rdma/bootstrap/control_wire.h"

namespace rdmacc {

// Which process has which worker id: node 0's memory of it, in a POSIX shared memory object of mode
// 0600 that outlives its process, as the regions do. Only the process of node 0 that holds the
// node's lock writes it; what it writes is complete at every moment (the state last).
enum class ClaimState : uint32_t {
  kFree = 0,
  kLive,      // its process is a member, or is waited for after a restart of node 0
  kLeaving,   // left in order; free when every node has fenced it
  kDying,     // its channel ended; departed when every node has fenced it
  kDeparted,  // a coordinator to be resolved and released
  kDead,      // a node's thread, to be claimed again
};

struct alignas(kCacheLineBytes) ClaimSlot {
  std::atomic<ClaimState> state;
  uint32_t incarnation;  // kept while free
  RandomToken token;
  RandomToken boot_id;  // of the owner's host
  uint32_t pid;
  uint32_t reserved;
  uint64_t start_time;
};
static_assert(sizeof(ClaimSlot) == kCacheLineBytes);

class ClaimTable {
 public:
  // Opens the cluster's, or makes it. kInvalidArgument: it belongs to another topology; kCorrupt.
  static Result<std::unique_ptr<ClaimTable>> open(const ClusterConfig& config);
  static void destroy(const std::string& cluster);
  static bool exists(const std::string& cluster);
  ~ClaimTable();
  ClaimTable(const ClaimTable&) = delete;
  ClaimTable& operator=(const ClaimTable&) = delete;

  ClaimSlot& slot(WorkerId worker);
  uint64_t epoch_ns() const;   // CLOCK_MONOTONIC when it was made
  uint64_t memory_id() const;  // no other table's; not 0
  // Incarnations of each slot begin behind it: another table's, so that a worker of a memory that
  // was lost does not pass for one that has its id now.
  uint32_t first_incarnation() const;

 private:
  struct Header;
  ClaimTable(std::byte* base, size_t bytes, WorkerId workers)
      : base_(base), bytes_(bytes), workers_(workers) {}

  std::byte* const base_;
  const size_t bytes_;
  const WorkerId workers_;
};

// "/rdmacc.tcp.<cluster>.<what>": the dots keep it apart from the objects of a shm cluster.
std::string member_object_name(const std::string& cluster, const std::string& what);

// Held by the process that is node `node` for as long as the descriptor is open. kUnavailable:
// another process of this host is.
Result<int> lock_node(const std::string& cluster, NodeId node);
// Removes its object.
void unlock_node_for_good(const std::string& cluster, NodeId node);

uint64_t monotonic_now_ns();

}  // namespace rdmacc
