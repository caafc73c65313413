#pragma once
#include <atomic>
#include <map>
#include <mutex>

#include "rdma/shm/shm_region.h"
#include "rdma/verbs/verbs_queue_pair.h"

namespace rdmacc {

// As whose the shared memory objects of a verbs cluster's regions are named.
inline std::string verbs_region_cluster(const std::string& cluster) { return "verbs." + cluster; }

// What a node's process offers its peers: the region, registered by domains with no more rights
// than needed, and one end of every connection to it. Nothing here is posted or polled; the device
// alone answers. It has a context and a protection domain of its own.
//
// Requests are served, and the dead fenced, on the membership's thread; the node's threads tell
// where they get datagrams and ask where others do. Thread-safe.
class VerbsServer {
 public:
  static Result<std::unique_ptr<VerbsServer>> open(const ClusterConfig& config, NodeId node,
                                                   const VerbsOptions& options);

  // Answers a peer that has proven its claims.
  Result<Membership::Bytes> serve(const Membership::Peer& peer, std::span<const std::byte> request);
  // Destroys the queue pairs of `dead`: none of its verbs touches the region after that.
  void fence(Membership::Claim dead);

  // This node's own thread joins; it has left when the address is empty.
  void set_thread(uint16_t thread, const VerbsDatagramAddress& address);
  struct Address {
    VerbsDatagramAddress datagrams;
    VerbsPortAddress port;
  };
  // The last address that a worker has told; incarnation 0 if none.
  Address address_of(WorkerId worker);
  // Counts new addresses.
  uint64_t version() const { return version_.load(std::memory_order_acquire); }

  std::byte* region() const { return region_; }
  const VerbsDevice& device() const { return *device_; }
  uint32_t queue_pairs();

 private:
  struct Initiator {
    Address address;
    std::vector<VerbsHandle<ibv_qp>> queue_pairs;
    uint32_t fenced = 0;  // incarnations up to this one are dead
  };

  VerbsServer(const ClusterConfig& config, NodeId node, const VerbsOptions& options);
  Status register_region();
  Status check(const Membership::Peer& peer, const VerbsRequest& request) const;
  Status connect(const VerbsRequest& request, Initiator& initiator, VerbsAnswer& answer);

  const Topology topology_;
  const NodeId node_;
  const VerbsOptions options_;
  ShmRegions regions_;
  std::byte* region_ = nullptr;
  std::unique_ptr<VerbsDevice> device_;
  std::vector<VerbsHandle<ibv_mr>> registrations_;
  std::vector<VerbsDomainKey> domains_;
  VerbsHandle<ibv_cq> completions_;  // queue pairs must have one; it stays empty
  std::atomic<uint64_t> version_{0};

  std::mutex mutex_;  // guards what follows
  std::vector<VerbsDatagramAddress> threads_;
  std::map<WorkerId, Initiator> initiators_;
};

}  // namespace rdmacc
