// How a worker's endpoint meets its peers: connections to nodes, addresses of workers, and what it
// does while there is nothing to do.
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>

#include "rdma/verbs/verbs_endpoint.h"

namespace rdmacc {
namespace {

constexpr uint64_t kPauseUsMin = 10'000, kPauseUsMax = 1'000'000;
constexpr size_t kWaitingMax = 4096;  // chains, for one connection

}  // namespace

VerbsMailbox::~VerbsMailbox() { close(wake_fd_); }

void VerbsMailbox::put(ControlMessage message) {
  const std::lock_guard<std::mutex> lock(mutex_);
  messages_.push_back(std::move(message));
  any_.store(true, std::memory_order_release);
  const uint64_t one = 1;
  static_cast<void>(!write(wake_fd_, &one, sizeof(one)));
}

std::vector<VerbsMailbox::ControlMessage> VerbsMailbox::take() {
  const std::lock_guard<std::mutex> lock(mutex_);
  any_.store(false, std::memory_order_release);
  return std::exchange(messages_, {});
}

bool VerbsEndpoint::alive(NodeId node) {
  return cluster_->serves(node) || incarnation_of(cluster_->topology().worker_of(node)) != 0;
}

// May it be tried now? Counts the try: the next one has to wait, longer each time.
bool VerbsEndpoint::due(Target& target) {
  const uint64_t now = now_us();
  if (now < target.next_try_us) return false;
  target.pause_us = std::clamp(2 * target.pause_us, kPauseUsMin, kPauseUsMax);
  target.next_try_us = now + target.pause_us;
  return true;
}

// Tells `node` where this worker gets its datagrams, and asks where the node's threads do; with
// queue pairs, they are to be connected.
Membership::Bytes VerbsEndpoint::request_to(NodeId node,
                                            std::vector<VerbsQueuePairAddress> queue_pairs) const {
  VerbsRequest request;
  request.header.kind =
      queue_pairs.empty() ? VerbsRequestKind::kLookup : VerbsRequestKind::kConnect;
  request.header.worker = worker_;
  request.header.node = node;
  request.header.port = device_->address();
  request.header.datagrams = datagrams_.address();
  request.header.region_bytes = cluster_->topology().region_bytes;
  request.header.reads_in_flight = device_->reads_out_max();
  request.queue_pairs = std::move(queue_pairs);
  return request.encode();
}

Status VerbsEndpoint::take_answer(NodeId node, bool connecting,
                                  const Result<Membership::Bytes>& bytes) {
  CHECK(node < targets_.size());
  if (!bytes.ok()) return bytes.status();
  const Topology& topology = cluster_->topology();
  const std::optional<VerbsAnswer> answer = VerbsAnswer::decode(bytes.value());
  if (!answer || answer->threads.size() != topology.threads_per_node) {
    return Status(Code::kCorrupt, "node " + std::to_string(node) + " gave a malformed answer");
  }
  for (uint16_t t = 0; t < topology.threads_per_node; ++t) {
    const WorkerId worker = topology.worker_of(node, t);
    if (worker != worker_) datagrams_.set_peer(worker, answer->threads[t], answer->header.port);
  }
  return connecting ? targets_[node].connection->connect(*answer) : Status();
}

// Waits for the answer: before the endpoint is handed out.
Status VerbsEndpoint::connect_now(NodeId node) {
  Target& target = targets_[node];
  Result<std::vector<VerbsQueuePairAddress>> queue_pairs = target.connection->prepare();
  if (!queue_pairs.ok()) return queue_pairs.status();
  const Membership::Bytes request = request_to(node, std::move(*queue_pairs));
  const Membership::Peer self{"", {{worker_, incarnation_}}};
  const Status status =
      take_answer(node, true,
                  cluster_->serves(node)
                      ? cluster_->server->serve(self, request)
                      : cluster_->membership->exchange(node, Membership::Topic::kVerbsQueuePair,
                                                       request, cluster_->options.connect_ms_max));
  if (!status.ok()) target.connection->abandon();
  return status;
}

// True if a chain may wait for the connection, or there is one now.
bool VerbsEndpoint::start_connecting(NodeId node) {
  Target& target = targets_[node];
  if (target.asked != 0 && target.connecting) return target.waiting.size() < kWaitingMax;
  if (target.asked != 0 || !alive(node) || !due(target)) return false;
  if (cluster_->serves(node)) return connect_now(node).ok();
  Result<std::vector<VerbsQueuePairAddress>> queue_pairs = target.connection->prepare();
  if (!queue_pairs.ok()) return false;
  target.connecting = true;
  post_request(node, request_to(node, std::move(*queue_pairs)));
  return true;
}

void VerbsEndpoint::post_request(NodeId node, const Membership::Bytes& request) {
  Target& target = targets_[node];
  CHECK(target.asked == 0);  // one question at a time
  if (++last_request_ == 0) ++last_request_;
  target.asked = last_request_;
  target.asked_until_us = now_us() + uint64_t{cluster_->options.connect_ms_max} * 1000;
  ++asking_;
  cluster_->membership->post(
      node, Membership::Topic::kVerbsQueuePair, request,
      [mailbox = mailbox_, node, number = last_request_](Result<Membership::Bytes> answer) {
        mailbox->put({node, number, std::move(answer)});
      });
}

void VerbsEndpoint::end_asking(NodeId node, const Status& status) {
  Target& target = targets_[node];
  CHECK(asking_ > 0 && target.asked != 0);
  target.asked = 0;
  --asking_;
  if (!target.connecting) return;
  target.connecting = false;
  if (status.ok()) {
    target.next_try_us = target.pause_us = 0;
  } else {
    target.connection->abandon();
  }
  for (const Chain& chain : std::exchange(target.waiting, {})) {
    // Ringing the ones before may have broken it again.
    if (target.connection->connected()) {
      target.connection->ring(chain.verbs, chain.completion);
    } else if (chain.completion != nullptr) {
      failed_.push_back(chain.completion);
    } else {
      target.lost = true;
    }
  }
}

bool VerbsEndpoint::read_answers() {
  if (asking_ == 0) return false;
  bool any = false;
  if (!mailbox_->empty()) {
    for (const VerbsMailbox::ControlMessage& message : mailbox_->take()) {
      CHECK(message.from < targets_.size());
      const Target& target = targets_[message.from];
      if (target.asked != message.request) continue;  // it came too late
      end_asking(message.from, take_answer(message.from, target.connecting, message.answer));
      any = true;
    }
  }
  const uint64_t now = now_us();
  for (NodeId node = 0; node < targets_.size(); ++node) {
    if (targets_[node].asked == 0 || now < targets_[node].asked_until_us) continue;
    end_asking(node, Status(Code::kTimeout, "no answer"));
    any = true;
  }
  return any;
}

bool VerbsEndpoint::know_peer(WorkerId worker, bool ask) {
  const uint32_t present = incarnation_of(worker);
  if (present == 0) return false;
  if (datagrams_.incarnation_of_peer(worker) == present) return true;
  if (is_node()) {
    const VerbsServer::Address told = cluster_->server->address_of(worker);
    if (told.datagrams.incarnation == present) {
      datagrams_.set_peer(worker, told.datagrams, told.port);
      return true;
    }
  }
  const Topology& topology = cluster_->topology();
  if (!ask || !topology.is_node_worker(worker)) return false;
  const auto node = static_cast<NodeId>(worker / topology.threads_per_node);
  if (targets_[node].asked != 0 || !due(targets_[node])) return false;
  if (cluster_->serves(node)) {
    const Membership::Peer self{"", {{worker_, incarnation_}}};
    const Membership::Bytes request = request_to(node, {});
    static_cast<void>(take_answer(node, false, cluster_->server->serve(self, request)));
  } else {
    targets_[node].connecting = false;
    post_request(node, request_to(node, {}));
  }
  return datagrams_.incarnation_of_peer(worker) == present;
}

bool VerbsEndpoint::anything_to_do() const {
  return !failed_.empty() || !mailbox_->empty() || !seen_.empty() || !seen_datagrams_.empty() ||
         std::any_of(targets_.begin(), targets_.end(),
                     [](const Target& target) { return target.connection->anything_failed(); });
}

// Whatever completes from here on ends the sleep; what has completed before is seen now.
bool VerbsEndpoint::arm_and_look() {
  for (ibv_cq* queue : {completions_.get(), datagrams_.received(), datagrams_.sent()}) {
    if (ibv_req_notify_cq(queue, 0) != 0) return true;
  }
  seen_.resize(kBatch);
  seen_.resize(
      static_cast<size_t>(std::max(0, ibv_poll_cq(completions_.get(), kBatch, seen_.data()))));
  seen_datagrams_.resize(kBatch);
  seen_datagrams_.resize(static_cast<size_t>(
      std::max(0, ibv_poll_cq(datagrams_.received(), kBatch, seen_datagrams_.data()))));
  return !seen_.empty() || !seen_datagrams_.empty();
}

void VerbsEndpoint::wait(uint64_t deadline_us) {
  const uint64_t now = now_us();
  if (deadline_us <= now || anything_to_do() || arm_and_look()) return;
  uint64_t end_us = std::min(deadline_us, now + cluster_->options.wait_us_max);
  for (const Target& target : targets_) {
    if (target.asked != 0) end_us = std::min(end_us, target.asked_until_us);
  }
  if (end_us > now) sleep(end_us - now);
}

void VerbsEndpoint::sleep(uint64_t us) {
  pollfd sources[] = {{channel_->fd, POLLIN, 0},
                      {mailbox_->wake_fd(), POLLIN, 0},
                      {cluster_->membership->wait_fd(), POLLIN, 0}};
  timespec timeout;
  timeout.tv_sec = static_cast<time_t>(us / 1'000'000);
  timeout.tv_nsec = static_cast<long>(us % 1'000'000) * 1000;
  // However it ends (an event, the timeout, a signal): the caller checks everything again.
  if (ppoll(sources, std::size(sources), &timeout, nullptr) <= 0) return;
  ibv_cq* queue = nullptr;
  void* context = nullptr;
  while (ibv_get_cq_event(channel_.get(), &queue, &context) == 0) ibv_ack_cq_events(queue, 1);
  uint64_t wakes = 0;
  static_cast<void>(!read(mailbox_->wake_fd(), &wakes, sizeof(wakes)));
  if (sources[2].revents != 0) static_cast<void>(cluster_->membership->poll());
}

void VerbsEndpoint::wake() {
  const uint64_t one = 1;
  static_cast<void>(!write(mailbox_->wake_fd(), &one, sizeof(one)));
}

}  // namespace rdmacc
