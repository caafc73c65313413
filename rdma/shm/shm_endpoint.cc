#include "rdma/shm/shm_endpoint.h"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>

#include "rdma/fabric/memory_region.h"

namespace rdmacc {
namespace {

constexpr uint64_t kLivenessUs = 50'000;  // how old the answer of incarnation_of() may be
constexpr int kDatagramsPerPoll = 64;     // of one sender, so that none starves the others

void futex_wake(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

// The owner of `slot` has set `sleeping` before it checked for work the last time, so either it
// sees what was published before this, or it is woken.
void wake_if_sleeping(ShmSlot& slot) {
  if (slot.sleeping.load(std::memory_order_seq_cst) == 0) return;
  if (slot.sleeping.exchange(0, std::memory_order_seq_cst) != 0) futex_wake(slot.sleeping);
}

}  // namespace

ShmEndpoint::ShmEndpoint(std::shared_ptr<ShmCluster> cluster, WorkerId worker, uint32_t incarnation)
    : cluster_(std::move(cluster)),
      control_(*cluster_->control),
      regions_(*cluster_->regions),
      slot_(control_.slot(worker)),
      process_(HostProcess::self()),
      random_(HostClock::monotonic_ns() ^ (static_cast<uint64_t>(process_.pid) << 32) ^ worker),
      delays_(VerbDelays::of_worker(cluster_->options.verb_delays, control_.topology(), worker,
                                    incarnation)),
      mapped_(delays_ == nullptr && cluster_->options.mapped
                  ? std::make_unique<Mapped>(regions_, control_.topology())
                  : nullptr),
      liveness_(control_.topology().workers_max) {
  worker_ = worker;
  incarnation_ = incarnation;
  slot_.sleeping.store(0, std::memory_order_seq_cst);
  // The rings to a former owner may be full of what it never read: try all of them once.
  for (WorkerId from = 0; from < control_.topology().workers_max; ++from) {
    const uint64_t word = control_.slot(from).owner.load(std::memory_order_acquire);
    if (control_.has_ring(from, worker) && ShmOwner::unpack(word).state == ShmOwner::State::kLive) {
      control_.dirty_words(worker)[from / 64].fetch_or(1ull << (from % 64));
    }
  }
  control_.publish(worker, incarnation);
}

ShmEndpoint::~ShmEndpoint() {
  if (static_cast<uint32_t>(getpid()) == process_.pid) {
    carry_out_passive();
    control_.leave(worker_, incarnation_);
  }
  for (const Block& block : blocks_) munmap(block.start, block.bytes);
}

uint64_t ShmEndpoint::now_ns() {
  const uint64_t now = clock_.now_ns();
  return now > control_.epoch_ns() ? now - control_.epoch_ns() : 0;
}

bool ShmEndpoint::send(WorkerId to, std::span<const std::byte> datagram) {
  const bool sent = send_quietly(to, datagram);
  wake_if_sleeping(control_.slot(to));
  return sent;
}

bool ShmEndpoint::send_quietly(WorkerId to, std::span<const std::byte> datagram) {
  CHECK(!datagram.empty() && datagram.size() <= kShmDatagramBytesMax);
  CHECK(control_.has_ring(worker_, to));  // two coordinators never talk
  ShmSlot& receiver = control_.slot(to);
  const ShmOwner owner = ShmOwner::unpack(receiver.owner.load(std::memory_order_acquire));
  if (owner.state != ShmOwner::State::kLive) return true;  // lost
  if (delays_ != nullptr) delays_->before_message();
  const bool sent = control_.ring(worker_, to).push({incarnation_, owner.incarnation}, datagram);
  control_.dirty_words(to)[worker_ / 64].fetch_or(1ull << (worker_ % 64),
                                                  std::memory_order_seq_cst);
  // When the ring is full: the receiver may not know yet.
  if (!sent) wake_if_sleeping(receiver);
  return sent;
}

void ShmEndpoint::set_datagram_handler(DatagramHandler handler) { handler_ = std::move(handler); }

bool ShmEndpoint::poll() {
  const bool carried_out = carry_out_posted();
  return receive() || carried_out;
}

bool ShmEndpoint::receive() {
  std::atomic<uint64_t>* dirty = control_.dirty_words(worker_);
  bool any = false;
  for (size_t i = 0; i < control_.dirty_word_count(); ++i) {
    if (dirty[i].load(std::memory_order_relaxed) == 0) continue;
    uint64_t senders = dirty[i].exchange(0, std::memory_order_seq_cst);
    while (senders != 0) {
      const auto bit = static_cast<size_t>(std::countr_zero(senders));
      senders &= senders - 1;
      const auto from = static_cast<WorkerId>(i * 64 + bit);
      if (!control_.has_ring(from, worker_)) continue;  // no correct worker sets such a bit
      receive_from(from);
      any = true;
    }
  }
  return any;
}

void ShmEndpoint::receive_from(WorkerId from) {
  ShmRing ring = control_.ring(from, worker_);
  const uint64_t word = control_.slot(from).owner.load(std::memory_order_acquire);
  const ShmIncarnations incarnations{ShmOwner::unpack(word).incarnation, incarnation_};
  for (int i = 0; i < kDatagramsPerPoll; ++i) {
    const std::span<const std::byte> datagram = ring.front(incarnations);
    if (datagram.empty()) return;
    if (handler_) handler_(from, datagram);
    ring.pop();
  }
  control_.dirty_words(worker_)[from / 64].fetch_or(1ull << (from % 64));
}

bool ShmEndpoint::anything_dirty() const {
  const std::atomic<uint64_t>* dirty = control_.dirty_words(worker_);
  for (size_t i = 0; i < control_.dirty_word_count(); ++i) {
    if (dirty[i].load(std::memory_order_seq_cst) != 0) return true;
  }
  return false;
}

void ShmEndpoint::wait(uint64_t deadline_us) {
  const uint64_t now = now_us();
  if (!posted_.chains.empty() || deadline_us <= now) return;
  uint64_t us = std::min<uint64_t>(deadline_us - now, cluster_->options.wait_us_max);
  if (!executing_.chains.empty()) us = std::min(us, delays_->held_us());
  if (us == 0) return;
  slot_.sleeping.store(1, std::memory_order_seq_cst);
  if (!anything_dirty() && !wake_requested_.load(std::memory_order_seq_cst)) {
    timespec timeout;
    timeout.tv_sec = static_cast<time_t>(us / 1'000'000);
    timeout.tv_nsec = static_cast<long>(us % 1'000'000) * 1000;
    // However it ends (woken, timeout, a signal): the caller checks everything again.
    syscall(SYS_futex, reinterpret_cast<uint32_t*>(&slot_.sleeping), FUTEX_WAIT, 1, &timeout,
            nullptr, 0);
  }
  slot_.sleeping.store(0, std::memory_order_seq_cst);
  wake_requested_.store(false, std::memory_order_seq_cst);
}

void ShmEndpoint::wake() {
  wake_requested_.store(true, std::memory_order_seq_cst);
  wake_if_sleeping(slot_);
}

Result<std::byte*> ShmEndpoint::allocate_registered(size_t bytes) {
  const size_t rounded = (bytes + kShmPageBytes - 1) / kShmPageBytes * kShmPageBytes;
  if (rounded == 0) return Status(Code::kInvalidArgument, "empty registered buffer");
  void* start = mmap(nullptr, rounded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) return out_of_registered_memory();
  blocks_.push_back(Block{start, rounded});
  return static_cast<std::byte*>(start);
}

NodeId ShmEndpoint::own_node() const {
  return static_cast<NodeId>(worker_ / control_.topology().threads_per_node);
}

std::byte* ShmEndpoint::local_region() {
  return control_.topology().is_node_worker(worker_) ? regions_.at(own_node()) : nullptr;
}

Status ShmEndpoint::back_region(uint64_t offset, uint64_t bytes) {
  CHECK(control_.topology().is_node_worker(worker_));
  return regions_.back(own_node(), offset, bytes);
}

uint32_t ShmEndpoint::incarnation_of(WorkerId worker) {
  const uint64_t word = control_.slot(worker).owner.load(std::memory_order_acquire);
  const ShmOwner owner = ShmOwner::unpack(word);
  if (owner.state != ShmOwner::State::kLive) return 0;
  if (owner.pid == process_.pid && owner.start_time == process_.start_time)
    return owner.incarnation;
  Liveness& known = liveness_[worker];
  const uint64_t now = now_us();
  if (known.owner_word != word || now - known.checked_us >= kLivenessUs) {
    known = Liveness{word, now, owner.process().alive()};
  }
  return known.alive ? owner.incarnation : 0;
}

}  // namespace rdmacc
