#include <gtest/gtest.h>

#include <mutex>
#include <thread>

#include "engine/bench/run_jobs.h"
#include "engine/check/checker.h"
#include "engine/check/history_file.h"
#include "engine/node/node.h"
#include "engine/protocols/registry.h"
#include "engine/storage/layout/region_rights.h"
#include "engine/workloads/procedures.h"
#include "engine/workloads/registry.h"
#include "rdma/bootstrap/loopback_cluster.h"
#include "rdma/verbs/verbs_fabric.h"
#include "tests/fabric/surroundings.h"

// The whole engine over verbs: two nodes and two coordinators, each on a thread of its own.

namespace rdmacc {
namespace {

constexpr NodeId kNodes = 2;
constexpr uint32_t kCoordinators = 2;
constexpr double kSeconds = 0.5;
const std::atomic<bool> kNotInterrupted{false};

class SharedHistory : public HistoryWriter {
 public:
  void add(HistoryTransaction transaction) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    memory_.add(std::move(transaction));
  }
  const std::vector<HistoryTransaction>& transactions() const { return memory_.transactions(); }

 private:
  std::mutex mutex_;
  HistoryMemory memory_;
};

Topology small_topology() {
  Topology topology;
  topology.nodes = kNodes;
  topology.workers_max = 8;
  topology.region_bytes = 64ull << 20;
  return topology;
}

class EngineCluster {
 public:
  EngineCluster() {
    auto loopback = LoopbackCluster::make(unique_cluster(), small_topology());
    CHECK(loopback.ok());
    loopback_ = std::move(*loopback);
    const ClusterConfig& config = loopback_->config();
    for (NodeId n = 0; n < kNodes; ++n) {
      VerbsOptions options;
      options.device = verbs_device(n);
      options.domains = region_domains(RegionLayout(small_topology()));
      auto opened =
          VerbsFabric::open_as_node(std::move(*Membership::open_as_node(config, n)), n, options);
      CHECK(opened.ok());
      node_fabrics_.push_back(std::move(*opened));
      nodes_.emplace_back([this, n] { serve(n); });
    }
    VerbsOptions options;
    options.device = verbs_device(1);
    auto opened = VerbsFabric::open(std::move(*Membership::open(config)), options);
    CHECK(opened.ok());
    fabric_ = std::move(*opened);
    while (serving_.load() < kNodes) std::this_thread::yield();
  }

  ~EngineCluster() {
    stop_.store(true);
    for (std::thread& node : nodes_) node.join();
    fabric_.reset();
    node_fabrics_.clear();
    VerbsFabric::destroy(loopback_->config());
  }

  // Each job with a coordinator and a thread of its own.
  void run(const std::vector<CoordinatorJob*>& jobs) {
    std::vector<std::thread> threads;
    for (CoordinatorJob* job : jobs) {
      threads.emplace_back([this, job] {
        Result<std::unique_ptr<Endpoint>> endpoint = fabric_->join();
        CHECK(endpoint.ok());
        Coordinator coordinator(std::move(*endpoint), fabric_->topology(), EngineOptions());
        job->start(coordinator);
        coordinator.worker().scheduler().run_until([job] { return job->finished(); });
        job->finish(coordinator);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

 private:
  void serve(NodeId n) {
    ProcedureRegistry procedures;
    add_workload_procedures(procedures, WorkloadCluster{kNodes, false});
    NodeOptions options;
    options.order.procedures = &procedures;
    auto node = Node::open(*node_fabrics_[n], n, options);
    if (!node.ok()) std::fprintf(stderr, "%s\n", node.status().to_string().c_str());
    CHECK(node.ok());
    serving_.fetch_add(1);
    CHECK((*node)->run(stop_, 50).ok());
  }

  std::unique_ptr<LoopbackCluster> loopback_;
  std::vector<std::unique_ptr<VerbsFabric>> node_fabrics_;
  std::unique_ptr<VerbsFabric> fabric_;
  std::atomic<bool> stop_{false};
  std::atomic<NodeId> serving_{0};
  std::vector<std::thread> nodes_;
};

class EngineOnVerbs : public testing::TestWithParam<Protocol> {};

// The plans share the cluster and the rows.
TEST_P(EngineOnVerbs, SmallBankKeepsItsTotalsAndIsSerializable) {
  BenchOptions options;
  options.protocol = GetParam();
  options.nodes = kNodes;
  options.threads = kCoordinators;
  options.coroutines = 4;
  options.seconds = kSeconds;
  const std::unique_ptr<Workload> workload =
      std::move(*make_workload("smallbank", "records=100", WorkloadCluster{kNodes, false}));
  EngineCluster cluster;
  LoadJob load(*workload, RunShared(*workload, options, kNotInterrupted).txn, 1, kNotInterrupted);
  cluster.run({&load});
  ASSERT_TRUE(load.status().ok()) << load.status().to_string();
  int64_t delta = 0;
  SharedHistory history;
  for (const char* stages : {"one_sided", "rpc", "lock=rpc,read=one_sided,validate=rpc"}) {
    options.plan = *StagePlan::parse(stages);
    RunShared shared(*workload, options, kNotInterrupted);
    shared.history = &history;
    std::vector<std::unique_ptr<RunJob>> jobs;
    std::vector<CoordinatorJob*> started;
    for (uint32_t t = 0; t < kCoordinators; ++t) {
      started.push_back(jobs.emplace_back(std::make_unique<RunJob>(shared, t)).get());
    }
    cluster.run(started);
    uint64_t committed = 0;
    for (const auto& job : jobs) {
      ASSERT_TRUE(job->status().ok()) << stages << ": " << job->status().to_string();
      delta += job->delta();
      committed += job->committed();
    }
    EXPECT_GT(committed, 0u) << stages;
    CheckJob check(shared, delta);
    cluster.run({&check});
    ASSERT_TRUE(check.status().ok()) << stages << ": " << check.status().to_string();
    EXPECT_EQ("", check.violation()) << stages;
    std::printf("%s: %llu committed\n", stages, static_cast<unsigned long long>(committed));
  }
  const CheckReport report =
      check_serializable(history.transactions(), CheckOptions{.preloaded = true});
  EXPECT_TRUE(report.serializable) << report.problem;
  EXPECT_GT(report.committed, 0u);
}

INSTANTIATE_TEST_SUITE_P(Protocols, EngineOnVerbs, testing::ValuesIn(available_protocols()),
                         [](const auto& param) { return protocol_name(param.param); });

}  // namespace
}  // namespace rdmacc
