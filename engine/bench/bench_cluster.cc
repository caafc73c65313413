#include "engine/bench/bench_cluster.h"

#include <atomic>
#include <cstdio>
#include <latch>
#include <thread>

#include "engine/bench/node_processes.h"
#include "engine/node/node_thread.h"
#include "engine/workloads/procedures.h"
#include "rdma/bootstrap/cluster_config.h"
#include "rdma/open/open_fabric.h"
#include "rdma/sim/sim_fabric.h"

namespace rdmacc {
namespace {

constexpr uint64_t kLeaveUsMax = 1'000'000;
constexpr uint64_t kEventsOfLeave = 10'000'000;  // in the simulator

// What a worker keeps in advance, and what it has to free, goes back to the nodes; then `left`.
void leave(Coordinator& coordinator, bool& left) {
  left = !coordinator.worker().scheduler().spawn([&coordinator, &left] {
    coordinator.finish_background(kLeaveUsMax);
    left = true;
  });
}

Status end_of(const Coordinator& coordinator) {
  if (!coordinator.left_to_resolution()) return Status();
  return Status(Code::kUnavailable,
                "nodes were away for so long that transactions are left to them");
}

EngineOptions engine_options(const BenchOptions& options) {
  EngineOptions engine;
  engine.replicas = options.replicas;
  if (!options.location_cache) engine.location_cache_entries = 0;
  return engine;
}

Scheduler::Options scheduler_options(const BenchOptions& options) {
  Scheduler::Options scheduler;
  scheduler.savings = options.savings;
  return scheduler;
}

FabricChoice choice_of(const BenchOptions& options) {
  FabricChoice choice;
  choice.kind = options.fabric;
  choice.verb_delays = options.verb_delays;
  choice.verbs.device = options.verbs_device;
  choice.verbs.queue_pairs_per_node = options.queue_pairs;
  return choice;
}

class ProcessBenchCluster final : public BenchCluster {
 public:
  ProcessBenchCluster(const BenchOptions& options, std::unique_ptr<NodeProcesses> processes,
                      const std::atomic<bool>& interrupted)
      : options_(options), interrupted_(interrupted), processes_(std::move(processes)) {}
  // Of a cluster that is running.
  ProcessBenchCluster(const BenchOptions& options, std::unique_ptr<Fabric> running,
                      const std::atomic<bool>& interrupted)
      : options_(options), interrupted_(interrupted), running_(std::move(running)) {}

  // The nodes that follow are a cluster of another name, on the same folders.
  Status crash() override {
    if (processes_ == nullptr || options_.data_dir.empty()) {
      return Status(Code::kInvalidArgument, "there are no nodes that could be killed");
    }
    processes_->kill_all();
    processes_.reset();
    Result<std::unique_ptr<NodeProcesses>> started = start_processes(options_, interrupted_);
    if (!started.ok()) return started.status();
    processes_ = std::move(*started);
    return Status();
  }

  static Result<std::unique_ptr<NodeProcesses>> start_processes(
      const BenchOptions& options, const std::atomic<bool>& interrupted) {
    return NodeProcesses::start(choice_of(options), options.topology(),
                                {options.spin_us, options.data_dir}, interrupted);
  }

  Status run(std::span<CoordinatorJob* const> jobs) override {
    std::vector<Status> ended(jobs.size());
    std::vector<std::thread> threads;
    Joining joining(jobs.size());
    for (size_t i = 0; i < jobs.size(); ++i) {
      threads.emplace_back(
          [this, &ended, &joining, job = jobs[i], i] { ended[i] = run_one(*job, joining); });
    }
    for (std::thread& thread : threads) thread.join();
    for (const Status& status : ended) RDMACC_RETURN_IF_ERROR(status);
    return processes_ != nullptr ? processes_->check_alive() : Status();
  }

 private:
  Fabric& fabric() { return processes_ != nullptr ? processes_->fabric() : *running_; }

  // Jobs wait for each other when they start: none does unless all have an endpoint.
  struct Joining {
    explicit Joining(size_t jobs) : all(static_cast<std::ptrdiff_t>(jobs)) {}
    std::latch all;
    std::atomic<bool> failed{false};
  };

  Status run_one(CoordinatorJob& job, Joining& joining) {
    Result<std::unique_ptr<Endpoint>> endpoint = fabric().join();
    if (!endpoint.ok()) joining.failed.store(true);
    joining.all.arrive_and_wait();
    if (!endpoint.ok()) return endpoint.status();
    if (joining.failed.load()) return Status();  // the one that failed says why
    auto made =
        std::make_unique<Coordinator>(std::move(*endpoint), fabric().topology(),
                                      engine_options(options_), scheduler_options(options_));
    Coordinator& coordinator = *made;
    job.start(coordinator);
    Scheduler& scheduler = coordinator.worker().scheduler();
    scheduler.run_until([&job] { return job.finished(); }, options_.spin_us);
    job.finish(coordinator);
    bool left = false;
    leave(coordinator, left);
    scheduler.run_until([&left] { return left; }, options_.spin_us);
    const Status status = end_of(coordinator);
    // It must not leave its slot: the nodes resolve it when this process has ended.
    if (!status.ok()) static_cast<void>(made.release());
    return status;
  }

  const BenchOptions options_;
  const std::atomic<bool>& interrupted_;
  std::unique_ptr<NodeProcesses> processes_;
  const std::unique_ptr<Fabric> running_;
};

Result<std::unique_ptr<Fabric>> open_running(const BenchOptions& options) {
  FabricChoice choice = choice_of(options);
  choice.cluster = options.cluster;
  if (options.config_file.empty()) return open_fabric(choice);
  Result<ClusterConfig> config = read_cluster_config(options.config_file);
  if (!config.ok()) return config.status();
  config->log = [](const std::string& sentence) {
    std::fprintf(stderr, "rdmacc_bench: %s\n", sentence.c_str());
  };
  choice.config = std::move(*config);
  return open_fabric(choice);
}

class SimBenchCluster final : public BenchCluster {
 public:
  static Result<std::unique_ptr<BenchCluster>> start(const BenchOptions& options,
                                                     const std::atomic<bool>& interrupted) {
    SimOptions sim;
    sim.seed = options.seed;
    std::unique_ptr<SimBenchCluster> cluster(
        new SimBenchCluster(options, interrupted, SimFabric::create(options.topology(), sim)));
    for (uint32_t n = 0; n < options.nodes; ++n) {
      for (uint32_t t = 0; t < options.threads_per_node; ++t) {
        RDMACC_RETURN_IF_ERROR(
            cluster->open_thread(static_cast<NodeId>(n), static_cast<uint16_t>(t)));
      }
    }
    return Result<std::unique_ptr<BenchCluster>>(std::move(cluster));
  }

  ~SimBenchCluster() override {
    for (const std::unique_ptr<NodeThread>& thread : node_threads_) {
      fabric_->attach(thread->worker().id(), nullptr);
    }
  }

  Status crash() override {
    return Status(Code::kInvalidArgument, "there are no nodes that could be killed");
  }

  Status run(std::span<CoordinatorJob* const> jobs) override {
    std::vector<std::unique_ptr<Coordinator>> coordinators;
    for (size_t i = 0; i < jobs.size(); ++i) {
      Result<std::unique_ptr<Endpoint>> endpoint = fabric_->join();
      if (!endpoint.ok()) return endpoint.status();
      coordinators.push_back(
          std::make_unique<Coordinator>(std::move(*endpoint), fabric_->topology(),
                                        engine_options(options_), scheduler_options(options_)));
      Worker& worker = coordinators.back()->worker();
      fabric_->attach(worker.id(), &worker.scheduler());
      jobs[i]->start(*coordinators.back());
    }
    const bool ended = fabric_->run_until(
        [&jobs] {
          for (const CoordinatorJob* job : jobs) {
            if (!job->finished()) return false;
          }
          return true;
        },
        UINT64_MAX);
    Status status;
    for (size_t i = 0; i < jobs.size(); ++i) {
      jobs[i]->finish(*coordinators[i]);
      bool left = !ended;
      if (ended) leave(*coordinators[i], left);
      fabric_->run_until([&left] { return left; }, kEventsOfLeave);
      fabric_->attach(coordinators[i]->worker().id(), nullptr);
      if (status.ok()) status = end_of(*coordinators[i]);
    }
    if (!status.ok()) return status;
    return ended || interrupted_.load()
               ? Status()
               : Status(Code::kUnavailable, "nothing is left to happen, yet not all has ended");
  }

 private:
  SimBenchCluster(const BenchOptions& options, const std::atomic<bool>& interrupted,
                  std::unique_ptr<SimFabric> fabric)
      : options_(options), interrupted_(interrupted), fabric_(std::move(fabric)) {
    add_workload_procedures(procedures_, options.workload_cluster());
  }

  Status open_thread(NodeId node, uint16_t number) {
    NodeOptions node_options;
    node_options.order.procedures = &procedures_;
    Result<std::unique_ptr<NodeThread>> thread =
        NodeThread::open(*fabric_, node, number, node_options);
    if (!thread.ok()) return thread.status();
    Worker& worker = (*thread)->worker();
    fabric_->attach(worker.id(), &worker.scheduler());
    node_threads_.push_back(std::move(*thread));
    return Status();
  }

  const BenchOptions options_;
  const std::atomic<bool>& interrupted_;
  const std::unique_ptr<SimFabric> fabric_;
  ProcedureRegistry procedures_;
  std::vector<std::unique_ptr<NodeThread>> node_threads_;
};

}  // namespace

Result<std::unique_ptr<BenchCluster>> BenchCluster::start(const BenchOptions& options,
                                                          const std::atomic<bool>& interrupted) {
  if (options.fabric == FabricKind::kSim) return SimBenchCluster::start(options, interrupted);
  if (options.joins_running_cluster()) {
    Result<std::unique_ptr<Fabric>> fabric = open_running(options);
    if (!fabric.ok()) return fabric.status();
    return Result<std::unique_ptr<BenchCluster>>(
        std::make_unique<ProcessBenchCluster>(options, std::move(*fabric), interrupted));
  }
  Result<std::unique_ptr<NodeProcesses>> processes =
      ProcessBenchCluster::start_processes(options, interrupted);
  if (!processes.ok()) return processes.status();
  return Result<std::unique_ptr<BenchCluster>>(
      std::make_unique<ProcessBenchCluster>(options, std::move(*processes), interrupted));
}

}  // namespace rdmacc
