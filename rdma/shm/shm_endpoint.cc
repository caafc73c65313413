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

constexpr uint64_t kLivenessNs = 50'000'000;  // how old the answer of incarnation_of() may be
// So often it reads the clock itself; else it relies on the worker's event loop to do so.
constexpr uint32_t kAskedPerReading = 16;
constexpr int kDatagramsPerPoll = 64;  // of one sender, so that none starves the others
constexpr int kLooksPerReading = 8;    // of spin(), of the clock
constexpr uint32_t kReceivesPerClearing = 4096;

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
      dirty_(control_.dirty_words(worker)),
      process_(HostProcess::self()),
      epoch_ns_(control_.epoch_ns()),
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
  const Topology& topology = control_.topology();
  const WorkerId peers =
      topology.is_node_worker(worker) ? topology.workers_max : topology.node_workers();
  for (WorkerId peer = 0; peer < peers; ++peer) {
    in_.push_back(control_.ring(peer, worker));
    out_.push_back(control_.ring(worker, peer));
  }
  heard_.resize(control_.dirty_word_count());
  // The rings to a former owner may be full of what it never read: try all of them once.
  for (WorkerId from = 0; from < control_.topology().workers_max; ++from) {
    const uint64_t word = control_.slot(from).owner.load(std::memory_order_acquire);
    if (control_.has_ring(from, worker) && ShmOwner::unpack(word).state == ShmOwner::State::kLive) {
      dirty_[from / 64].fetch_or(1ull << (from % 64));
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

bool ShmEndpoint::send(WorkerId to, std::span<const std::byte> datagram) {
  const bool sent = send_quietly(to, datagram);
  wake_if_sleeping(control_.slot(to));
  return sent;
}

bool ShmEndpoint::send_quietly(WorkerId to, std::span<const std::byte> datagram) {
  CHECK(!datagram.empty() && datagram.size() <= kShmDatagramBytesMax);
  CHECK(to < out_.size());  // two coordinators never talk
  ShmSlot& receiver = control_.slot(to);
  const ShmOwner owner = ShmOwner::unpack(receiver.owner.load(std::memory_order_acquire));
  if (owner.state != ShmOwner::State::kLive) return true;  // lost
  if (delays_ != nullptr) delays_->before_message();
  const bool sent = out_[to].push({incarnation_, owner.incarnation}, datagram);
  std::atomic<uint64_t>& senders = control_.dirty_words(to)[worker_ / 64];
  const uint64_t bit = 1ull << (worker_ % 64);
  if ((senders.load(std::memory_order_seq_cst) & bit) == 0) {
    senders.fetch_or(bit, std::memory_order_seq_cst);
  }
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
  const bool clears = ++receives_ % kReceivesPerClearing == 0;
  bool any = false;
  for (size_t i = 0; i < heard_.size(); ++i) {
    uint64_t senders = dirty_[i].load(std::memory_order_relaxed);
    if (senders == 0) continue;
    if (clears) dirty_[i].fetch_and(~(senders & ~heard_[i]), std::memory_order_seq_cst);
    if (clears) heard_[i] = 0;
    for (; senders != 0; senders &= senders - 1) {
      const auto bit = static_cast<size_t>(std::countr_zero(senders));
      const size_t from = i * 64 + bit;
      if (from >= in_.size()) {  // no correct worker sets such a bit
        dirty_[i].fetch_and(~(1ull << bit));
      } else if (in_[from].anything()) {
        heard_[i] |= 1ull << bit;
        if (clears) dirty_[i].fetch_or(1ull << bit);  // there may be more than is received now
        receive_from(static_cast<WorkerId>(from));
        any = true;
      }
    }
  }
  return any;
}

void ShmEndpoint::receive_from(WorkerId from) {
  ShmRing& ring = in_[from];
  ring.prefetch();
  const uint64_t word = control_.slot(from).owner.load(std::memory_order_acquire);
  const ShmIncarnations incarnations{ShmOwner::unpack(word).incarnation, incarnation_};
  for (int i = 0; i < kDatagramsPerPoll; ++i) {
    const std::span<const std::byte> datagram = ring.front(incarnations);
    if (datagram.empty()) return;
    if (handler_) handler_(from, datagram);
    ring.pop();
  }
}

bool ShmEndpoint::anything_there() const {
  for (size_t i = 0; i < heard_.size(); ++i) {
    for (uint64_t senders = dirty_[i].load(std::memory_order_relaxed); senders != 0;
         senders &= senders - 1) {
      const size_t from = i * 64 + static_cast<size_t>(std::countr_zero(senders));
      if (from >= in_.size() || in_[from].anything()) return true;
    }
  }
  return false;
}

// True: one of them has sent something.
bool ShmEndpoint::forget_senders() {
  bool any = false;
  for (size_t i = 0; i < heard_.size(); ++i) {
    uint64_t heard = 0;
    for (uint64_t senders = dirty_[i].exchange(0, std::memory_order_seq_cst); senders != 0;
         senders &= senders - 1) {
      const size_t from = i * 64 + static_cast<size_t>(std::countr_zero(senders));
      if (from < in_.size() && in_[from].anything()) heard |= senders & (0 - senders);
    }
    if (heard == 0) continue;
    dirty_[i].fetch_or(heard);
    any = true;
  }
  return any;
}

void ShmEndpoint::spin(uint64_t deadline_us) {
  if (!all_carried_out()) return;
  do {
    for (int look = 0; look < kLooksPerReading; ++look) {
      if (anything_there()) return;
      if (wake_requested_.load(std::memory_order_relaxed)) {
        wake_requested_.store(false, std::memory_order_seq_cst);
        return;
      }
      pause_processor();
    }
  } while (now_us() < deadline_us);
}

void ShmEndpoint::wait(uint64_t deadline_us) {
  const uint64_t now = now_us();
  if (!posted_.chains.empty() || deadline_us <= now) return;
  uint64_t us = std::min<uint64_t>(deadline_us - now, cluster_->options.wait_us_max);
  if (!executing_.chains.empty()) us = std::min(us, delays_->held_us());
  if (us == 0) return;
  slot_.sleeping.store(1, std::memory_order_seq_cst);
  if (!forget_senders() && !wake_requested_.load(std::memory_order_seq_cst)) {
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

void ShmEndpoint::expect_backing(uint64_t offset, uint64_t bytes) {
  CHECK(control_.topology().is_node_worker(worker_));
  regions_.back_ahead(own_node(), offset, bytes);
}

uint32_t ShmEndpoint::incarnation_of(WorkerId worker) {
  const uint64_t word = control_.slot(worker).owner.load(std::memory_order_acquire);
  Liveness& known = liveness_[worker];
  if (++liveness_asked_ % kAskedPerReading == 0) clock_.now_ns();
  const uint64_t now = clock_.last_ns();
  if (known.owner_word == word && now - known.checked_ns < kLivenessNs) [[likely]]
    return known.incarnation;
  const ShmOwner owner = ShmOwner::unpack(word);
  const bool own = owner.pid == process_.pid && owner.start_time == process_.start_time;
  const bool alive = owner.state == ShmOwner::State::kLive && (own || owner.process().alive());
  known = Liveness{word, now, alive ? owner.incarnation : 0};
  return known.incarnation;
}

}  // namespace rdmacc
