#include "rdma/verbs/verbs_endpoint.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "rdma/fabric/check_chain.h"

namespace rdmacc {
namespace {

constexpr uint64_t kDrainUsMax = 1'000'000;
constexpr uint64_t kMembershipEveryUs = 1'000;
constexpr uint32_t kPollsPerLook = 64;  // at the clock, for the above

}  // namespace

Result<std::unique_ptr<VerbsEndpoint>> VerbsEndpoint::open(std::shared_ptr<VerbsCluster> cluster,
                                                           Membership::Claim claim) {
  Result<std::unique_ptr<VerbsDevice>> device = VerbsDevice::open(cluster->options);
  if (!device.ok()) {
    cluster->membership->leave(claim);
    return device.status();
  }
  std::unique_ptr<VerbsEndpoint> endpoint(
      new VerbsEndpoint(std::move(cluster), claim, std::move(*device)));
  RDMACC_RETURN_IF_ERROR(endpoint->set_up());
  return endpoint;
}

VerbsEndpoint::VerbsEndpoint(std::shared_ptr<VerbsCluster> cluster, Membership::Claim claim,
                             std::unique_ptr<VerbsDevice> device)
    : cluster_(std::move(cluster)),
      process_(getpid()),
      device_(std::move(device)),
      random_(static_cast<uint64_t>(verbs_random()) << 32 | verbs_random()),
      memory_(*device_, cluster_->options.huge_pages),
      datagrams_(*device_, memory_, cluster_->options, cluster_->topology().workers_max),
      targets_(cluster_->topology().nodes) {
  worker_ = claim.worker;
  incarnation_ = claim.incarnation;
}

Status VerbsEndpoint::set_up() {
  const Topology& topology = cluster_->topology();
  const VerbsOptions& options = cluster_->options;
  const int wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (wake_fd < 0) return Status::from_errno("eventfd");
  mailbox_ = std::make_shared<VerbsMailbox>(wake_fd);
  channel_.reset(ibv_create_comp_channel(device_->context()));
  if (channel_ == nullptr) return verbs_failure("ibv_create_comp_channel");
  if (fcntl(channel_->fd, F_SETFL, fcntl(channel_->fd, F_GETFL) | O_NONBLOCK) != 0) {
    return Status::from_errno("fcntl");
  }
  // One connection's requests at most, and as many again that were flushed when it broke.
  const uint64_t entries = 2ull * topology.nodes * options.send_queue_depth;
  if (entries > static_cast<uint64_t>(device_->limits().max_cqe)) {
    return Status(Code::kInvalidArgument,
                  "send queues of " + std::to_string(options.send_queue_depth) + " verbs to " +
                      std::to_string(topology.nodes) + " nodes are more than " + device_->name() +
                      " can tell the completion of");
  }
  completions_.reset(
      ibv_create_cq(device_->context(), static_cast<int>(entries), nullptr, channel_.get(), 0));
  if (completions_ == nullptr) return verbs_failure("ibv_create_cq");
  RDMACC_RETURN_IF_ERROR(datagrams_.open(worker_, incarnation_, channel_.get()));
  Result<std::byte*> scratch = memory_.allocate(8);
  if (!scratch.ok()) return scratch.status();
  scratch_ = *scratch;
  for (NodeId node = 0; node < topology.nodes; ++node) {
    targets_[node].connection = std::make_unique<VerbsConnection>(
        *device_, memory_, options,
        VerbsConnection::Shape{node, completions_.get(), topology.region_bytes});
  }
  if (is_node()) cluster_->server->set_thread(thread(), datagrams_.address());
  for (NodeId node = 0; node < topology.nodes; ++node) {
    if (alive(node)) static_cast<void>(connect_now(node));  // or at the first doorbell
  }
  return Status();
}

VerbsEndpoint::~VerbsEndpoint() {
  if (getpid() != process_) return;  // all of it is the parent's
  const bool drained = drain();
  targets_.clear();
  if (is_node()) cluster_->server->set_thread(thread(), {});
  // Else it may have left locks: it stays a member until its process ends, and is resolved then.
  if (drained || is_node()) cluster_->membership->leave({worker_, incarnation_});
}

bool VerbsEndpoint::drain() {
  const uint64_t end_us = now_us() + kDrainUsMax;
  asking_ = 0;
  // The handler's owner may be gone.
  handler_ = nullptr;
  for (Target& target : targets_) {
    if (target.connection == nullptr) return true;  // it could not be set up
    target.connection->forget_waiters();
    target.connection->ask_for_completion(scratch_);
  }
  const auto idle = [](const Target& target) { return target.connection->idle(); };
  while (!std::all_of(targets_.begin(), targets_.end(), idle) && now_us() < end_us) {
    static_cast<void>(poll_connections());
  }
  return std::all_of(targets_.begin(), targets_.end(), [&](const Target& target) {
    return idle(target) && target.waiting.empty() && !target.lost &&
           !target.connection->lost_unacknowledged();
  });
}

void VerbsEndpoint::ring(NodeId node, std::span<const Verb> chain, Completion* completion) {
  check_chain(node, chain, cluster_->topology());
  VerbsConnection& connection = *targets_[node].connection;
  if (connection.connected()) return connection.ring(chain, completion);
  if (start_connecting(node)) {
    // It may be connected already: a node's own thread is answered at once.
    if (connection.connected()) return connection.ring(chain, completion);
    targets_[node].waiting.push_back({{chain.begin(), chain.end()}, completion});
  } else if (completion != nullptr) {
    failed_.push_back(completion);
  } else {
    targets_[node].lost = true;
  }
}

bool VerbsEndpoint::send(WorkerId to, std::span<const std::byte> datagram) {
  CHECK(to < cluster_->topology().workers_max && to != worker_);
  CHECK(is_node() || cluster_->topology().is_node_worker(to));  // two coordinators never talk
  CHECK(!datagram.empty() && datagram.size() <= device_->datagram_bytes());
  return !know_peer(to, /*ask=*/true) || datagrams_.send(to, datagram);  // or it is lost
}

bool VerbsEndpoint::poll() {
  if (++polls_ % kPollsPerLook == 0) {
    const uint64_t now = now_us();
    if (now - membership_polled_us_ >= kMembershipEveryUs) {
      membership_polled_us_ = now;
      static_cast<void>(cluster_->membership->poll());
    }
  }
  const bool answered = read_answers();
  const bool completed = poll_connections();
  const bool failed = tell_failed();
  return poll_datagrams() || completed || failed || answered;
}

bool VerbsEndpoint::poll_connections() {
  bool any = false;
  int count = 0;
  do {
    if (!seen_.empty()) {
      count = static_cast<int>(seen_.size());
    } else {
      seen_.resize(kBatch);
      count = ibv_poll_cq(completions_.get(), kBatch, seen_.data());
      CHECK(count >= 0);
      seen_.resize(static_cast<size_t>(count));
    }
    for (const ibv_wc& work : seen_) {
      const NodeId node = VerbsConnection::node_of(work);
      CHECK(node < targets_.size());
      targets_[node].connection->complete(work, done_);
    }
    seen_.clear();
    any |= count > 0;
  } while (count == kBatch);
  for (Target& target : targets_) target.connection->post();
  for (Completion* completion : done_) completion->finish_one();
  done_.clear();
  return any;
}

bool VerbsEndpoint::tell_failed() {
  for (Target& target : targets_) {
    if (target.breaks_told != target.connection->breaks()) {
      target.breaks_told = target.connection->breaks();
      cluster_->breaks.fetch_add(1, std::memory_order_relaxed);
    }
    if (!target.connection->anything_failed()) continue;
    const std::vector<Completion*> lost = target.connection->take_failed();
    failed_.insert(failed_.end(), lost.begin(), lost.end());
  }
  if (failed_.empty()) return false;
  const std::vector<Completion*> failed = std::exchange(failed_, {});
  for (Completion* completion : failed) {
    completion->failed = true;
    completion->finish_one();
  }
  return true;
}

bool VerbsEndpoint::poll_datagrams() {
  bool any = false;
  if (seen_datagrams_.empty()) {
    seen_datagrams_.resize(kBatch);
    const int count = ibv_poll_cq(datagrams_.received(), kBatch, seen_datagrams_.data());
    CHECK(count >= 0);
    seen_datagrams_.resize(static_cast<size_t>(count));
  }
  for (const ibv_wc& work : seen_datagrams_) {
    VerbsDatagrams::Arrival arrival;
    any = true;
    if (datagrams_.arrived(work, &arrival)) deliver(arrival);
  }
  seen_datagrams_.clear();
  return any;
}

void VerbsEndpoint::deliver(const VerbsDatagrams::Arrival& arrival) {
  if (arrival.from < cluster_->topology().workers_max && arrival.from != worker_ &&
      know_peer(arrival.from, /*ask=*/false) && datagrams_.genuine(arrival) && handler_) {
    handler_(arrival.from, arrival.bytes);
  }
  datagrams_.give_back(arrival);
}

std::byte* VerbsEndpoint::local_region() {
  return is_node() ? cluster_->server->region() : nullptr;
}

Status VerbsEndpoint::back_region(uint64_t offset, uint64_t bytes) {
  CHECK(is_node());
  const uint64_t region_bytes = cluster_->topology().region_bytes;
  if (bytes <= region_bytes && offset <= region_bytes - bytes) return Status();
  return Status(Code::kNoSpace, "region of node " + std::to_string(cluster_->node) + " is used up");
}

}  // namespace rdmacc
