#include "storage_cluster.h"

#include <gtest/gtest.h>

#include "engine/storage/layout/control_area.h"

namespace rdmacc {

namespace {
constexpr uint64_t kMaintainEveryUs = 50;
}

StorageCluster::StorageCluster(const Options& options) : maintain_(options.maintain) {
  topology_.nodes = options.nodes;
  topology_.workers_max = 8;
  topology_.region_bytes = region_bytes_min(topology_) + options.memory_bytes;
  SimOptions sim;
  sim.seed = options.seed;
  sim.loss_percent = sim.duplicate_percent = options.lossy ? 3 : 0;
  sim.dead_node_unreachable = options.dead_node_unreachable;
  fabric_ = SimFabric::create(topology_, sim);
  nodes_.resize(options.nodes);
  for (NodeId node = 0; node < options.nodes; ++node) start_node(node);
  for (size_t i = 0; i < options.coordinators; ++i) {
    auto endpoint = fabric_->join();
    CHECK(endpoint.ok());
    coordinators_.push_back(std::make_unique<Coordinator>(std::move(*endpoint), topology_));
    Worker& worker = coordinators_.back()->worker;
    fabric_->attach(worker.id(), &worker.scheduler());
  }
}

StorageCluster::~StorageCluster() {
  for (auto& coordinator : coordinators_) {
    if (!coordinator->killed) fabric_->attach(coordinator->worker.id(), nullptr);
  }
  for (Node& node : nodes_) {
    if (node.worker != nullptr) fabric_->attach(node.worker->id(), nullptr);
  }
}

void StorageCluster::start_node(NodeId id) {
  const Status status = open_node(id);
  if (!status.ok()) ADD_FAILURE() << status.to_string();
  CHECK(status.ok());
}

Status StorageCluster::try_restart(NodeId node) {
  kill_node(node);
  return open_node(node);
}

void StorageCluster::kill_coordinator(size_t i) {
  Coordinator& coordinator = *coordinators_[i];
  coordinator.killed = true;
  fabric_->kill(coordinator.worker.id());
  fabric_->attach(coordinator.worker.id(), nullptr);
}

Status StorageCluster::open_node(NodeId id) {
  Node& node = nodes_[id];
  CHECK(node.worker == nullptr);
  auto endpoint = fabric_->join_as_node(id, 0);
  CHECK(endpoint.ok());
  node.worker = std::make_unique<Worker>(std::move(*endpoint));
  fabric_->attach(node.worker->id(), &node.worker->scheduler());
  auto storage = StorageService::open(*node.worker, topology_);
  if (!storage.ok()) return storage.status();
  node.storage = std::move(*storage);
  node.storage->serve(StorageService::unguarded);
  node.storage->set_order_hold(StorageService::without_order());
  node.region = node.worker->endpoint().local_region();
  if (!maintain_) return Status();
  Worker* worker = node.worker.get();
  StorageService* service = node.storage.get();
  CHECK(worker->scheduler().spawn([worker, service] {
    while (true) {
      if (service->maintenance_pending()) service->maintain();
      worker->scheduler().sleep_for(kMaintainEveryUs);
    }
  }));
  return Status();
}

void StorageCluster::kill_node(NodeId id) {
  Node& node = nodes_[id];
  fabric_->kill(node.worker->id());
  fabric_->attach(node.worker->id(), nullptr);
  node.worker.reset();  // its coroutines use the service
  node.storage.reset();
}

size_t StorageCluster::spawn(std::vector<std::function<void(Coordinator&)>> bodies) {
  running_ = bodies.size();
  for (size_t i = 0; i < bodies.size(); ++i) {
    Coordinator& coordinator = *coordinators_[i % coordinators_.size()];
    CHECK(coordinator.worker.scheduler().spawn([this, &coordinator, body = std::move(bodies[i])] {
      body(coordinator);
      --running_;
    }));
  }
  return running_;
}

void StorageCluster::run(std::vector<std::function<void(Coordinator&)>> bodies,
                         uint64_t events_max) {
  spawn(std::move(bodies));
  const bool done = fabric_->run_until([this] { return running_ == 0; }, events_max);
  EXPECT_TRUE(done);
  CHECK(done);
}

void StorageCluster::run_on_node(NodeId node, std::function<void()> body) {
  bool done = false;
  CHECK(nodes_[node].worker->scheduler().spawn([&] {
    body();
    done = true;
  }));
  CHECK(fabric_->run_until([&] { return done; }, 5'000'000));
}

void StorageCluster::run_and_kill(NodeId victim, uint64_t after_events,
                                  std::vector<std::function<void(Coordinator&)>> bodies) {
  spawn(std::move(bodies));
  const uint64_t at = fabric_->events() + after_events;
  fabric_->run_until([&] { return running_ == 0 || fabric_->events() >= at; }, after_events + 1);
  kill_node(victim);
  const uint64_t restart_at = fabric_->events() + fabric_->random().below(200);
  fabric_->run_until([&] { return fabric_->events() >= restart_at; }, 200);
  start_node(victim);
  CHECK(fabric_->run_until([this] { return running_ == 0; }, 20'000'000));
}

void StorageCluster::settle() {
  for (NodeId node = 0; node < topology_.nodes; ++node) {
    run_on_node(node, [&] {
      for (int i = 0; i < 1'000 && storage(node).maintenance_pending(); ++i) {
        storage(node).maintain();
        nodes_[node].worker->scheduler().sleep_for(kMaintainEveryUs);
      }
      EXPECT_FALSE(storage(node).maintenance_pending());
    });
  }
}

namespace {

void write_line(StorageCluster::Coordinator& coordinator, bool announce) {
  VerbArena arena(coordinator.worker.pool());
  uint64_t* epoch = arena.allocate_array<uint64_t>(1);
  CHECK(epoch != nullptr);
  *epoch = 0;
  const uint64_t line = coordinator.layout.worker_line(coordinator.worker.id());
  const uint64_t gate = coordinator.layout.control + offsetof(GateLine, epoch);
  DoorbellBatch batch(coordinator.worker.scheduler(), coordinator.worker.counters());
  if (announce) {
    batch.read(GlobalAddress::make(0, gate), epoch, 8);
    CHECK(batch.execute().ok());
  }
  batch.write(GlobalAddress::make(0, line + offsetof(WorkerLine, epoch)), epoch, 8);
  CHECK(batch.execute().ok());
}

}  // namespace

// Others of this worker may be under way: their epoch, an older one, stays announced.
AnnouncedEpoch::AnnouncedEpoch(StorageCluster::Coordinator& coordinator)
    : coordinator_(coordinator) {
  if (coordinator.transactions++ == 0) {
    write_line(coordinator, true);
    coordinator.announced = true;
  }
  while (!coordinator.announced) coordinator.worker.scheduler().yield();
}

AnnouncedEpoch::~AnnouncedEpoch() {
  if (--coordinator_.transactions > 0) return;
  coordinator_.announced = false;
  write_line(coordinator_, false);
}

}  // namespace rdmacc
