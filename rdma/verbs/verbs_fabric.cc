#include "rdma/verbs/verbs_fabric.h"

#include <sys/mman.h>

#include "rdma/bootstrap/claim_table.h"
#include "rdma/shm/shm_control.h"
#include "rdma/verbs/verbs_endpoint.h"

namespace rdmacc {
namespace {

Status check(const VerbsOptions& options) {
  const auto within = [](const char* name, uint64_t value, uint64_t least, uint64_t most) {
    if (value >= least && value <= most) return Status();
    return Status(Code::kInvalidArgument, std::string(name) + " must be " + std::to_string(least) +
                                              " .. " + std::to_string(most));
  };
  RDMACC_RETURN_IF_ERROR(
      within("queue pairs per node", options.queue_pairs_per_node, 1, kVerbsQueuePairsMax));
  RDMACC_RETURN_IF_ERROR(within("send queue depth", options.send_queue_depth, 16, 8192));
  RDMACC_RETURN_IF_ERROR(within("receive depth", options.receive_depth, 64, 8192));
  RDMACC_RETURN_IF_ERROR(within("retry count", options.retry_count, 1, 6));
  return within("timeout exponent", options.timeout_exponent, 14, 20);
}

class VerbsFabricImpl : public VerbsFabric {
 public:
  VerbsFabricImpl(std::shared_ptr<VerbsCluster> cluster, const VerbsDevice& device)
      : cluster_(std::move(cluster)), device_name_(device.name()) {
    capabilities_.coherent_atomics = device.coherent_atomics();
    capabilities_.max_datagram_bytes = device.datagram_bytes();
    // What waits for room in a send queue is copied when it is posted, so buffers are needed.
    capabilities_.inline_bytes = 0;
  }

  const Topology& topology() const override { return cluster_->topology(); }
  const FabricCapabilities& capabilities() const override { return capabilities_; }

  Result<std::unique_ptr<Endpoint>> join() override { return open(cluster_->membership->claim()); }

  Result<std::unique_ptr<Endpoint>> join_as_node(NodeId node, uint16_t thread) override {
    CHECK(node < topology().nodes && thread < topology().threads_per_node);
    if (!cluster_->serves(node)) {
      return Status(Code::kInvalidArgument,
                    "this process does not have node " + std::to_string(node));
    }
    return open(cluster_->membership->claim_node(thread));
  }

  std::vector<WorkerId> departed() override { return cluster_->membership->departed(); }
  void release(WorkerId worker) override { cluster_->membership->release(worker); }

  Usage usage() const override {
    Usage usage{device_name_, 0, 0, cluster_->breaks.load(std::memory_order_relaxed)};
    if (cluster_->server != nullptr) {
      usage.region_bytes = topology_bytes();
      usage.served_queue_pairs = cluster_->server->queue_pairs();
    }
    return usage;
  }

 private:
  uint64_t topology_bytes() const { return cluster_->topology().region_bytes; }

  Result<std::unique_ptr<Endpoint>> open(Result<Membership::Claim> claim) {
    if (!claim.ok()) return claim.status();
    Result<std::unique_ptr<VerbsEndpoint>> endpoint = VerbsEndpoint::open(cluster_, *claim);
    if (!endpoint.ok()) return endpoint.status();
    return std::unique_ptr<Endpoint>(std::move(*endpoint));
  }

  const std::shared_ptr<VerbsCluster> cluster_;
  const std::string device_name_;
  FabricCapabilities capabilities_;
};

}  // namespace

Result<std::unique_ptr<VerbsFabric>> VerbsFabric::open(std::unique_ptr<Membership> membership,
                                                       const VerbsOptions& options) {
  CHECK(membership != nullptr);
  RDMACC_RETURN_IF_ERROR(check(options));
  auto cluster = std::make_shared<VerbsCluster>();
  cluster->options = options;
  cluster->membership = std::move(membership);
  // Only to know that it is there: endpoints open the device themselves, each on its own thread.
  const Result<std::unique_ptr<VerbsDevice>> device = VerbsDevice::open(options);
  if (!device.ok()) return device.status();
  return std::unique_ptr<VerbsFabric>(
      std::make_unique<VerbsFabricImpl>(std::move(cluster), *device.value()));
}

Result<std::unique_ptr<VerbsFabric>> VerbsFabric::open_as_node(
    std::unique_ptr<Membership> membership, NodeId node, const VerbsOptions& options) {
  CHECK(membership != nullptr);
  RDMACC_RETURN_IF_ERROR(check(options));
  auto cluster = std::make_shared<VerbsCluster>();
  cluster->options = options;
  cluster->node = node;
  Result<std::unique_ptr<VerbsServer>> server =
      VerbsServer::open(membership->config(), node, options);
  if (!server.ok()) return server.status();
  cluster->server = std::move(*server);
  cluster->membership = std::move(membership);
  VerbsServer* const serving = cluster->server.get();
  cluster->membership->set_handler(
      Membership::Topic::kVerbsQueuePair,
      [serving](const Membership::Peer& peer, std::span<const std::byte> request) {
        return serving->serve(peer, request);
      });
  cluster->membership->set_fence([serving](Membership::Claim dead) { serving->fence(dead); });
  return std::unique_ptr<VerbsFabric>(
      std::make_unique<VerbsFabricImpl>(std::move(cluster), serving->device()));
}

void VerbsFabric::destroy_node(const ClusterConfig& config, NodeId node) {
  if (node == 0) ClaimTable::destroy(config.name);  // no member comes back with what it had
  shm_unlink(shm_region_name(verbs_region_cluster(config.name), node).c_str());
}

void VerbsFabric::destroy(const ClusterConfig& config) {
  if (!config.nodes.empty()) Membership::destroy(config);
  const std::string regions = verbs_region_cluster(config.name);
  for (NodeId node = 0; node < config.topology.nodes; ++node) {
    shm_unlink(shm_region_name(regions, node).c_str());
  }
}

}  // namespace rdmacc
