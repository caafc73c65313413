// On mapped memory: after some transactions none of them takes memory from the heap, and a stage of
// many records is one round, that gives nothing away.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "engine/node/node_thread.h"
#include "engine/protocols/registry.h"
#include "engine/session.h"
#include "rdma/shm/shm_fabric.h"
#include "tests/unit/engine/two_sessions.h"

namespace {

std::atomic<uint64_t> allocations = 0;
// Those that are made while the coordinator runs. The node, which the same thread steps, makes some
// in its timers.
std::atomic<uint64_t> coordinator_allocations = 0;
std::atomic<bool> coordinator_runs = false;

void count_allocation() {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (coordinator_runs.load(std::memory_order_relaxed)) {
    coordinator_allocations.fetch_add(1, std::memory_order_relaxed);
  }
}

}  // namespace

[[gnu::noinline]] void* operator new(size_t bytes) {
  count_allocation();
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
// All pairs are replaced, or a sanitizer sees memory of one go back to another.
[[gnu::noinline]] void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  count_allocation();
  return std::malloc(bytes);
}
[[gnu::noinline]] void operator delete(void* memory, const std::nothrow_t&) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace rdmacc {
namespace {

// A node and a coordinator on shared memory, stepped by one thread.
class HeapFree : public testing::TestWithParam<Protocol> {
 protected:
  HeapFree() {
    topology_.nodes = 1;
    topology_.workers_max = 4;
    topology_.region_bytes = 64ull << 20;
    fabric_ = std::move(ShmFabric::create(name_, topology_, {.huge_pages = false}).value());
    node_ = std::move(NodeThread::open(*fabric_, 0, 0, NodeOptions{}).value());
    coordinator_ = std::make_unique<Coordinator>(std::move(fabric_->join().value()), topology_,
                                                 EngineOptions{});
  }
  ~HeapFree() override {
    coordinator_.reset();
    node_.reset();
    fabric_.reset();
    ShmFabric::destroy(name_);
  }

  void run(const std::function<void(Session&)>& task) {
    bool done = false;
    CHECK(coordinator_->worker().scheduler().spawn([&] {
      Session session(*coordinator_);
      task(session);
      done = true;
    }));
    for (int step = 0; step < 10'000'000 && !done; step++) {
      coordinator_runs = true;
      coordinator_->worker().scheduler().step();
      coordinator_runs = false;
      node_->worker().scheduler().step();
    }
    ASSERT_TRUE(done);
  }

  void load(Session& session) {
    TableSpec spec;
    spec.relfilenode = 1;
    spec.record_size = 96;
    spec.history = 2;
    auto table = session.create_table(spec);
    ASSERT_TRUE(table.ok());
    table_ = table->id;
    ASSERT_TRUE(session.begin(options()).ok());
    for (int i = 0; i < kRows; i++) {
      names_.push_back("key " + std::to_string(i));
      ASSERT_TRUE(session.insert(table_, names_.back(), std::string(64, '0')).ok());
    }
    ASSERT_TRUE(session.commit().ok());
  }
  // Ten reads, of which two rows are updated.
  void transact(Session& session, int number) {
    std::array<std::string_view, 10> keys;
    std::array<RowView, 10> rows;
    for (int i = 0; i < 10; i++) keys[i] = names_[(number * 10 + i) % kRows];
    const std::array<char, 64> row{};
    ASSERT_TRUE(session.begin(options()).ok());
    ASSERT_TRUE(session.get_many(table_, keys, rows).ok());
    for (const RowView& each : rows) ASSERT_TRUE(each.found);
    for (const int i : {3, 7}) {
      ASSERT_TRUE(session.put(table_, keys[i], {row.data(), row.size()}).ok());
    }
    ASSERT_TRUE(session.commit().ok());
  }
  TxnOptions options() const {
    TxnOptions options;
    options.protocol = GetParam();
    options.plan = plan_;
    return options;
  }

  static constexpr int kRows = 60;
  const std::string name_ = "heap_free_" + std::to_string(getpid());
  Topology topology_;
  std::unique_ptr<ShmFabric> fabric_;
  std::unique_ptr<NodeThread> node_;
  std::unique_ptr<Coordinator> coordinator_;
  TableId table_ = kNoTable;
  StagePlan plan_;
  std::vector<std::string> names_;
};

TEST_P(HeapFree, SteadyStateTakesNothing) {
  constexpr int kWarmUp = 300, kCounted = 300;
  run([&](Session& session) {
    load(session);
    for (int i = 0; i < kWarmUp && !HasFailure(); i++) transact(session, i);
    const uint64_t before = coordinator_allocations.load();
    for (int i = 0; i < kCounted && !HasFailure(); i++) transact(session, i);
    EXPECT_EQ(0u, coordinator_allocations.load() - before);
  });
}

// Neither at the coordinator nor at the node, but for their timers, of which there are some a
// second.
TEST_P(HeapFree, SteadyStateByRpcTakesNothing) {
  constexpr int kWarmUp = 300, kCounted = 300;
  constexpr uint64_t kOfTimers = 60;
  plan_ = StagePlan(0);
  run([&](Session& session) {
    load(session);
    for (int i = 0; i < kWarmUp && !HasFailure(); i++) transact(session, i);
    const uint64_t before = allocations.load();
    for (int i = 0; i < kCounted && !HasFailure(); i++) transact(session, i);
    EXPECT_LT(allocations.load() - before, kOfTimers);
  });
}

TEST_P(HeapFree, AStageOfManyRecordsIsOneRound) {
  run([&](Session& session) {
    load(session);
    const uint64_t before = coordinator_->stats().verbs.round_trips;
    std::vector<std::string_view> keys(names_.begin(), names_.end());
    std::vector<RowView> rows(keys.size());
    ASSERT_TRUE(session.begin(options()).ok());
    ASSERT_TRUE(session.get_many(table_, keys, rows).ok());
    for (const std::string_view key : keys) {
      ASSERT_TRUE(session.put(table_, key, std::string(64, '1')).ok());
    }
    ASSERT_TRUE(session.commit().ok());
    EXPECT_LT(coordinator_->stats().verbs.round_trips - before, kRows / 2u);
  });
}

INSTANTIATE_TEST_SUITE_P(Protocols, HeapFree, testing::ValuesIn(protocols_without_order()),
                         [](const testing::TestParamInfo<Protocol>& each) {
                           return std::string(protocol_name(each.param));
                         });

}  // namespace
}  // namespace rdmacc
