#pragma once
#include <memory>
#include <string>
#include <vector>

#include "rdma/bootstrap/membership.h"
#include "rdma/fabric/region_domain.h"

// Processes on hosts that an RDMA network joins, through libibverbs: InfiniBand, RoCE and
// Soft-RoCE. One-sided verbs go over reliable connections (RC), one or more from each worker to
// each node; datagrams go over one unreliable queue pair (UD) per worker. The members, and the
// numbers, addresses and keys that queue pairs need, are told over the membership's channel.
//
// A node's region is a POSIX shared memory object, registered (and so pinned) whole. It outlives
// its process, as on the shm fabric, until destroy().
//
// A process opens its devices itself: it makes its VerbsFabric after fork(), never before.

namespace rdmacc {

struct VerbsOptions {
  std::string device;  // "mlx5_0"; empty: the first one that has an active port
  uint8_t port = 0;    // 0: the first active one
  int gid_index = -1;  // -1: the RoCE v2 entry of an IPv4 address, or what comes next to it
  uint16_t queue_pairs_per_node = 1;  // 1 .. 64; more imitate a larger cluster (RCC 6.6)
  uint32_t send_queue_depth = 256;    // verbs in flight to one node, 16 .. 8192
  uint32_t receive_depth = 512;       // datagrams that may wait for poll(), 64 .. 8192
  // Resent after 4.096 us x 2^exponent, so often; then the connection counts as broken. Some
  // devices take 7 retries, and others an exponent of 0, for "forever": neither is allowed.
  uint8_t retry_count = 6;         // 1 .. 6
  uint8_t timeout_exponent = 14;   // 14 .. 20: 67 ms and more
  bool huge_pages = true;          // try, for local buffers and the region
  uint32_t wait_us_max = 100'000;  // bound of one wait()
  uint32_t connect_ms_max = 1000;  // bound of one connection's making
  // The parts of this node's region; empty: one part, and peers have all rights.
  std::vector<RegionDomain> domains;
};

class VerbsFabric : public Fabric {
 public:
  // A coordinator's. kInvalidArgument: an option is out of range; kUnavailable: there is no such
  // device or port, or it has no atomics.
  static Result<std::unique_ptr<VerbsFabric>> open(std::unique_ptr<Membership> membership,
                                                   const VerbsOptions& options);
  // A node's, whose region is made and registered here. kNoSpace: the memory cannot be had or
  // pinned (ulimit -l).
  static Result<std::unique_ptr<VerbsFabric>> open_as_node(std::unique_ptr<Membership> membership,
                                                           NodeId node,
                                                           const VerbsOptions& options);

  // Removes what the cluster has left on this host, the rows included; when no node runs here.
  static void destroy(const ClusterConfig& config);
  // Of one node, which does not run; others may.
  static void destroy_node(const ClusterConfig& config, NodeId node);

  // What this process holds of the device.
  struct Usage {
    std::string device;
    uint64_t region_bytes = 0;        // registered for peers; 0 on a coordinator
    uint32_t served_queue_pairs = 0;  // of peers that are connected to this node
    uint64_t broken_connections = 0;  // of this process's workers to nodes, since it began
  };
  virtual Usage usage() const = 0;
};

// Is there a device with an active port? For tests and defaults.
bool verbs_device_present();

}  // namespace rdmacc
