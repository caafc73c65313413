#include "rdma/tcp/tcp_fabric.h"

#include <sys/mman.h>

#include "rdma/bootstrap/claim_table.h"
#include "rdma/bootstrap/cluster_config.h"
#include "rdma/shm/shm_control.h"
#include "rdma/tcp/tcp_endpoint.h"

namespace rdmacc {
namespace {

constexpr int kBacklog = 128;

// The regions' objects are told apart from a shm cluster's by the dot in their name.
std::string region_cluster(const std::string& cluster) { return "tcp." + cluster; }

// A worker is admitted when the control channel has proven its claim.
Result<Membership::Bytes> give_ticket(TcpCluster& cluster, const Membership::Peer& peer,
                                      std::span<const std::byte> bytes) {
  TcpTicketRequest request;
  if (!read_exactly(bytes, request) || request.after_loss > 1 || request.reserved != 0) {
    return Status(Code::kCorrupt, "the request for a ticket does not parse");
  }
  bool its_own = false;
  for (const Membership::Claim& claim : peer.claims) {
    its_own |= claim.worker == request.worker && claim.incarnation == request.incarnation;
  }
  if (!its_own) {
    // It may be newer than what we have heard of.
    return Status(Code::kUnavailable, "the worker is not known to be the asker's");
  }
  const std::lock_guard<std::mutex> lock(cluster.admissions_mutex);
  if (request.thread >= cluster.admissions.size() ||
      cluster.admissions[request.thread] == nullptr) {
    return Status(Code::kUnavailable, "the node's thread is not there");
  }
  if (request.after_loss == 1) {
    for (const std::shared_ptr<TcpAdmission>& admission : cluster.admissions) {
      if (admission != nullptr) admission->fence(request.worker);
    }
  }
  const TcpTicket ticket =
      cluster.admissions[request.thread]->issue({request.worker, request.incarnation});
  const auto raw = bytes_of(ticket);
  return Membership::Bytes(raw.begin(), raw.end());
}

void fence_doors(TcpCluster& cluster, WorkerId worker) {
  const std::lock_guard<std::mutex> lock(cluster.admissions_mutex);
  for (const std::shared_ptr<TcpAdmission>& admission : cluster.admissions) {
    if (admission != nullptr) admission->fence(worker);
  }
}

class TcpFabricImpl : public TcpFabric {
 public:
  explicit TcpFabricImpl(std::shared_ptr<TcpCluster> cluster) : cluster_(std::move(cluster)) {}

  const Topology& topology() const override { return cluster_->topology(); }
  const FabricCapabilities& capabilities() const override { return capabilities_; }
  Membership& membership() override { return *cluster_->membership; }

  Result<std::unique_ptr<Endpoint>> join() override {
    Result<Membership::Claim> claim = cluster_->membership->claim();
    if (!claim.ok()) return claim.status();
    return take(std::make_unique<TcpEndpoint>(cluster_, *claim));
  }

  Result<std::unique_ptr<Endpoint>> join_as_node(NodeId node, uint16_t thread) override {
    CHECK(node < topology().nodes && thread < topology().threads_per_node);
    if (node != cluster_->own_node) {
      return Status(Code::kInvalidArgument,
                    "this process is not node " + std::to_string(node) + " of its cluster");
    }
    {
      const std::lock_guard<std::mutex> lock(cluster_->admissions_mutex);
      if (cluster_->admissions[thread] != nullptr) {
        return Status(Code::kUnavailable, "node " + std::to_string(node) + " is running");
      }
    }
    Result<std::byte*> region = cluster_->regions->make(node);
    if (!region.ok()) return region.status();
    SocketAddress address = cluster_->addresses[node];
    address.set_port(0);
    Result<Descriptor> listener = listen_at(address, kBacklog);
    if (!listener.ok()) return listener.status();
    Result<uint16_t> port = port_of(*listener);
    if (!port.ok()) return port.status();
    Result<Membership::Claim> claim = cluster_->membership->claim_node(thread);
    if (!claim.ok()) return claim.status();
    auto admission = std::make_shared<TcpAdmission>(*port, claim->incarnation);
    auto endpoint =
        std::make_unique<TcpEndpoint>(cluster_, *claim, admission, std::move(*listener));
    Result<std::unique_ptr<Endpoint>> taken = take(std::move(endpoint));
    if (taken.ok()) {
      const std::lock_guard<std::mutex> lock(cluster_->admissions_mutex);
      cluster_->admissions[thread] = std::move(admission);
    }
    return taken;
  }

  std::vector<WorkerId> departed() override { return cluster_->membership->departed(); }
  void release(WorkerId worker) override { cluster_->membership->release(worker); }

 private:
  static Result<std::unique_ptr<Endpoint>> take(std::unique_ptr<TcpEndpoint> endpoint) {
    RDMACC_RETURN_IF_ERROR(endpoint->start());
    return std::unique_ptr<Endpoint>(std::move(endpoint));
  }

  const std::shared_ptr<TcpCluster> cluster_;
  const FabricCapabilities capabilities_{
      .coherent_atomics = true, .max_datagram_bytes = kTcpDatagramBytesMax, .inline_bytes = 0};
};

Result<std::unique_ptr<TcpFabric>> wrap(const ClusterConfig& config, NodeId own_node,
                                        TcpOptions options,
                                        Result<std::unique_ptr<Membership>> membership) {
  if (!membership.ok()) return membership.status();
  auto cluster = std::make_shared<TcpCluster>();
  cluster->membership = std::move(*membership);
  cluster->own_node = own_node;
  cluster->options = options;
  cluster->log = std::make_unique<PacedLog>(config.log);
  for (const HostPort& node : config.nodes) {
    Result<SocketAddress> address = resolve_address(node.host, node.port);
    if (!address.ok()) return address.status();
    cluster->addresses.push_back(*address);
  }
  if (cluster->is_node()) {
    cluster->regions = std::make_unique<ShmRegions>(region_cluster(config.name), config.topology,
                                                    options.huge_pages);
    Result<std::unique_ptr<TcpProgress>> progress =
        TcpProgress::open(config.name, own_node, config.topology.workers_max);
    if (!progress.ok()) return progress.status();
    cluster->progress = std::move(*progress);
    cluster->admissions.resize(config.topology.threads_per_node);
    TcpCluster& shared = *cluster;  // it outlives its membership's thread
    cluster->membership->set_handler(
        Membership::Topic::kTcpEndpoint,
        [&shared](const Membership::Peer& peer, std::span<const std::byte> request) {
          return give_ticket(shared, peer, request);
        });
    cluster->membership->set_fence(
        [&shared](Membership::Claim dead) { fence_doors(shared, dead.worker); });
  }
  return std::unique_ptr<TcpFabric>(std::make_unique<TcpFabricImpl>(std::move(cluster)));
}

}  // namespace

Result<std::unique_ptr<TcpFabric>> TcpFabric::open(const ClusterConfig& config,
                                                   TcpOptions options) {
  return wrap(config, 0xFFFF, options, Membership::open(config));
}

Result<std::unique_ptr<TcpFabric>> TcpFabric::open_as_node(const ClusterConfig& config, NodeId node,
                                                           TcpOptions options) {
  return wrap(config, node, options, Membership::open_as_node(config, node));
}

void TcpFabric::destroy_node(const ClusterConfig& config, NodeId node) {
  if (node == 0) ClaimTable::destroy(config.name);  // no member comes back with what it had
  shm_unlink(shm_region_name(region_cluster(config.name), node).c_str());
  TcpProgress::destroy(config.name, node);
}

void TcpFabric::destroy(const ClusterConfig& config) {
  if (!check_cluster_config(config).ok()) return;
  Membership::destroy(config);
  for (size_t node = 0; node < config.nodes.size(); ++node) {
    destroy_node(config, static_cast<NodeId>(node));
  }
}

}  // namespace rdmacc
