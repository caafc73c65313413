#include "rdma/verbs/verbs_server.h"

#include <algorithm>

namespace rdmacc {
namespace {

unsigned rights_of(const RegionDomain& domain) {
  unsigned rights = IBV_ACCESS_REMOTE_READ;
  // The device refuses remote changes of what it may not change locally.
  if (domain.remote_write || domain.remote_atomic) rights |= IBV_ACCESS_LOCAL_WRITE;
  if (domain.remote_write) rights |= IBV_ACCESS_REMOTE_WRITE;
  if (domain.remote_atomic) rights |= IBV_ACCESS_REMOTE_ATOMIC;
  return rights;
}

Status refused(std::string why) { return Status(Code::kInvalidArgument, std::move(why)); }

}  // namespace

VerbsServer::VerbsServer(const ClusterConfig& config, NodeId node, const VerbsOptions& options)
    : topology_(config.topology),
      node_(node),
      options_(options),
      regions_(verbs_region_cluster(config.name), config.topology, options.huge_pages),
      threads_(config.topology.threads_per_node) {}

Result<std::unique_ptr<VerbsServer>> VerbsServer::open(const ClusterConfig& config, NodeId node,
                                                       const VerbsOptions& options) {
  std::unique_ptr<VerbsServer> server(new VerbsServer(config, node, options));
  Result<std::unique_ptr<VerbsDevice>> device = VerbsDevice::open(options);
  if (!device.ok()) return device.status();
  server->device_ = std::move(*device);
  server->completions_.reset(ibv_create_cq(server->device_->context(), 1, nullptr, nullptr, 0));
  if (server->completions_ == nullptr) return verbs_failure("ibv_create_cq (served)");
  RDMACC_RETURN_IF_ERROR(server->register_region());
  return server;
}

// The region is backed whole: what is registered is pinned. Peers name offsets in it, no addresses.
Status VerbsServer::register_region() {
  CHECK(region_ == nullptr && device_ != nullptr);
  Result<std::byte*> made = regions_.make(node_);
  if (!made.ok()) return made.status();
  region_ = *made;
  RDMACC_RETURN_IF_ERROR(regions_.back(node_, 0, topology_.region_bytes));
  std::vector<RegionDomain> domains = options_.domains;
  if (domains.empty()) domains.push_back({0, topology_.region_bytes, true, true});
  if (domains.size() > kVerbsDomainsMax) return refused("too many domains of a region");
  for (const RegionDomain& domain : domains) {
    VerbsHandle<ibv_mr> registration(ibv_reg_mr_iova(device_->domain(), region_ + domain.offset,
                                                     domain.bytes, domain.offset,
                                                     rights_of(domain)));
    if (registration == nullptr) return verbs_failure("registering the region");
    domains_.push_back({domain.offset, domain.bytes, registration->rkey, 0});
    registrations_.push_back(std::move(registration));
  }
  VerbsAnswer answer;
  answer.domains = domains_;
  if (!answer.covers(topology_.region_bytes)) return refused("the domains are not the region");
  return Status();
}

Status VerbsServer::check(const Membership::Peer& peer, const VerbsRequest& request) const {
  const VerbsRequestHeader& header = request.header;
  const bool claimed =
      std::any_of(peer.claims.begin(), peer.claims.end(), [&](const Membership::Claim& claim) {
        return claim.worker == header.worker && claim.incarnation == header.datagrams.incarnation;
      });
  if (!claimed || header.worker >= topology_.workers_max) {
    return refused("worker " + std::to_string(header.worker) + " is not the caller's");
  }
  if (header.node != node_) return refused("this is node " + std::to_string(node_));
  if (header.region_bytes != topology_.region_bytes) return refused("regions differ in size");
  if (header.port.mtu != device_->address().mtu) {
    return refused(
        "the ports' largest packets differ: " + std::to_string(128u << (header.port.mtu & 7)) +
        " bytes there, " + std::to_string(device_->datagram_bytes()) + " bytes at node " +
        std::to_string(node_));
  }
  if (header.port.global != device_->address().global) {
    return refused("one port is addressed by GID and the other by LID");
  }
  return Status();
}

Result<Membership::Bytes> VerbsServer::serve(const Membership::Peer& peer,
                                             std::span<const std::byte> request) {
  const std::optional<VerbsRequest> decoded = VerbsRequest::decode(request);
  if (!decoded) return Status(Code::kCorrupt, "malformed request for queue pairs");
  RDMACC_RETURN_IF_ERROR(check(peer, *decoded));
  const VerbsRequestHeader& header = decoded->header;
  VerbsAnswer answer;
  answer.header.port = device_->address();
  answer.header.reads_in_flight = device_->reads_in_max();
  const std::lock_guard<std::mutex> lock(mutex_);
  Initiator& initiator = initiators_[header.worker];
  if (header.datagrams.incarnation <= initiator.fenced ||
      header.datagrams.incarnation < initiator.address.datagrams.incarnation) {
    return Status(Code::kUnavailable, "the caller counts as dead");
  }
  initiator.address = {header.datagrams, header.port};
  version_.fetch_add(1, std::memory_order_release);
  if (header.kind == VerbsRequestKind::kConnect) {
    RDMACC_RETURN_IF_ERROR(connect(*decoded, initiator, answer));
    answer.domains = domains_;
  }
  answer.threads = threads_;
  return answer.encode();
}

// Whatever the worker had here before, it has given up, or an earlier owner of its id had.
Status VerbsServer::connect(const VerbsRequest& request, Initiator& initiator,
                            VerbsAnswer& answer) {
  initiator.queue_pairs.clear();
  const VerbsReliableShape shape{
      completions_.get(), 1, 0,
      IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC};
  for (const VerbsQueuePairAddress& queue : request.queue_pairs) {
    Result<VerbsHandle<ibv_qp>> made = make_reliable(*device_, shape);
    if (!made.ok()) {
      initiator.queue_pairs.clear();
      return made.status();
    }
    const VerbsQueuePairAddress own = new_address_of(made->get());
    const VerbsPeerQueue peer{request.header.port, queue, request.header.reads_in_flight};
    const Status connected = connect_reliable(*device_, made->get(), own, peer, options_);
    if (!connected.ok()) {
      initiator.queue_pairs.clear();
      return connected;
    }
    answer.queue_pairs.push_back(own);
    initiator.queue_pairs.push_back(std::move(*made));
  }
  return Status();
}

void VerbsServer::fence(Membership::Claim dead) {
  CHECK(dead.worker < topology_.workers_max);
  const std::lock_guard<std::mutex> lock(mutex_);
  Initiator& initiator = initiators_[dead.worker];
  initiator.fenced = std::max(initiator.fenced, dead.incarnation);
  if (initiator.address.datagrams.incarnation > dead.incarnation) return;
  initiator.queue_pairs.clear();
  initiator.address = {};
  version_.fetch_add(1, std::memory_order_release);
}

void VerbsServer::set_thread(uint16_t thread, const VerbsDatagramAddress& address) {
  const std::lock_guard<std::mutex> lock(mutex_);
  CHECK(thread < threads_.size());
  threads_[thread] = address;
}

VerbsServer::Address VerbsServer::address_of(WorkerId worker) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = initiators_.find(worker);
  return found == initiators_.end() ? Address() : found->second.address;
}

uint32_t VerbsServer::queue_pairs() {
  const std::lock_guard<std::mutex> lock(mutex_);
  size_t count = 0;
  for (const auto& [worker, initiator] : initiators_) count += initiator.queue_pairs.size();
  return static_cast<uint32_t>(count);
}

}  // namespace rdmacc
