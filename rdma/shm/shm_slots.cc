#include <unistd.h>

#include "rdma/shm/shm_control.h"

// Which process holds which worker id, and the names of the objects.

namespace rdmacc {

uint32_t ShmControl::claim(WorkerId worker) {
  std::atomic<uint64_t>& word = slot(worker).owner;
  uint64_t seen = word.load(std::memory_order_acquire);
  const ShmOwner before = ShmOwner::unpack(seen);
  if (before.state != ShmOwner::State::kFree) {
    // A coordinator's slot must be released first: its transactions are still to be resolved.
    if (!topology_.is_node_worker(worker) || before.process().alive()) return 0;
  }
  const HostProcess self = HostProcess::self();
  CHECK(self.pid < 1u << 22);
  ShmOwner owner;
  owner.state = ShmOwner::State::kClaimed;
  owner.pid = self.pid;
  owner.start_time = self.start_time;
  owner.incarnation = before.incarnation == ShmOwner::kIncarnationMax ? 1 : before.incarnation + 1;
  if (!word.compare_exchange_strong(seen, owner.pack(), std::memory_order_acq_rel)) return 0;
  return owner.incarnation;
}

void ShmControl::publish(WorkerId worker, uint32_t incarnation) {
  std::atomic<uint64_t>& word = slot(worker).owner;
  ShmOwner owner = ShmOwner::unpack(word.load(std::memory_order_acquire));
  CHECK(owner.state == ShmOwner::State::kClaimed && owner.incarnation == incarnation);
  owner.state = ShmOwner::State::kLive;
  word.store(owner.pack(), std::memory_order_release);
}

void ShmControl::leave(WorkerId worker, uint32_t incarnation) {
  std::atomic<uint64_t>& word = slot(worker).owner;
  uint64_t seen = word.load(std::memory_order_acquire);
  const ShmOwner owner = ShmOwner::unpack(seen);
  // After fork() the child has a copy of its parent's endpoint, but not its slot.
  if (owner.incarnation != incarnation || owner.pid != static_cast<uint32_t>(getpid())) return;
  ShmOwner free;
  free.incarnation = incarnation;
  word.compare_exchange_strong(seen, free.pack(), std::memory_order_acq_rel);
}

void ShmControl::release(WorkerId worker) {
  std::atomic<uint64_t>& word = slot(worker).owner;
  uint64_t seen = word.load(std::memory_order_acquire);
  const ShmOwner owner = ShmOwner::unpack(seen);
  if (owner.state == ShmOwner::State::kFree || owner.process().alive()) return;
  ShmOwner free;
  free.incarnation = owner.incarnation;
  word.compare_exchange_strong(seen, free.pack(), std::memory_order_acq_rel);
}

std::vector<WorkerId> ShmControl::departed() const {
  std::vector<WorkerId> workers;
  for (WorkerId worker = topology_.node_workers(); worker < topology_.workers_max; ++worker) {
    const uint64_t word = slot(worker).owner.load(std::memory_order_acquire);
    const ShmOwner owner = ShmOwner::unpack(word);
    if (owner.state != ShmOwner::State::kFree && !owner.process().alive()) {
      workers.push_back(worker);
    }
  }
  return workers;
}

std::string shm_control_name(const std::string& cluster) { return "/rdmacc." + cluster + ".ctl"; }

std::string shm_region_name(const std::string& cluster, NodeId node) {
  return "/rdmacc." + cluster + ".node" + std::to_string(node);
}

}  // namespace rdmacc
