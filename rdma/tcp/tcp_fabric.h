#pragma once
#include <memory>

#include "rdma/bootstrap/membership.h"

// Plain TCP between hosts, or processes of one. A verb is a message that the target node's thread
// carries out in its poll(); the nodes' regions are POSIX shared memory objects of their hosts, so
// that the rows outlive the processes. The members, and the keys of connections, come from the
// authenticated channel of bootstrap/membership.h.
//
// Objects: /rdmacc.tcp.<cluster>.* and a node's region, which stay until destroy().

namespace rdmacc {

struct TcpOptions {
  bool huge_pages = true;          // of the node's region: try
  uint32_t wait_us_max = 100'000;  // bound of one wait()
  // How long a chain may be under way, and how long a thread is dialled, before chains fail.
  uint64_t chain_us_max = 10'000'000, dial_us_max = 5'000'000;
  // A fault: pauses between verbs, drawn from this seed (verb_delays.h).
  std::optional<uint64_t> verb_delays = std::nullopt;
};

class TcpFabric : public Fabric {
 public:
  // A coordinator's process: owns no thread, and is to be opened after fork(). kInvalidArgument:
  // the config or the secret is not as it must be. Node 0 need not be there before join().
  static Result<std::unique_ptr<TcpFabric>> open(const ClusterConfig& config,
                                                 TcpOptions options = {});
  // The process of a node: listens at its address, with one thread for the members' channels.
  // kUnavailable: it is running.
  static Result<std::unique_ptr<TcpFabric>> open_as_node(const ClusterConfig& config, NodeId node,
                                                         TcpOptions options = {});
  // Removes what the cluster has left on this host, the rows included; when no node runs here.
  static void destroy(const ClusterConfig& config);
  // Of one node, which does not run; others may.
  static void destroy_node(const ClusterConfig& config, NodeId node);

  virtual Membership& membership() = 0;
};

}  // namespace rdmacc
