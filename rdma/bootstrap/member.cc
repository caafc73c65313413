#include "rdma/bootstrap/member.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>

#include "rdma/bootstrap/cluster_config.h"

namespace rdmacc {
namespace {

constexpr int kServeMs = 200;  // how often the thread of a node checks its deadlines
constexpr int kWaitMs = 5;
constexpr int kEventsPerWait = 64;
constexpr uint64_t kListenerId = 1ull << 62, kNudgeId = kListenerId + 1;
constexpr uint64_t kFirstIncoming = 1ull << 32;
constexpr Registrar::Owner kSelf = 1;
constexpr int kBacklog = 512;
constexpr int kRoundsMax = 8;  // of answers that make others speak, before anything else

}  // namespace

Result<std::unique_ptr<Membership>> Membership::open(const ClusterConfig& config) {
  return Member::make(config, kNoNode);
}

Result<std::unique_ptr<Membership>> Membership::open_as_node(const ClusterConfig& config,
                                                             NodeId node) {
  if (node >= config.nodes.size()) {
    return Status(Code::kInvalidArgument, "there is no node " + std::to_string(node));
  }
  return Member::make(config, node);
}

void Membership::destroy(const ClusterConfig& config) {
  ClaimTable::destroy(config.name);
  for (size_t node = 0; node < config.nodes.size(); ++node) {
    unlock_node_for_good(config.name, static_cast<NodeId>(node));
  }
}

bool Membership::exists(const ClusterConfig& config) { return ClaimTable::exists(config.name); }

Member::Member(const ClusterConfig& config, NodeId node)
    : config_(config),
      own_node_(node),
      owner_pid_(getpid()),
      log_(config.log),
      incarnations_(config.topology.workers_max),
      tokens_(config.topology.workers_max),
      outgoing_(config.topology.nodes),
      next_incoming_(kFirstIncoming) {
  self_.owner = kSelf;
  self_.node = node;
  self_.process = process_;
  self_.address = "this process";
}

Result<std::unique_ptr<Membership>> Member::make(const ClusterConfig& config, NodeId node) {
  RDMACC_RETURN_IF_ERROR(check_cluster_config(config));
  std::unique_ptr<Member> made(new Member(config, node));
  RDMACC_RETURN_IF_ERROR(made->start());
  return std::unique_ptr<Membership>(std::move(made));
}

Status Member::start() {
  CHECK(tls_ == nullptr && !thread_.joinable());
  Result<SecretKey> key = load_cluster_key(config_.secret_file, config_.name);
  if (!key.ok()) return key.status();
  Result<std::unique_ptr<TlsContext>> tls = TlsContext::make(config_.name, *key);
  OPENSSL_cleanse(key->data(), key->size());
  if (!tls.ok()) return tls.status();
  tls_ = std::move(*tls);
  for (const HostPort& node : config_.nodes) {
    Result<SocketAddress> address = resolve_address(node.host, node.port);
    if (!address.ok()) return address.status();
    addresses_.push_back(*address);
  }
  epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
  if (epoll_.get() < 0) return Status::from_errno("epoll_create1");
  if (!is_node()) return Status();

  Result<int> lock = lock_node(config_.name, own_node_);
  if (!lock.ok()) return lock.status();
  lock_.reset(*lock);
  if (own_node_ == 0) {
    Result<std::unique_ptr<Registrar>> registrar =
        Registrar::open(config_, [this](WorkerId worker, uint32_t incarnation) {
          set_incarnation(worker, incarnation, nullptr);
        });
    if (!registrar.ok()) return registrar.status();
    registrar_ = std::move(*registrar);
    clock_.set_epoch(registrar_->epoch_ns());
  }
  Result<Descriptor> listener = listen_at(addresses_[own_node_], kBacklog);
  if (!listener.ok()) return listener.status();
  listener_ = std::move(*listener);
  nudge_.reset(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (nudge_.get() < 0) return Status::from_errno("eventfd");
  for (const auto& [fd, id] :
       {std::pair(listener_.get(), kListenerId), std::pair(nudge_.get(), kNudgeId)}) {
    epoll_event event = {};
    event.events = EPOLLIN;
    event.data.u64 = id;
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
      return Status::from_errno("epoll_ctl");
    }
  }
  thread_ = std::thread([this] { serve(); });
  return Status();
}

Member::~Member() {
  if (!thread_.joinable()) return;
  if (getpid() != owner_pid_) {  // it runs in the parent process
    thread_.detach();
    return;
  }
  stop_.store(true);
  wake_thread();
  thread_.join();
}

void Member::wake_thread() {
  const uint64_t one = 1;
  if (nudge_.get() >= 0 && write(nudge_.get(), &one, sizeof(one)) < 0) return;  // it is awake
}

void Member::serve() {
  while (!stop_.load()) pump_once(kServeMs);
}

// ---- The event loop

void Member::pump_once(int timeout_ms) {
  epoll_event events[kEventsPerWait];
  const int count = epoll_wait(epoll_.get(), events, kEventsPerWait, timeout_ms);
  uint64_t ready[kEventsPerWait];
  size_t ready_count = 0;
  for (int i = 0; i < count; ++i) ready[ready_count++] = events[i].data.u64;
  const std::lock_guard<std::mutex> lock(mutex_);
  pump_locked({ready, ready_count});
  changed_.notify_all();
}

bool Member::pump_locked(std::span<const uint64_t> ready) {
  const uint64_t now_ns = monotonic_now_ns();
  bool any = false;
  for (const uint64_t id : ready) {
    if (id == kListenerId) {
      accept_all(now_ns);
    } else if (id == kNudgeId) {
      uint64_t count;
      if (read(nudge_.get(), &count, sizeof(count)) < 0) continue;  // another was faster
    } else if (id >= kFirstIncoming) {
      any |= drive_incoming(id, now_ns);
    } else {
      any |= drive_outgoing(static_cast<NodeId>(id), now_ns);
    }
  }
  // The one channel that there always is. Others are made on demand.
  if (own_node_ != 0 && !claims_.empty()) connect_to(0, now_ns);
  refresh_clock(now_ns);
  if (registrar_ != nullptr) registrar_->tick(now_ns);
  // What is said makes others answer at once, which may be what a member waits for.
  for (int round = 0; round < kRoundsMax; ++round) {
    settle(now_ns);
    if (!drive_queued(now_ns)) return any;
    any = true;
  }
  wake_thread();  // there may be more
  return any;
}

// What was queued on other channels than those that were ready, and greetings that take too long.
bool Member::drive_queued(uint64_t now_ns) {
  const auto due = [&](SecureChannel& channel, bool greeted, uint64_t deadline_ns) {
    if (!greeted && now_ns > deadline_ns) {
      channel.close(Status(Code::kUnavailable, "it does not greet"));
    }
    return channel.state() == SecureChannel::State::kClosed || channel.wants_write();
  };
  bool any = false;
  for (NodeId node = 0; node < outgoing_.size(); ++node) {
    const Outgoing& out = outgoing_[node];
    if (out.channel != nullptr && due(*out.channel, out.greeted, out.deadline_ns)) {
      any |= drive_outgoing(node, now_ns);
    }
  }
  std::vector<uint64_t> incoming;
  for (const auto& [id, in] : incoming_) {
    if (due(*in.channel, in.greeted, in.deadline_ns)) incoming.push_back(id);
  }
  for (const uint64_t id : incoming) any |= drive_incoming(id, now_ns);
  return any;
}

void Member::watch(SecureChannel& channel, uint64_t id, bool fresh, bool* interested_in_write) {
  if (channel.state() == SecureChannel::State::kClosed) return;
  const bool wants = channel.wants_write();
  if (!fresh && wants == *interested_in_write) return;
  *interested_in_write = wants;
  epoll_event event = {};
  event.events = EPOLLIN | (wants ? EPOLLOUT : 0u);
  event.data.u64 = id;
  if (epoll_ctl(epoll_.get(), fresh ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, channel.fd(), &event) != 0) {
    channel.close(Status::from_errno("epoll_ctl"));
  }
}

void Member::set_incarnation(WorkerId worker, uint32_t incarnation, const RandomToken* token) {
  CHECK(worker < incarnations_.size());
  if (token != nullptr) tokens_[worker] = *token;
  const uint32_t before = incarnations_[worker].exchange(incarnation, std::memory_order_acq_rel);
  if (before == incarnation) return;
  version_.fetch_add(1, std::memory_order_acq_rel);
  // Every node ends the access of the worker that was there, not only when node 0 asks.
  if (is_node() && before != 0 && fence_) fence_({worker, before});
}

bool Member::wait_until_ns(uint64_t deadline_ns, const std::function<bool()>& done) {
  while (true) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      if (thread_.joinable() && !done()) {
        changed_.wait_for(lock, std::chrono::milliseconds(kWaitMs), done);
      }
      if (done()) return true;
    }
    if (monotonic_now_ns() >= deadline_ns) return false;
    if (!thread_.joinable()) pump_once(kWaitMs);
  }
}

// ---- What the fabrics call

uint32_t Member::incarnation_of(WorkerId worker) {
  CHECK(worker < incarnations_.size());
  return incarnations_[worker].load(std::memory_order_acquire);
}

bool Member::poll() {
  if (thread_.joinable()) return false;
  epoll_event events[kEventsPerWait];
  const int count = epoll_wait(epoll_.get(), events, kEventsPerWait, 0);
  uint64_t ready[kEventsPerWait];
  for (int i = 0; i < count; ++i) ready[i] = events[i].data.u64;
  const std::lock_guard<std::mutex> lock(mutex_);
  return pump_locked({ready, static_cast<size_t>(count > 0 ? count : 0)});
}

void Member::post(NodeId node, Topic topic, std::span<const std::byte> request, Answer answer) {
  CHECK(node < config_.nodes.size() && request.size() <= kMessageBytesMax);
  const ExchangeMessage message{static_cast<uint16_t>(topic), request};
  const std::lock_guard<std::mutex> lock(mutex_);
  ask(node, ControlType::kExchange, encode(message), std::move(answer));
  pump_locked({});
}

void Member::ping(NodeId node, Pong pong) {
  CHECK(node < config_.nodes.size());
  const std::lock_guard<std::mutex> lock(mutex_);
  ask(node, ControlType::kPing, {}, [pong = std::move(pong)](const Result<Bytes>& answer) {
    if (!answer.ok()) return pong(answer.status());
    ClockReading reading;
    if (!decode(answer.value(), reading))
      return pong(Status(Code::kCorrupt, "an answer to a ping"));
    pong(reading.memory_id);
  });
  pump_locked({});
}

Result<Membership::Bytes> Member::call(NodeId node, ControlType type,
                                       std::span<const std::byte> payload, uint64_t timeout_ns) {
  struct Waiting {
    bool done = false;
    Result<Bytes> answer = Bytes();
  };
  const auto waiting = std::make_shared<Waiting>();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ask(node, type, payload, [waiting](Result<Bytes> answer) {
      waiting->answer = std::move(answer);
      waiting->done = true;
    });
    pump_locked({});
  }
  if (wait_until_ns(monotonic_now_ns() + timeout_ns, [&] { return waiting->done; })) {
    return std::move(waiting->answer);
  }
  return Status(Code::kUnavailable, "node " + std::to_string(node) + " does not answer");
}

Result<Membership::Bytes> Member::exchange(NodeId node, Topic topic,
                                           std::span<const std::byte> request,
                                           uint32_t timeout_ms) {
  CHECK(node < config_.nodes.size() && request.size() <= kMessageBytesMax);
  const ExchangeMessage message{static_cast<uint16_t>(topic), request};
  return call(node, ControlType::kExchange, encode(message), uint64_t{timeout_ms} * 1'000'000);
}

void Member::set_handler(Topic topic, Handler handler) {
  CHECK(handler != nullptr);
  const std::lock_guard<std::mutex> lock(mutex_);
  handlers_[topic] = std::move(handler);
}

void Member::set_fence(Fence fence) {
  const std::lock_guard<std::mutex> lock(mutex_);
  fence_ = std::move(fence);
}

std::vector<WorkerId> Member::departed() {
  if (registrar_ == nullptr) return {};
  const std::lock_guard<std::mutex> lock(mutex_);
  return registrar_->departed();
}

void Member::release(WorkerId worker) {
  if (registrar_ == nullptr) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  registrar_->release(worker);
}

}  // namespace rdmacc
