#include "engine/bench/runner.h"

#include <algorithm>
#include <cstdio>

#include "engine/bench/measure/host.h"
#include "engine/bench/run_jobs.h"
#include "engine/check/history_file.h"
#include "engine/protocols/registry.h"

namespace rdmacc {
namespace {

// A cluster with the workload's rows, for one run after another.
class LoadedCluster {
 public:
  static Result<std::unique_ptr<LoadedCluster>> start(const BenchOptions& options,
                                                      const std::atomic<bool>& interrupted) {
    Result<std::unique_ptr<Workload>> workload = options.make_workload();
    if (!workload.ok()) return workload.status();
    Result<std::unique_ptr<BenchCluster>> cluster = BenchCluster::start(options, interrupted);
    if (!cluster.ok()) return cluster.status();
    std::unique_ptr<LoadedCluster> loaded(new LoadedCluster(
        std::move(*workload), std::move(*cluster), interrupted, options.owner.given()));
    RDMACC_RETURN_IF_ERROR(loaded->load(options));
    return loaded;
  }

  // However the run has ended, tables that belong to another front end do not stay.
  ~LoadedCluster() {
    if (!drops_tables_) return;
    DropJob drop(*workload_);
    CoordinatorJob* const jobs[] = {&drop};
    Status status = cluster_->run(jobs);
    if (status.ok()) status = drop.status();
    if (status.ok()) return;
    std::fprintf(stderr, "rdmacc_bench: tables are left: %s\n", status.to_string().c_str());
  }

  // Runs, and checks that everything since the cluster began adds up.
  Result<RunResult> run(const BenchOptions& options, HistoryWriter* history) {
    RunShared shared(*workload_, options, interrupted_);
    shared.history = history;
    RunResult result;
    RDMACC_RETURN_IF_ERROR(measure(shared, result));
    if (options.crash) RDMACC_RETURN_IF_ERROR(unless_interrupted(cluster_->crash()));
    CheckJob check(shared, delta_);
    RDMACC_RETURN_IF_ERROR(run_single(check));
    RDMACC_RETURN_IF_ERROR(check.status());
    result.violation = check.violation();
    return result;
  }

  bool grows() const { return workload_->grows(); }

 private:
  LoadedCluster(std::unique_ptr<Workload> workload, std::unique_ptr<BenchCluster> cluster,
                const std::atomic<bool>& interrupted, bool drops_tables)
      : workload_(std::move(workload)),
        cluster_(std::move(cluster)),
        interrupted_(interrupted),
        drops_tables_(drops_tables) {}

  Status unless_interrupted(const Status& status) const {
    return interrupted_.load() ? Status(Code::kCancelled, "interrupted") : status;
  }

  Status run_single(CoordinatorJob& job) const {
    CoordinatorJob* const jobs[] = {&job};
    return unless_interrupted(cluster_->run(jobs));
  }

  Status load(const BenchOptions& options) {
    const RunShared shared(*workload_, options, interrupted_);
    LoadJob job(*workload_, shared.txn, workload_->load_parts(), interrupted_, options.owner);
    RDMACC_RETURN_IF_ERROR(run_single(job));
    if (job.status().code() == Code::kNoSpace) {
      return Status(Code::kNoSpace, "--memory=" + std::to_string(options.memory_mb) +
                                        " is too small for " + options.workload + " with " +
                                        options.settings.to_string() + ": " +
                                        job.status().message());
    }
    return job.status();
  }

  Status measure(RunShared& shared, RunResult& result) {
    std::vector<std::unique_ptr<RunJob>> jobs;
    std::vector<CoordinatorJob*> started;
    for (uint32_t t = 0; t < shared.options.threads; ++t) {
      jobs.push_back(std::make_unique<RunJob>(shared, t));
      started.push_back(jobs.back().get());
    }
    if (shared.options.fabric != FabricKind::kSim) result.started = utc_now();
    RDMACC_RETURN_IF_ERROR(unless_interrupted(cluster_->run(started)));
    uint64_t elapsed_us = 0;
    for (const std::unique_ptr<RunJob>& job : jobs) {
      RDMACC_RETURN_IF_ERROR(job->status());
      elapsed_us = std::max(elapsed_us, job->ended_us() - job->started_us());
      result.committed += job->committed();
      result.rolled_back += job->rolled_back();
      result.declared += job->declared();
      result.stats.merge(job->stats());
      result.latency_ns.merge(job->latency_ns());
      result.measures.merge(job->measures());
      delta_ += job->delta();
    }
    result.seconds = static_cast<double>(elapsed_us) / 1e6;
    result.timeline = shared.timeline.seconds();
    result.plan = jobs.front()->best_plan();
    return Status();
  }

  const std::unique_ptr<Workload> workload_;
  const std::unique_ptr<BenchCluster> cluster_;
  const std::atomic<bool>& interrupted_;
  const bool drops_tables_;
  int64_t delta_ = 0;  // of all runs
};

}  // namespace

Result<RunResult> run_benchmark(const BenchOptions& options, const std::atomic<bool>& interrupted) {
  std::unique_ptr<HistoryFile> history;
  if (!options.history_file.empty()) {
    Result<std::unique_ptr<HistoryFile>> file = HistoryFile::create(options.history_file);
    if (!file.ok()) return file.status();
    history = std::move(*file);
  }
  Result<std::unique_ptr<LoadedCluster>> cluster = LoadedCluster::start(options, interrupted);
  if (!cluster.ok()) return cluster.status();
  Result<RunResult> result = (*cluster)->run(options, history.get());
  if (result.ok() && history != nullptr) RDMACC_RETURN_IF_ERROR(history->close());
  return result;
}

Status run_in_turn(std::span<const BenchOptions> points, const std::atomic<bool>& interrupted,
                   const std::function<void(const BenchRun&)>& report,
                   std::vector<BenchRun>& runs) {
  for (const BenchOptions& options : points) {
    Result<RunResult> result = run_benchmark(options, interrupted);
    if (!result.ok()) return result.status();
    runs.push_back(BenchRun{options, std::move(*result)});
    report(runs.back());
  }
  return Status();
}

std::vector<StagePlan> distinct_plans(Protocol protocol) {
  const uint16_t stages = stages_of(protocol);
  std::vector<StagePlan> plans;
  for (uint16_t code = 0; code <= stages; ++code) {
    if ((code & stages) == code) plans.emplace_back(code);
  }
  return plans;
}

Result<std::vector<BenchRun>> run_all_plans(const BenchOptions& options,
                                            const std::atomic<bool>& interrupted,
                                            const std::function<void(const BenchRun&)>& report) {
  std::vector<BenchRun> runs;
  std::unique_ptr<LoadedCluster> cluster;
  for (const StagePlan plan : distinct_plans(options.protocol)) {
    BenchRun run;
    run.options = options;
    run.options.plan = plan;
    if (cluster == nullptr || cluster->grows()) {
      cluster.reset();  // before its successor, which has the same name
      Result<std::unique_ptr<LoadedCluster>> started =
          LoadedCluster::start(run.options, interrupted);
      if (!started.ok()) return started.status();
      cluster = std::move(*started);
    }
    Result<RunResult> result = cluster->run(run.options, nullptr);
    if (!result.ok()) return result.status();
    run.result = std::move(*result);
    runs.push_back(std::move(run));
    report(runs.back());
  }
  std::stable_sort(runs.begin(), runs.end(), [](const BenchRun& a, const BenchRun& b) {
    return static_cast<double>(a.result.committed) * b.result.seconds >
           static_cast<double>(b.result.committed) * a.result.seconds;
  });
  return runs;
}

}  // namespace rdmacc
