#pragma once
#include <memory>

#include "rdma/bootstrap/membership.h"

namespace rdmacc {

// The config of a throw-away cluster whose nodes are processes of this host: free ports of the
// loopback address, and a secret of its own in a folder that only this user sees. Its files go
// with this object, in the process that made it; what the nodes leave is removed by their fabric.
class LoopbackCluster {
 public:
  static Result<std::unique_ptr<LoopbackCluster>> make(const std::string& name,
                                                       const Topology& topology);
  ~LoopbackCluster();
  LoopbackCluster(const LoopbackCluster&) = delete;
  LoopbackCluster& operator=(const LoopbackCluster&) = delete;

  const ClusterConfig& config() const { return config_; }
  // Removes the files at once. Harmless when they are gone.
  static void remove_files(const ClusterConfig& config);

 private:
  explicit LoopbackCluster(ClusterConfig config);
  const ClusterConfig config_;
  const int owner_pid_;
};

}  // namespace rdmacc
