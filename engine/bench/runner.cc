#include "engine/bench/runner.h"

#include <algorithm>
#include <vector>

#include "engine/bench/run_jobs.h"
#include "engine/check/history_file.h"

namespace rdmacc {
namespace {

constexpr uint64_t kAccountsPerPart = 1'000;  // between two looks at `interrupted`

class Benchmark {
 public:
  Benchmark(const BenchOptions& options, const std::atomic<bool>& interrupted)
      : options_(options),
        interrupted_(interrupted),
        workload_(options.smallbank),
        shared_(workload_, options_, interrupted) {}

  Result<RunResult> run() {
    RDMACC_RETURN_IF_ERROR(open_history());
    Result<std::unique_ptr<BenchCluster>> cluster = BenchCluster::start(options_, interrupted_);
    if (!cluster.ok()) return cluster.status();
    RDMACC_RETURN_IF_ERROR(load(**cluster));
    RDMACC_RETURN_IF_ERROR(measure(**cluster));
    RDMACC_RETURN_IF_ERROR(check(**cluster));
    if (history_ != nullptr) RDMACC_RETURN_IF_ERROR(history_->close());
    return std::move(result_);
  }

 private:
  Status open_history() {
    if (options_.history_file.empty()) return Status();
    Result<std::unique_ptr<HistoryFile>> file = HistoryFile::create(options_.history_file);
    if (!file.ok()) return file.status();
    history_ = std::move(*file);
    shared_.history = history_.get();
    return Status();
  }

  Status unless_interrupted(const Status& status) const {
    return interrupted_.load() ? Status(Code::kCancelled, "interrupted") : status;
  }

  Status run_single(BenchCluster& cluster, CoordinatorJob& job) const {
    CoordinatorJob* const jobs[] = {&job};
    return unless_interrupted(cluster.run(jobs));
  }

  Status load(BenchCluster& cluster) {
    const uint64_t parts = options_.smallbank.accounts / kAccountsPerPart + 1;
    LoadJob job(workload_, shared_.txn, parts, interrupted_);
    RDMACC_RETURN_IF_ERROR(run_single(cluster, job));
    if (job.status().code() == Code::kNoSpace) {
      return Status(Code::kNoSpace, "--memory=" + std::to_string(options_.memory_mb) +
                                        " is too small for --accounts=" +
                                        std::to_string(options_.smallbank.accounts) + ": " +
                                        job.status().message());
    }
    return job.status();
  }

  Status measure(BenchCluster& cluster) {
    std::vector<std::unique_ptr<RunJob>> jobs;
    std::vector<CoordinatorJob*> started;
    for (uint32_t t = 0; t < options_.threads; ++t) {
      jobs.push_back(std::make_unique<RunJob>(shared_, t));
      started.push_back(jobs.back().get());
    }
    RDMACC_RETURN_IF_ERROR(unless_interrupted(cluster.run(started)));
    uint64_t elapsed_us = 0;
    for (const std::unique_ptr<RunJob>& job : jobs) {
      RDMACC_RETURN_IF_ERROR(job->status());
      elapsed_us = std::max(elapsed_us, job->ended_us() - job->started_us());
      result_.committed += job->committed();
      result_.stats.merge(job->stats());
      result_.latency_ns.merge(job->latency_ns());
      delta_ += job->delta();
    }
    result_.seconds = static_cast<double>(elapsed_us) / 1e6;
    return Status();
  }

  Status check(BenchCluster& cluster) {
    CheckJob job(workload_, shared_.txn, delta_);
    RDMACC_RETURN_IF_ERROR(run_single(cluster, job));
    result_.violation = job.violation();
    return job.status();
  }

  const BenchOptions options_;
  const std::atomic<bool>& interrupted_;
  Smallbank workload_;
  RunShared shared_;
  std::unique_ptr<HistoryFile> history_;
  int64_t delta_ = 0;
  RunResult result_;
};

}  // namespace

Result<RunResult> run_benchmark(const BenchOptions& options, const std::atomic<bool>& interrupted) {
  return Benchmark(options, interrupted).run();
}

}  // namespace rdmacc
