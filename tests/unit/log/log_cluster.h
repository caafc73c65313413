#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "engine/log/log_ring.h"
#include "engine/log/reader_count_sweep.h"
#include "engine/log/resolve.h"
#include "rdma/sim/sim_fabric.h"

namespace rdmacc {

using Payload = std::vector<std::byte>;

inline Payload make_payload(size_t bytes, uint64_t seed) {
  Payload payload(bytes);
  Random random(seed);
  for (size_t i = 0; i < bytes; i += 8) {
    const uint64_t word = random.next();
    std::memcpy(payload.data() + i, &word, std::min<size_t>(8, bytes - i));
  }
  return payload;
}

// A node with its storage, and what it does for resolution.
struct LogNode {
  LogNode(std::unique_ptr<Endpoint> endpoint, const Topology& topology)
      : worker(std::move(endpoint)), fence(worker, topology) {
    auto opened = StorageService::open(worker, topology);
    CHECK(opened.ok());
    storage = std::move(opened.value());
    storage->serve([this](Rpc::Handler handler) { return fence.guard(std::move(handler)); });
    storage->set_order_hold(StorageService::without_order());
    serve_resolution(worker, *storage, fence);
    serve_reader_count_sweep(worker, *storage, fence);
  }
  ~LogNode() { worker.scheduler().unwind(); }

  Worker worker;
  CallerFence fence;
  std::unique_ptr<StorageService> storage;
};

struct LogUser {
  LogUser(std::unique_ptr<Endpoint> endpoint, const Topology& topology)
      : worker(std::move(endpoint)),
        storage(worker, topology),
        frees(worker, topology, storage),
        log(worker, topology, storage, frees) {}
  ~LogUser() { worker.scheduler().unwind(); }

  Worker worker;
  StorageClient storage;
  BackgroundFree frees;
  LogWriter log;
  bool killed = false;
};

class LogCluster {
 public:
  explicit LogCluster(uint64_t seed, NodeId nodes = 2, size_t users = 1) {
    topology_.nodes = nodes;
    topology_.workers_max = 8;
    topology_.region_bytes = 96ull << 20;
    SimOptions options;
    options.seed = seed;
    fabric_ = SimFabric::create(topology_, options);
    for (NodeId node = 0; node < nodes; ++node) start_node(node);
    for (size_t i = 0; i < users; ++i) add_user();
  }
  ~LogCluster() {
    for (auto& user : users_) {
      if (!user->killed) fabric_->attach(user->worker.id(), nullptr);
    }
    for (auto& node : nodes_) fabric_->attach(node->worker.id(), nullptr);
  }

  // Starts a node, or starts it again in place of one that was killed.
  void start_node(NodeId node) {
    auto endpoint = fabric_->join_as_node(node, 0);
    CHECK(endpoint.ok());
    if (nodes_.size() <= node) nodes_.resize(node + size_t{1});
    nodes_[node].reset();
    std::byte* region = (*endpoint)->local_region();
    if (regions_.size() <= node) regions_.resize(node + size_t{1});
    regions_[node] = region;
    nodes_[node] = std::make_unique<LogNode>(std::move(*endpoint), topology_);
    fabric_->attach(nodes_[node]->worker.id(), &nodes_[node]->worker.scheduler());
  }
  LogUser& add_user() {
    auto endpoint = fabric_->join();
    CHECK(endpoint.ok());
    users_.push_back(std::make_unique<LogUser>(std::move(*endpoint), topology_));
    fabric_->attach(users_.back()->worker.id(), &users_.back()->worker.scheduler());
    return *users_.back();
  }
  void kill(LogUser& user) {
    if (user.killed) return;
    user.killed = true;
    fabric_->kill(user.worker.id());
  }
  // Until the dead worker's last verbs have ended.
  void wait_departed() {
    CHECK(fabric_->run_until([&] { return !fabric_->departed().empty(); }, 10'000'000));
  }
  // Runs `task` in a coroutine of `worker` until it has ended.
  void run(Worker& worker, const std::function<void()>& task, uint64_t events = 100'000'000) {
    bool done = false;
    CHECK(worker.scheduler().spawn([&] {
      task();
      done = true;
    }));
    ASSERT_TRUE(fabric_->run_until([&] { return done; }, events));
  }
  // Slots of a fresh table, one on each of `nodes`, as an insert of `user`'s transaction leaves
  // them.
  std::vector<GlobalAddress> allocate_slots(LogUser& user, uint64_t ctts,
                                            std::initializer_list<NodeId> nodes) {
    std::vector<StorageClient::SlotRequest> requests;
    run(user.worker, [&] {
      VerbCounters counters;
      const auto table = user.storage.create_table(TableSpec{}, counters);
      ASSERT_TRUE(table.ok());
      for (const NodeId node : nodes) {
        StorageClient::SlotRequest request{};
        request.table = table.value().id;
        request.key_hash = requests.size();
        request.node = node;
        requests.push_back(request);
      }
      ASSERT_TRUE(user.storage.allocate(requests, ctts, counters).ok());
    });
    std::vector<GlobalAddress> slots;
    for (const auto& request : requests) slots.push_back(request.slot);
    return slots;
  }
  // The entries that would be found on `node` now, by the owner's CPU.
  std::vector<FoundEntry> entries(NodeId node, WorkerId of) const {
    const std::byte* ring = regions_[node] + layout().log_ring(of);
    LogRingHead head;
    std::memcpy(&head, ring, sizeof(head));
    return find_log_entries(head, {ring + sizeof(head), kLogRingBytes});
  }
  Header& header(GlobalAddress address) {
    return *reinterpret_cast<Header*>(regions_[address.node()] + address.offset());
  }

  SimFabric& fabric() { return *fabric_; }
  const Topology& topology() const { return topology_; }
  RegionLayout layout() const { return RegionLayout(topology_); }
  LogNode& node(NodeId node) { return *nodes_[node]; }
  LogUser& user(size_t i) { return *users_[i]; }
  std::byte* region(NodeId node) { return regions_[node]; }

 private:
  Topology topology_;
  std::unique_ptr<SimFabric> fabric_;
  std::vector<std::byte*> regions_;
  std::vector<std::unique_ptr<LogNode>> nodes_;
  std::vector<std::unique_ptr<LogUser>> users_;
};

// Bytes that are no record's.
class LoggedBytes : public LoggedPayload {
 public:
  explicit LoggedBytes(const std::span<const std::byte>& bytes)
      : LoggedPayload(bytes.size(), &bytes, [](const void* of, std::byte* out) {
          const auto& from = *static_cast<const std::span<const std::byte>*>(of);
          std::memcpy(out, from.data(), from.size());
        }) {}
};

// Places a payload and writes its entries one-sided.
inline Status append(LogCluster& cluster, LogUser& user, std::span<const std::byte> payload,
                     uint64_t ctts, std::span<const NodeId> nodes, VerbArena& arena,
                     std::vector<LogPlacement>& placements, const bool* cancelled = nullptr) {
  VerbCounters counters;
  RDMACC_RETURN_IF_ERROR(
      user.log.place(LoggedBytes(payload), ctts, nodes, arena, cancelled, counters, placements));
  DoorbellBatch batch(user.worker.scheduler(), counters);
  const RegionLayout layout = cluster.layout();
  for (const LogPlacement& placement : placements) {
    CHECK(add_log_writes(layout, placement, arena, batch));
  }
  return batch.execute();
}

}  // namespace rdmacc
