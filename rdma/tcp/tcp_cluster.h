#pragma once
#include <memory>
#include <mutex>
#include <vector>

#include "rdma/bootstrap/paced_log.h"
#include "rdma/bootstrap/socket.h"
#include "rdma/shm/shm_region.h"
#include "rdma/tcp/tcp_admission.h"
#include "rdma/tcp/tcp_fabric.h"
#include "rdma/tcp/tcp_progress.h"

namespace rdmacc {

// What a TcpFabric and its endpoints share within one process.
struct TcpCluster {
  std::unique_ptr<ShmRegions> regions;    // of the own node alone
  std::unique_ptr<TcpProgress> progress;  // of a node
  NodeId own_node = 0xFFFF;               // of a coordinator's process: none
  TcpOptions options;
  std::vector<SocketAddress> addresses;  // by node; without the port
  std::unique_ptr<PacedLog> log;

  std::mutex admissions_mutex;                            // guards the pointers
  std::vector<std::shared_ptr<TcpAdmission>> admissions;  // by thread; nullptr: not there

  // Last, so that its thread ends before what it refers to goes.
  std::unique_ptr<Membership> membership;

  const Topology& topology() const { return membership->config().topology; }
  bool is_node() const { return own_node != 0xFFFF; }
};

}  // namespace rdmacc
