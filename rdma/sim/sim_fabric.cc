#include "rdma/sim/sim_fabric.h"

#include <sys/mman.h>

#include "rdma/sim/sim_cluster.h"
#include "rdma/sim/sim_endpoint.h"

namespace rdmacc {

constexpr uint64_t kDelaySeed = 0xDE1A'7000;

SimCluster::SimCluster(const Topology& its_topology, const SimOptions& its_options)
    : topology(its_topology),
      options(its_options),
      random(its_options.seed),
      slots(its_topology.workers_max),
      regions(its_topology.nodes, nullptr),
      delayer_(its_options.delays, its_options.seed ^ kDelaySeed) {
  CHECK(topology.nodes > 0 && topology.threads_per_node > 0 && topology.region_bytes % 8 == 0);
  CHECK(topology.workers_max >= topology.node_workers() && topology.workers_max < kNoWorker);
}

SimCluster::~SimCluster() {
  for (std::byte* region : regions) {
    if (region != nullptr) munmap(region, topology.region_bytes);
  }
}

std::byte* SimCluster::region_of(NodeId node) {
  if (regions[node] == nullptr) {
    void* mapped = mmap(nullptr, topology.region_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped != MAP_FAILED) regions[node] = static_cast<std::byte*>(mapped);
  }
  return regions[node];
}

uint64_t SimCluster::between(uint32_t min_ns, uint32_t max_ns) {
  return max_ns <= min_ns ? min_ns : min_ns + random.below(max_ns - min_ns + uint64_t{1});
}

uint64_t SimCluster::stall() {
  if (options.stall_percent == 0 || !random.percent(options.stall_percent)) return 0;
  return random.below(options.stall_ns_max + uint64_t{1});
}

uint64_t SimCluster::one_way_ns(const SimInitiator& initiator, NodeId node) {
  const bool self = topology.is_node_worker(initiator.worker) &&
                    initiator.worker / topology.threads_per_node == node;
  return stall() + (self ? between(options.self_ns_min, options.self_ns_max)
                         : between(options.verb_ns_min, options.verb_ns_max));
}

void SimCluster::send(SimInitiator* initiator, WorkerId to, std::span<const std::byte> bytes) {
  const SimSlot& slot = slots[to];
  if (!slot.live()) return;
  uint32_t index;
  if (free_datagrams_.empty()) {
    index = static_cast<uint32_t>(datagrams.size());
    datagrams.emplace_back();
  } else {
    index = free_datagrams_.back();
    free_datagrams_.pop_back();
  }
  SimDatagram& datagram = datagrams[index];
  datagram.from = initiator->worker;
  datagram.to = to;
  datagram.to_incarnation = slot.incarnation;
  datagram.lost = false;
  datagram.number = initiator->sent++;
  datagram.bytes.assign(bytes.begin(), bytes.end());
  datagram.references = random.percent(options.duplicate_percent) ? 2 : 1;
  for (uint32_t i = 0; i < datagram.references; ++i) {
    const uint64_t delay_ns = between(options.datagram_ns_min, options.datagram_ns_max) + stall();
    schedule(now_ns + delay_ns, SimEventKind::kDatagram, index);
  }
}

void SimCluster::deliver(uint32_t index) {
  const SimDatagram& datagram = datagrams[index];
  const SimSlot& slot = slots[datagram.to];
  if (datagram.lost || !slot.live() || slot.incarnation != datagram.to_incarnation) {
    return release_datagram(index);
  }
  slot.initiator->endpoint->push_datagram(index);
  request_step(datagram.to);
}

void SimCluster::release_datagram(uint32_t index) {
  SimDatagram& datagram = datagrams[index];
  CHECK(datagram.references > 0);
  if (--datagram.references == 0) free_datagrams_.push_back(index);
}

void SimCluster::request_step(WorkerId worker) {
  SimSlot& slot = slots[worker];
  if (slot.scheduler == nullptr || !slot.live() || slot.step_scheduled) return;
  slot.step_scheduled = true;
  schedule(now_ns + between(1, options.step_ns_max) + stall(), SimEventKind::kStep, worker);
}

void SimCluster::watch_timer(WorkerId worker) {
  SimSlot& slot = slots[worker];
  const uint64_t timer_us = slot.scheduler->next_timer_us();
  if (timer_us == UINT64_MAX) return;
  const uint64_t timer_ns = timer_us > UINT64_MAX / 1000 ? UINT64_MAX - 1 : timer_us * 1000;
  if (timer_ns >= slot.timer_ns) return;
  slot.timer_ns = timer_ns;
  schedule(timer_ns > now_ns ? timer_ns : now_ns, SimEventKind::kTimer, worker);
}

void SimCluster::step_worker(WorkerId worker) {
  SimSlot& slot = slots[worker];
  slot.step_scheduled = false;
  if (slot.scheduler == nullptr || !slot.live()) return;
  if (slot.held_until_ns > now_ns) {
    slot.step_scheduled = true;
    schedule(slot.held_until_ns, SimEventKind::kStep, worker);
    return;
  }
  slot.scheduler->step();
  // The step may have killed this worker, or detached it.
  if (slot.scheduler == nullptr || !slot.live()) return;
  if (!slot.scheduler->quiet() || slot.initiator->endpoint->has_arrivals()) request_step(worker);
  watch_timer(worker);
}

void SimCluster::carry_out(const SimEvent& event) {
  CHECK(event.at_ns >= now_ns);
  now_ns = event.at_ns;
  switch (event.kind) {
    case SimEventKind::kVerb:
      return carry_out_verb(event.index);
    case SimEventKind::kChainDone:
      return chain_done(event.index);
    case SimEventKind::kDatagram:
      return deliver(event.index);
    case SimEventKind::kStep:
      return step_worker(static_cast<WorkerId>(event.index));
    case SimEventKind::kTimer: {
      // A later owner of the slot, or an earlier timer, may have made this one obsolete; a step
      // too many does no harm.
      slots[event.index].timer_ns = UINT64_MAX;
      return request_step(static_cast<WorkerId>(event.index));
    }
  }
}

void SimCluster::rouse() {
  for (size_t worker = 0; worker < slots.size(); ++worker) {
    request_step(static_cast<WorkerId>(worker));
  }
}

namespace {

class SimFabricImpl : public SimFabric {
 public:
  SimFabricImpl(const Topology& topology, const SimOptions& options)
      : cluster_(std::make_shared<SimCluster>(topology, options)) {}

  const Topology& topology() const override { return cluster_->topology; }
  const FabricCapabilities& capabilities() const override { return capabilities_; }

  Result<std::unique_ptr<Endpoint>> join() override {
    for (WorkerId w = topology().node_workers(); w < topology().workers_max; ++w) {
      if (cluster_->claimable(w)) return make_endpoint(w);
    }
    return Status(Code::kNoWorkerSlot, "every worker slot is taken");
  }

  Result<std::unique_ptr<Endpoint>> join_as_node(NodeId node, uint16_t thread) override {
    CHECK(node < topology().nodes && thread < topology().threads_per_node);
    const WorkerId worker = topology().worker_of(node, thread);
    if (cluster_->slots[worker].live()) {
      return Status(Code::kUnavailable, "the node's thread is running");
    }
    if (cluster_->region_of(node) == nullptr) return Status::from_errno("mmap");
    return make_endpoint(worker);
  }

  std::vector<WorkerId> departed() override {
    std::vector<WorkerId> workers;
    for (WorkerId w = topology().node_workers(); w < topology().workers_max; ++w) {
      if (cluster_->departed(w)) workers.push_back(w);
    }
    return workers;
  }

  void release(WorkerId worker) override {
    CHECK(worker < topology().workers_max && cluster_->departed(worker));
    cluster_->slots[worker].state = SimSlot::State::kFree;
  }

  void attach(WorkerId worker, Scheduler* scheduler) override {
    CHECK(worker < topology().workers_max);
    SimSlot& slot = cluster_->slots[worker];
    slot.scheduler = scheduler;
    cluster_->request_step(worker);
  }

  bool run_until(const std::function<bool()>& done, uint64_t events_max) override {
    cluster_->rouse();
    if (cluster_->chooser != nullptr) return cluster_->run_chosen(done, events_max);
    for (uint64_t i = 0; i < events_max; ++i) {
      if (done()) return true;
      if (cluster_->queue.empty()) return false;
      cluster_->carry_out(cluster_->queue.pop());
      ++events_;
      if (observer_) observer_(events_);
    }
    return done();
  }

  void kill(WorkerId worker) override { cluster_->kill(worker); }
  void hold(WorkerId worker, uint64_t until_ns) override {
    CHECK(worker < cluster_->slots.size());
    cluster_->slots[worker].held_until_ns = until_ns;
  }
  uint64_t now_ns() const override { return cluster_->now_ns; }
  uint64_t events() const override { return events_; }
  Random& random() override { return cluster_->random; }
  void set_observer(std::function<void(uint64_t event)> observer) override {
    observer_ = std::move(observer);
  }
  void set_chooser(SimChooser* chooser) override { cluster_->set_chooser(chooser); }
  void set_clock_us(WorkerId worker, uint64_t us) override {
    CHECK(cluster_->chooser != nullptr);
    cluster_->slots[worker].clock_ns = us * 1000;
  }
  void set_rewriter(SimChainRewriter rewriter) override {
    cluster_->rewriter = std::move(rewriter);
  }
  void set_delivery(SimDelivery delivery) override { cluster_->delivery = std::move(delivery); }

 private:
  Result<std::unique_ptr<Endpoint>> make_endpoint(WorkerId worker) {
    return Result<std::unique_ptr<Endpoint>>(std::make_unique<SimEndpoint>(cluster_, worker));
  }

  const std::shared_ptr<SimCluster> cluster_;
  const FabricCapabilities capabilities_;
  std::function<void(uint64_t)> observer_;
  uint64_t events_ = 0;
};

}  // namespace

std::unique_ptr<SimFabric> SimFabric::create(const Topology& topology, const SimOptions& options) {
  return std::make_unique<SimFabricImpl>(topology, options);
}

}  // namespace rdmacc
