#include "rdma/sim/sim_endpoint.h"

#include <cstring>
#include <new>

#include "rdma/fabric/check_chain.h"
#include "rdma/fabric/memory_region.h"

namespace rdmacc {
namespace {

// Each worker's own chances do not depend on what the fabric draws in between.
uint64_t seed_of(const SimCluster& cluster, const SimInitiator& initiator) {
  Random mix(cluster.options.seed ^ (static_cast<uint64_t>(initiator.worker) << 32) ^
             initiator.incarnation);
  return mix.next();
}

}  // namespace

SimEndpoint::SimEndpoint(std::shared_ptr<SimCluster> cluster, WorkerId worker)
    : cluster_(std::move(cluster)),
      initiator_(cluster_->claim(worker, this)),
      random_(seed_of(*cluster_, *initiator_)) {
  worker_ = worker;
  incarnation_ = initiator_->incarnation;
}

SimEndpoint::~SimEndpoint() {
  forget_arrivals();
  cluster_->leave(initiator_);
  for (const Block& block : blocks_) {
    ::operator delete (block.start, std::align_val_t{kCacheLineBytes});
  }
}

void SimEndpoint::ring(NodeId node, std::span<const Verb> chain, Completion* completion) {
  if (initiator_->gone) return;
  check_chain(node, chain, cluster_->topology);
  for (const Verb& verb : chain) CHECK(registered(verb.local, verb.bytes));
  cluster_->ring(initiator_, node, chain, completion);
}

bool SimEndpoint::send(WorkerId to, std::span<const std::byte> datagram) {
  CHECK(to < cluster_->topology.workers_max && !datagram.empty());
  CHECK(datagram.size() <= FabricCapabilities().max_datagram_bytes);
  if (initiator_->gone) return true;
  if (cluster_->random.percent(cluster_->options.loss_percent)) {
    return cluster_->random.percent(50);  // lost on the way, or no room: both are legal
  }
  cluster_->send(initiator_, to, datagram);
  return true;
}

void SimEndpoint::set_datagram_handler(DatagramHandler handler) { handler_ = std::move(handler); }

bool SimEndpoint::poll() {
  if (initiator_->gone || !has_arrivals()) return false;
  // What handlers cause arrives later; both lists are empty again before they grow.
  done_now_.swap(done_);
  for (const Done& done : done_now_) {
    if (done.failed) done.completion->failed = true;
    done.completion->finish_one();
  }
  done_now_.clear();
  inbox_now_.swap(inbox_);
  for (const uint32_t index : inbox_now_) {
    const SimDatagram& datagram = cluster_->datagrams[index];
    if (handler_ && !initiator_->gone) handler_(datagram.from, datagram.bytes);
    cluster_->release_datagram(index);
  }
  inbox_now_.clear();
  return true;
}

void SimEndpoint::wait(uint64_t) {
  // The simulator decides which worker runs: a worker that slept here would stop the world.
  CHECK(!"wait() in the simulator");
}

void SimEndpoint::wake() {
  if (!initiator_->gone) cluster_->request_step(worker_);
}

Result<std::byte*> SimEndpoint::allocate_registered(size_t bytes) {
  const size_t rounded = (bytes + kCacheLineBytes - 1) & ~(kCacheLineBytes - 1);
  if (rounded == 0) return Status(Code::kInvalidArgument, "empty registered buffer");
  void* memory = ::operator new (rounded, std::align_val_t{kCacheLineBytes}, std::nothrow);
  if (memory == nullptr) return out_of_registered_memory();
  std::memset(memory, 0, rounded);
  blocks_.push_back(Block{static_cast<std::byte*>(memory), rounded});
  return static_cast<std::byte*>(memory);
}

bool SimEndpoint::registered(const void* local, size_t bytes) const {
  const auto at = reinterpret_cast<uintptr_t>(local);
  for (const Block& block : blocks_) {
    const auto start = reinterpret_cast<uintptr_t>(block.start);
    if (at >= start && bytes <= block.bytes && at - start <= block.bytes - bytes) return true;
  }
  return false;
}

std::byte* SimEndpoint::local_region() {
  const Topology& topology = cluster_->topology;
  if (!topology.is_node_worker(worker_)) return nullptr;
  return cluster_->regions[worker_ / topology.threads_per_node];
}

Status SimEndpoint::back_region(uint64_t offset, uint64_t bytes) {
  CHECK(local_region() != nullptr);
  const uint64_t limit = cluster_->topology.region_bytes;
  if (bytes > limit || offset > limit - bytes) {
    return Status(Code::kNoSpace, "the region is used up");
  }
  return Status::ok_status();
}

uint32_t SimEndpoint::incarnation_of(WorkerId worker) {
  CHECK(worker < cluster_->topology.workers_max);
  const SimSlot& slot = cluster_->slots[worker];
  return slot.live() ? slot.incarnation : 0;
}

void SimEndpoint::push_done(Completion* completion, bool failed) {
  done_.push_back(Done{completion, failed});
}

void SimEndpoint::forget_arrivals() {
  done_.clear();
  for (const uint32_t index : inbox_) cluster_->release_datagram(index);
  inbox_.clear();
}

}  // namespace rdmacc
