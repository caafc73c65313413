#pragma once
#include <atomic>
#include <latch>
#include <string>

#include "engine/bench/bench_cluster.h"
#include "engine/bench/measure/measures.h"
#include "engine/bench/measure/pace.h"
#include "engine/bench/run_timeline.h"
#include "engine/protocols/registry.h"
#include "engine/stats/stats_recorder.h"
#include "engine/workloads/workload.h"
#include "rdma/base/histogram.h"

namespace rdmacc {

// What all coordinators of a run share.
struct RunShared {
  RunShared(const Workload& of_workload, const BenchOptions& of_options,
            const std::atomic<bool>& of_interrupted)
      : workload(of_workload),
        options(of_options),
        interrupted(of_interrupted),
        timeline(of_options.threads),
        ready(static_cast<std::ptrdiff_t>(of_options.threads)) {
    txn.protocol = options.protocol;
    txn.plan = options.plan;
    txn.lock_mode = options.lock_mode;
  }

  const Workload& workload;
  const BenchOptions& options;
  const std::atomic<bool>& interrupted;
  TxnOptions txn;
  HistoryWriter* history = nullptr;
  RunTimeline timeline;
  std::latch ready;                 // real threads begin together
  std::atomic<bool> failed{false};  // some coroutine met an error: all end
  std::atomic<uint64_t> ended{0};   // transactions so far, for progress lines
  std::atomic<uint64_t> attempts{0};
};

// Creates the workload's tables and loads them, several coroutines taking part after part.
class LoadJob : public CoordinatorJob {
 public:
  LoadJob(Workload& workload, const TxnOptions& txn, uint64_t parts,
          const std::atomic<bool>& interrupted, TableOwner owner = {})
      : workload_(workload), txn_(txn), parts_(parts), interrupted_(interrupted), owner_(owner) {}
  void start(Coordinator& coordinator) override;
  bool finished() const override { return running_ == 0; }
  const Status& status() const { return status_; }

 private:
  void load_all(Coordinator& coordinator);
  void load_parts(Coordinator& coordinator);

  Workload& workload_;
  const TxnOptions txn_;
  const uint64_t parts_;
  uint64_t next_part_ = 0;
  const std::atomic<bool>& interrupted_;
  const TableOwner owner_;
  uint32_t running_ = 1;
  Status status_;
};

// Drops the workload's tables.
class DropJob : public CoordinatorJob {
 public:
  explicit DropJob(const Workload& workload) : workload_(workload) {}
  void start(Coordinator& coordinator) override;
  bool finished() const override { return finished_; }
  const Status& status() const { return status_; }

 private:
  const Workload& workload_;
  bool finished_ = false;
  Status status_;
};

// One coordinator of the run proper: its coroutines draw transactions and attempt each until it
// commits, until the time is over or each has run as many as it is told. What it tells was measured
// once the warm-up was over, but for delta().
class RunJob : public CoordinatorJob {
 public:
  RunJob(RunShared& shared, uint32_t thread);
  void start(Coordinator& coordinator) override;
  bool finished() const override { return running_ == 0; }
  void finish(Coordinator& coordinator) override {
    coordinator.set_observer(nullptr);
    end_measuring(coordinator);
    stats_ = coordinator.stats();
  }

  const Status& status() const { return status_; }
  const WorkerStats& stats() const { return stats_; }
  const Histogram& latency_ns() const { return latency_ns_; }
  uint64_t committed() const { return committed_; }
  uint64_t rolled_back() const { return rolled_back_; }
  uint64_t declared() const { return declared_; }
  // With --stages=auto: what this coordinator has found to be cheapest.
  StagePlan best_plan() const {
    const Protocol protocol = shared_.options.protocol;
    return chooser_.best(protocol, stages_of(protocol));
  }
  const Measures& measures() const { return measures_; }
  int64_t delta() const { return delta_; }
  uint64_t started_us() const { return started_us_; }
  uint64_t ended_us() const { return ended_us_; }

 private:
  void begin_measuring(Coordinator& coordinator);
  void end_measuring(Coordinator& coordinator);
  void run_transactions(Coordinator& coordinator, uint64_t seed);
  bool run_one(Coordinator& coordinator, Session& session, const TxnInputs& inputs, Random& random,
               uint64_t start_ns);
  void count_committed(uint64_t start_ns, uint64_t now_ns, const TxnEffect& effect);
  void report_progress(Coordinator& coordinator) const;
  void end_seconds(uint64_t now_us);
  bool over(uint64_t now_us) const;
  TxnOptions next_options();

  RunShared& shared_;
  const uint32_t thread_;
  PlanChooser chooser_;
  StatsRecorder recorder_{nullptr, &chooser_};
  Pace pace_;
  Measures measures_;
  bool measuring_ = false;
  uint32_t running_ = 0;
  uint64_t started_us_ = 0, deadline_us_ = 0, ended_us_ = 0;
  uint64_t committed_ = 0, rolled_back_ = 0, declared_ = 0;
  int64_t delta_ = 0;
  Histogram latency_ns_;
  uint32_t second_ = 0;  // the one that `counts_` is of
  SecondCounts counts_;
  WorkerStats stats_;
  Status status_;
};

// Checks that the tables are sound, unless the options leave that out, and the invariant. A
// protocol that commits in a global order has a bound on what one transaction may read: then OCC
// reads.
class CheckJob : public CoordinatorJob {
 public:
  CheckJob(const RunShared& shared, int64_t delta)
      : workload_(shared.workload),
        options_(shared.options),
        txn_(scanning(shared.txn)),
        interrupted_(shared.interrupted),
        delta_(delta) {}
  void start(Coordinator& coordinator) override;
  bool finished() const override { return finished_; }
  const Status& status() const { return status_; }
  const std::string& violation() const { return violation_; }

 private:
  static TxnOptions scanning(const TxnOptions& of_run);
  Status verify(Session& session);
  Status check(Session& session);

  const Workload& workload_;
  const BenchOptions& options_;
  const TxnOptions txn_;
  const std::atomic<bool>& interrupted_;
  const int64_t delta_;
  bool finished_ = false;
  Status status_;
  std::string violation_;
};

}  // namespace rdmacc
