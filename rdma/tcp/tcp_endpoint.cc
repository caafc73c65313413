#include "rdma/tcp/tcp_endpoint.h"

#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "rdma/fabric/check_chain.h"

namespace rdmacc {
namespace {

constexpr int kAcceptsPerPoll = 16;
constexpr size_t kUnauthenticatedMax = 64;
constexpr uint64_t kTickUs = 50'000;
constexpr uint64_t kPartingUsMax = 1'000'000;
constexpr size_t kPageBytes = 4096;
constexpr size_t kNoServerConnection = SIZE_MAX;
// Ids of epoll events: peers by worker id, server-side connections by place.
constexpr uint64_t kServerConnectionId = 1ull << 32;
constexpr uint64_t kListenerId = 1ull << 48, kWakeId = kListenerId + 1,
                   kMembersId = kListenerId + 2;

uint64_t local_us() { return monotonic_now_ns() / 1000; }

bool add_event(int epoll, int fd, uint64_t id) {
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.u64 = id;
  return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

}  // namespace

TcpEndpoint::TcpEndpoint(std::shared_ptr<TcpCluster> cluster, Membership::Claim claim,
                         std::shared_ptr<TcpAdmission> admission, Descriptor listener)
    : cluster_(std::move(cluster)),
      owner_pid_(getpid()),
      random_(monotonic_now_ns() ^ (static_cast<uint64_t>(getpid()) << 32) ^ claim.worker),
      peers_(cluster_->topology().node_workers()),
      ways_(cluster_->topology().nodes),
      admission_(std::move(admission)),
      listener_(std::move(listener)),
      server_connection_of_(cluster_->topology().workers_max, kNoServerConnection) {
  worker_ = claim.worker;
  incarnation_ = claim.incarnation;
  self_.cluster = cluster_;
  self_.claim = claim;
  self_.inbox = std::make_shared<TcpInbox>();
  delays_ = VerbDelays::of_worker(cluster_->options.verb_delays, cluster_->topology(), worker_,
                                  incarnation_);
}

Status TcpEndpoint::start() {
  CHECK(epoll_.get() < 0 && (admission_ == nullptr) == (listener_.get() < 0));
  epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
  self_.inbox->event.reset(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (epoll_.get() < 0 || self_.inbox->event.get() < 0) return Status::from_errno("epoll_create1");
  self_.epoll = epoll_.get();
  bool added = add_event(epoll_.get(), self_.inbox->event.get(), kWakeId);
  const int members = cluster_->membership->wait_fd();
  if (members >= 0) added = added && add_event(epoll_.get(), members, kMembersId);
  if (admission_ != nullptr) {
    added = added && add_event(epoll_.get(), listener_.get(), kListenerId);
    const uint64_t chunks = cluster_->topology().region_bytes / ShmRegions::kChunkBytes + 1;
    host_.reset(new TcpServerConnection::Host{
        *cluster_, *admission_, cluster_->regions->at(cluster_->own_node), CpuVerbs(),
        std::vector<Verb>(kTcpVerbsMax), std::vector<bool>(chunks), epoll_.get(), delays_});
    CHECK(host_->region != nullptr);
  }
  return added ? Status() : Status::from_errno("epoll_ctl");
}

TcpEndpoint::~TcpEndpoint() {
  if (getpid() == owner_pid_) {
    if (admission_ != nullptr) {
      const std::lock_guard<std::mutex> lock(cluster_->admissions_mutex);
      for (std::shared_ptr<TcpAdmission>& admission : cluster_->admissions) {
        if (admission == admission_) admission.reset();
      }
    }
    handler_ = nullptr;
    // What is not waited for must still happen: it may be the release of a lock. If it cannot,
    // this worker stays a member until its process ends, and is resolved then.
    if (deliver_all_passive()) cluster_->membership->leave(self_.claim);
  }
  for (const Block& block : blocks_) munmap(block.start, block.bytes);
}

bool TcpEndpoint::deliver_all_passive() {
  // Completions of coroutines that waited are not delivered: those no longer exist.
  post_delayed_passive();
  std::erase_if(own_chains_, [](const OwnChain& chain) { return chain.completion != nullptr; });
  carry_out_own();
  const uint64_t deadline_us = local_us() + kPartingUsMax;
  bool all = true;
  for (TcpPeer* peer : known_peers_) {
    peer->forget_completions();
    while (peer->owes() && incarnation_of(worker_) == incarnation_) {
      if (local_us() > deadline_us) {
        all = false;
        break;
      }
      // Its answer is the answer to everything before it.
      peer->confirm(local_us());
      poll();
      wait(now_us() + 1'000);
    }
  }
  return all;
}

TcpPeer& TcpEndpoint::peer_of(NodeId node, uint16_t thread) {
  CHECK(node < ways_.size() && thread < cluster_->topology().threads_per_node);
  std::unique_ptr<TcpPeer>& peer = peers_[cluster_->topology().worker_of(node, thread)];
  if (peer == nullptr) {
    peer = std::make_unique<TcpPeer>(self_, ways_[node], node, thread);
    known_peers_.push_back(peer.get());
  }
  return *peer;
}

void TcpEndpoint::ring(NodeId node, std::span<const Verb> chain, Completion* completion) {
  check_chain(node, chain, cluster_->topology());
  if (delays_ == nullptr) return post(node, chain, completion);
  delayed_.push_back({node, {chain.begin(), chain.end()}, completion});
}

void TcpEndpoint::post(NodeId node, std::span<const Verb> chain, Completion* completion) {
  DCHECK(!chain.empty() && (completion == nullptr || completion->outstanding > 0));
  const Topology& topology = cluster_->topology();
  if (host_ != nullptr && node == cluster_->own_node) {
    own_chains_.push_back({own_verbs_.size(), chain.size(), completion});
    own_verbs_.insert(own_verbs_.end(), chain.begin(), chain.end());
    return;
  }
  // One thread serves all of a worker's verbs, so that they stay in order.
  TcpPeer& peer = peer_of(node, static_cast<uint16_t>(worker_ % topology.threads_per_node));
  peer.post(chain, completion, local_us());
  if (!peer.open()) next_tick_us_ = 0;
}

bool TcpEndpoint::carry_out_own() {
  if (own_chains_.empty()) return false;
  std::swap(own_chains_, own_chains_now_);
  std::swap(own_verbs_, own_verbs_now_);
  for (const OwnChain& chain : own_chains_now_) {
    DCHECK(chain.first_verb + chain.verb_count <= own_verbs_now_.size());
    for (size_t i = 0; i < chain.verb_count; ++i) {
      host_->cpu.carry_out(own_verbs_now_[chain.first_verb + i], host_->region);
    }
    if (chain.completion != nullptr) chain.completion->finish_one();
  }
  own_chains_now_.clear();
  own_verbs_now_.clear();
  return true;
}

bool TcpEndpoint::send(WorkerId to, std::span<const std::byte> datagram) {
  const Topology& topology = cluster_->topology();
  CHECK(!datagram.empty() && datagram.size() <= kTcpDatagramBytesMax && to < topology.workers_max);
  // Two coordinators never talk, and no worker sends to itself.
  CHECK(to != worker_ && (host_ != nullptr || topology.is_node_worker(to)));
  const uint32_t incarnation = incarnation_of(to);
  if (incarnation == 0) return true;  // lost
  if (delays_ != nullptr) delays_->before_message();
  if (topology.is_node_worker(to)) {
    TcpPeer& peer = peer_of(static_cast<NodeId>(to / topology.threads_per_node),
                            static_cast<uint16_t>(to % topology.threads_per_node));
    const bool sent = peer.send(datagram);
    if (!peer.open()) next_tick_us_ = 0;
    return sent;
  }
  const size_t place = server_connection_of_[to];
  if (place == kNoServerConnection ||
      server_connections_[place]->claim().incarnation != incarnation) {
    return true;  // lost
  }
  return server_connections_[place]->send(datagram);
}

void TcpEndpoint::deliver(WorkerId from, std::span<const std::byte> datagram) {
  if (handler_) handler_(from, datagram);
}

// ---- poll()

bool TcpEndpoint::poll() {
  bool any = take_answers();
  if (delays_ != nullptr) any |= post_delayed();
  flush_all();
  any |= handle_events();
  any |= carry_out_own();
  any |= tick();
  flush_all();  // replies, and what a new connection had waited for
  return any;
}

bool TcpEndpoint::take_answers() {
  if (!self_.inbox->any.load(std::memory_order_acquire)) return false;
  std::vector<TcpInbox::Ticket> tickets;
  {
    const std::lock_guard<std::mutex> lock(self_.inbox->mutex);
    tickets.swap(self_.inbox->tickets);
    self_.inbox->any.store(false);
  }
  for (const TcpInbox::Ticket& ticket : tickets) {
    CHECK(ticket.thread < peers_.size() && peers_[ticket.thread] != nullptr);
    peers_[ticket.thread]->on_answer(ticket.asked, ticket.answer);
  }
  next_tick_us_ = 0;
  return !tickets.empty();
}

void TcpEndpoint::flush_all() {
  for (TcpPeer* peer : known_peers_) {
    if (peer->unsent()) peer->flush();
  }
  for (size_t place = 0; place < server_connections_.size(); ++place) {
    TcpServerConnection* connection = server_connections_[place].get();
    if (connection != nullptr && connection->unsent() && !connection->flush()) {
      end_server_connection(place, connection->why());
    }
  }
}

bool TcpEndpoint::handle_events() {
  if (event_count_ <= 0) event_count_ = epoll_wait(epoll_.get(), events_.data(), kEventsPerPoll, 0);
  const int count = std::exchange(event_count_, 0);
  bool any = false;
  for (int i = 0; i < count; ++i) {
    handle_event(events_[static_cast<size_t>(i)].data.u64, events_[static_cast<size_t>(i)].events,
                 &any);
  }
  return any;
}

void TcpEndpoint::handle_event(uint64_t id, uint32_t events, bool* any) {
  if (id == kWakeId) {
    uint64_t count;
    if (read(self_.inbox->event.get(), &count, sizeof(count)) < 0) return;
  } else if (id == kMembersId) {
    *any |= cluster_->membership->poll();
  } else if (id == kListenerId) {
    accept_connections();
  } else if (id >= kServerConnectionId) {
    *any |= drive_connection(static_cast<size_t>(id - kServerConnectionId), events);
  } else {
    CHECK(id < peers_.size() && peers_[id] != nullptr);  // an id of add_event() or watch()
    TcpPeer& peer = *peers_[id];
    const auto from = static_cast<WorkerId>(id);
    *any |= peer.on_event(events,
                          [&](std::span<const std::byte> datagram) { deliver(from, datagram); });
    if (!peer.open()) next_tick_us_ = 0;
  }
}

// Notices what takes too long or has gone: on every change among the members, and now and then.
bool TcpEndpoint::tick() {
  const uint64_t now = local_us();
  const uint64_t version = cluster_->membership->version();
  if (now < next_tick_us_ && version == seen_version_) return false;
  seen_version_ = version;
  next_tick_us_ = now + kTickUs;
  cluster_->membership->poll();
  bool any = false;
  for (TcpPeer* peer : known_peers_) any |= peer->tick(now, &next_tick_us_);
  spread_losses();
  for (size_t place = 0; place < server_connections_.size(); ++place) {
    TcpServerConnection* connection = server_connections_[place].get();
    if (connection == nullptr || !connection->over(now)) continue;
    end_server_connection(place, connection->open() ? "its worker is gone" : "it does not greet");
  }
  return any;
}

void TcpEndpoint::spread_losses() {
  for (TcpPeer* lost : known_peers_) {
    if (!lost->take_loss()) continue;
    for (TcpPeer* peer : known_peers_) {
      if (peer != lost && peer->node() == lost->node()) peer->lose_with_node();
    }
  }
}

// ---- Server-side connections

void TcpEndpoint::accept_connections() {
  for (int i = 0; i < kAcceptsPerPoll; ++i) {
    SocketAddress peer;
    Descriptor socket = accept_from(listener_, &peer);
    if (socket.get() < 0) return;
    size_t unauthenticated = 0, oldest = kNoServerConnection, place = server_connections_.size();
    for (size_t p = 0; p < server_connections_.size(); ++p) {
      if (server_connections_[p] == nullptr) {
        place = p;
      } else if (!server_connections_[p]->open()) {
        ++unauthenticated;
        if (oldest == kNoServerConnection ||
            server_connections_[p]->came_us() < server_connections_[oldest]->came_us()) {
          oldest = p;
        }
      }
    }
    if (unauthenticated >= kUnauthenticatedMax) {
      CHECK(oldest != kNoServerConnection);
      end_server_connection(oldest, "others came that have not greeted either");
      place = oldest;
    }
    if (place == server_connections_.size()) server_connections_.emplace_back();
    server_connections_[place] = std::make_unique<TcpServerConnection>(
        *host_, std::move(socket), peer.to_string(), kServerConnectionId + place, local_us());
    if (!server_connections_[place]->start()) {
      end_server_connection(place, server_connections_[place]->why());
    }
  }
}

bool TcpEndpoint::drive_connection(size_t place, uint32_t events) {
  if (place >= server_connections_.size() || server_connections_[place] == nullptr) return false;
  TcpServerConnection& connection = *server_connections_[place];
  const bool was_open = connection.open();
  const bool alive = connection.on_event(
      events,
      [this](WorkerId from, std::span<const std::byte> datagram) { deliver(from, datagram); });
  const bool any = connection.take_activity();
  if (!was_open && connection.open()) {
    CHECK(connection.claim().worker < server_connection_of_.size());
    const size_t earlier = server_connection_of_[connection.claim().worker];
    if (earlier != kNoServerConnection && earlier != place) {
      end_server_connection(earlier, "it came again");
    }
    server_connection_of_[connection.claim().worker] = place;
  }
  if (!alive) end_server_connection(place, connection.why());
  return any;
}

void TcpEndpoint::end_server_connection(size_t place, const std::string& why) {
  CHECK(place < server_connections_.size() && server_connections_[place] != nullptr);
  const std::unique_ptr<TcpServerConnection> ended = std::move(server_connections_[place]);
  if (!ended->open()) {
    cluster_->log->say("refused " + ended->peer() + " at the data port: " + why);
    return;
  }
  const WorkerId worker = ended->claim().worker;
  if (server_connection_of_[worker] == place) server_connection_of_[worker] = kNoServerConnection;
  // An ordered end needs no words.
  if (why == "the connection ended" || why == "its worker is gone" || why == "it came again") {
    return;
  }
  cluster_->log->say("closed the connection of worker " + std::to_string(worker) + " at " +
                     ended->peer() + ": " + why);
}

// ---- Memory

Result<std::byte*> TcpEndpoint::allocate_registered(size_t bytes) {
  const size_t rounded = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  if (rounded == 0) return Status(Code::kInvalidArgument, "empty registered buffer");
  void* start = mmap(nullptr, rounded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) return Status(Code::kNoSpace, "registered memory");
  blocks_.push_back(Block{start, rounded});
  return static_cast<std::byte*>(start);
}

Status TcpEndpoint::back_region(uint64_t offset, uint64_t bytes) {
  CHECK(host_ != nullptr);
  return cluster_->regions->back(cluster_->own_node, offset, bytes);
}

void TcpEndpoint::expect_backing(uint64_t offset, uint64_t bytes) {
  CHECK(host_ != nullptr);
  cluster_->regions->back_ahead(cluster_->own_node, offset, bytes);
}

}  // namespace rdmacc
