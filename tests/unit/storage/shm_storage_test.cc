#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "rdma/shm/shm_fabric.h"
#include "region_audit.h"
#include "test_index.h"

// The same on real shared memory with real threads: nodes, and coordinators that insert, erase
// and look up while groups split.

namespace rdmacc {
namespace {

class ShmNode {
 public:
  ShmNode(ShmFabric& fabric, NodeId node, std::atomic<bool>& stop)
      : worker_(std::move(fabric.join_as_node(node, 0).value())),
        storage_(std::move(StorageService::open(worker_, fabric.topology()).value())) {
    storage_->serve(StorageService::unguarded);
    storage_->set_order_hold(StorageService::without_order());
    region = worker_.endpoint().local_region();
    CHECK(worker_.scheduler().spawn([this] {
      while (true) {
        if (storage_->maintenance_pending()) storage_->maintain();
        worker_.scheduler().sleep_for(200);
      }
    }));
    thread_ = std::thread([this, &stop] {
      worker_.scheduler().run_until([&] { return stop.load(); });
      statistics = storage_->statistics();
      worker_.scheduler().unwind();
    });
  }
  void join() { thread_.join(); }

  std::byte* region = nullptr;
  NodeStatistics statistics{};

 private:
  Worker worker_;
  std::unique_ptr<StorageService> storage_;
  std::thread thread_;
};

class ShmStorage : public ::testing::Test {
 protected:
  ShmStorage() : name_("storage_test_" + std::to_string(getpid())) {
    topology_.nodes = 2;
    topology_.workers_max = 6;
    topology_.region_bytes = region_bytes_min(topology_) + (16ull << 20);
    fabric_ = std::move(ShmFabric::create(name_, topology_, {.huge_pages = false}).value());
  }
  ~ShmStorage() override { ShmFabric::destroy(name_); }

  void start_nodes() {
    stop_ = false;
    for (NodeId node = 0; node < 2; ++node) {
      nodes_.push_back(std::make_unique<ShmNode>(*fabric_, node, stop_));
    }
  }
  void stop_nodes() {
    stop_ = true;
    for (auto& node : nodes_) node->join();
  }
  // Runs `body` as a coroutine of a new coordinator, on this thread.
  void coordinate(const std::function<void(StorageCluster::Coordinator&)>& body) {
    StorageCluster::Coordinator coordinator(std::move(fabric_->join().value()), topology_);
    bool done = false;
    CHECK(coordinator.worker.scheduler().spawn([&] {
      body(coordinator);
      done = true;
    }));
    coordinator.worker.scheduler().run_until([&] { return done; });
  }

  const std::string name_;
  Topology topology_;
  std::unique_ptr<ShmFabric> fabric_;
  std::atomic<bool> stop_ = false;
  std::vector<std::unique_ptr<ShmNode>> nodes_;
};

TEST_F(ShmStorage, KeepsEveryKeyUnderConcurrentInsertsErasesAndSplitsAndOverARestart) {
  constexpr uint64_t kKeys = 3'000;
  start_nodes();
  TableMeta table;
  coordinate([&](auto& c) {
    TableSpec spec;
    spec.relfilenode = 1;
    spec.record_size = TestIndex::kRecordSize;
    spec.history = 0;
    table = c.client.create_table(spec, c.worker.counters()).value();
  });
  std::vector<std::thread> threads;
  for (uint64_t first : {0, 1, 2}) {
    threads.emplace_back([&, first] {
      coordinate([&](auto& c) {
        TestIndex index(c, topology_, table);
        for (uint64_t key = first; key < kKeys; key += 3) {
          ASSERT_TRUE(index.insert(key).ok());
          if (key % 5 == 0) {
            ASSERT_TRUE(index.erase(key).ok());
          }
          const uint64_t old = key / 2 / 3 * 3 + first;  // inserted earlier, by us
          ASSERT_EQ(index.find(old).value().null(), old % 5 == 0) << old;
        }
      });
    });
  }
  for (std::thread& thread : threads) thread.join();
  stop_nodes();
  uint64_t entries = 0;
  for (auto& node : nodes_) {
    const RegionAudit audit = RegionAudit::of(node->region, RegionLayout(topology_));
    EXPECT_EQ(audit.fault, "");
    EXPECT_GT(node->statistics.splits, 5u);
    entries += audit.entries;
  }
  EXPECT_EQ(entries, kKeys - kKeys / 5);
  nodes_.clear();
  start_nodes();
  coordinate([&](auto& c) {
    TestIndex index(c, topology_, table);
    for (uint64_t key = 0; key < kKeys; ++key) {
      ASSERT_EQ(index.find(key).value().null(), key % 5 == 0) << key;
    }
  });
  stop_nodes();
}

}  // namespace
}  // namespace rdmacc
