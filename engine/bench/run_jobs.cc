#include "engine/bench/run_jobs.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "engine/bench/measure/host.h"
#include "engine/protocols/registry.h"
#include "engine/verify/verify.h"
#include "engine/workloads/procedures.h"

namespace rdmacc {
namespace {

constexpr uint32_t kLoadCoroutines = 8;
// What the nodes are still about may be in a check's way: it waits 1 us, 2, 4 … 8 ms between
// attempts, some 8 s in all.
constexpr uint32_t kCheckAttemptsMax = 1000, kCheckPauseBitsMax = 13;
constexpr uint32_t kBackOffBitsMax = 7;  // up to 127 us
constexpr uint64_t kSilentUs = 3'000'000;
constexpr uint64_t kUsPerSecond = 1'000'000;

}  // namespace

// ---- LoadJob

void LoadJob::start(Coordinator& coordinator) {
  CHECK(coordinator.worker().scheduler().spawn([this, &coordinator] { load_all(coordinator); }));
}

void LoadJob::load_all(Coordinator& coordinator) {
  Session session(coordinator);
  status_ = workload_.create_tables(session, owner_);
  for (uint32_t i = 0; i < kLoadCoroutines && status_.ok(); ++i) {
    ++running_;
    CHECK(coordinator.worker().scheduler().spawn([this, &coordinator] {
      load_parts(coordinator);
      --running_;
    }));
  }
  --running_;
}

void LoadJob::load_parts(Coordinator& coordinator) {
  Session session(coordinator);
  while (next_part_ < parts_ && status_.ok() && !interrupted_.load()) {
    const Status loaded = workload_.load(session, txn_, next_part_++, parts_);
    if (!loaded.ok() && status_.ok()) status_ = loaded;
  }
}

// ---- DropJob

void DropJob::start(Coordinator& coordinator) {
  CHECK(coordinator.worker().scheduler().spawn([this, &coordinator] {
    Session session(coordinator);
    status_ = workload_.drop_tables(session);
    finished_ = true;
  }));
}

// ---- RunJob

RunJob::RunJob(RunShared& shared, uint32_t thread)
    : shared_(shared),
      thread_(thread),
      chooser_(shared.options.seed * 1'000'003 + thread),
      pace_(shared.options.load.rate / shared.options.threads,
            shared.options.load.latency_limit_ns(), ~(shared.options.seed * 1'000'003 + thread)) {}

void RunJob::start(Coordinator& coordinator) {
  coordinator.set_history(shared_.history);
  if (shared_.options.auto_plan) coordinator.set_observer(&recorder_);
  if (shared_.options.fabric != FabricKind::kSim) shared_.ready.arrive_and_wait();
  Worker& worker = coordinator.worker();
  const LoadOptions& load = shared_.options.load;
  started_us_ = ended_us_ = worker.endpoint().now_us();
  const uint64_t measured_from_us = started_us_ + static_cast<uint64_t>(load.warm_up_seconds * 1e6);
  deadline_us_ = load.transactions > 0
                     ? UINT64_MAX
                     : measured_from_us + static_cast<uint64_t>(shared_.options.seconds * 1e6);
  pace_.begin(worker.endpoint().now_ns());
  if (load.warm_up_seconds > 0) {
    CHECK(worker.scheduler().spawn([this, &coordinator, measured_from_us] {
      coordinator.worker().scheduler().sleep_until(measured_from_us);
      if (running_ > 0) begin_measuring(coordinator);
    }));
  } else {
    begin_measuring(coordinator);
  }
  // One stream of random numbers per coroutine, all from the one seed.
  Random seeds(shared_.options.seed * 1'000'003 + thread_);
  running_ = shared_.options.coroutines;
  for (uint32_t c = 0; c < shared_.options.coroutines; ++c) {
    const uint64_t seed = seeds.next();
    CHECK(worker.scheduler().spawn([this, &coordinator, seed] {
      run_transactions(coordinator, seed);
      ended_us_ = std::max(ended_us_, coordinator.worker().endpoint().now_us());
      --running_;
    }));
  }
  if (thread_ == 0 && shared_.options.progress_seconds > 0) {
    CHECK(worker.scheduler().spawn([this, &coordinator] { report_progress(coordinator); }));
  }
}

// Hands over the seconds that have ended. The last one ends with the run: what is under way when
// the time is over counts as part of it.
void RunJob::end_seconds(uint64_t now_us) {
  if (!measuring_) return;
  const bool counts_transactions = shared_.options.load.transactions > 0;
  const uint32_t seconds =
      counts_transactions ? UINT32_MAX : static_cast<uint32_t>(std::ceil(shared_.options.seconds));
  while (second_ < seconds) {
    const bool last = second_ + 1 == seconds;
    if (now_us < (last ? UINT64_MAX : started_us_ + (second_ + 1) * kUsPerSecond)) return;
    shared_.timeline.add(second_++, counts_);
    counts_ = SecondCounts();
  }
}

// What is under way counts when it ends.
void RunJob::begin_measuring(Coordinator& coordinator) {
  Endpoint& endpoint = coordinator.worker().endpoint();
  measuring_ = true;
  started_us_ = ended_us_ = endpoint.now_us();
  // On the heap: it is larger than a coroutine's stack.
  coordinator.stats() = *std::make_unique<WorkerStats>();
  committed_ = rolled_back_ = declared_ = 0;
  latency_ns_.clear();
  counts_ = SecondCounts();
  pace_.forget_lags();
  measures_ = Measures();
  measures_.processor_ns = thread_processor_ns();
}

void RunJob::end_measuring(Coordinator& coordinator) {
  if (!measuring_) begin_measuring(coordinator);  // no transaction was due any more
  if (shared_.options.load.transactions > 0) {
    end_seconds(ended_us_);
    shared_.timeline.add(second_++, counts_);
    shared_.timeline.leave(second_);
  } else {
    end_seconds(UINT64_MAX);
  }
  measures_.lag_ns = pace_.lag_ns();
  measures_.processor_ns = thread_processor_ns() - measures_.processor_ns;
  measures_.coordinator_ns = (ended_us_ - started_us_) * 1000;
}

bool RunJob::over(uint64_t now_us) const {
  return shared_.interrupted.load(std::memory_order_relaxed) ||
         shared_.failed.load(std::memory_order_relaxed) || now_us >= deadline_us_;
}

void RunJob::run_transactions(Coordinator& coordinator, uint64_t seed) {
  Random random(seed);
  Session session(coordinator);
  Scheduler& scheduler = coordinator.worker().scheduler();
  const uint64_t wanted = shared_.options.load.transactions;
  const uint64_t deadline_ns = wanted > 0 ? UINT64_MAX : deadline_us_ * 1000;
  uint64_t ran = 0;
  while (wanted == 0 || ran < wanted) {
    const uint64_t now_ns = scheduler.endpoint().now_ns();
    if (over(now_ns / 1000)) return;
    const std::optional<Pace::Start> start = pace_.wait(scheduler, now_ns, deadline_ns);
    if (!start) return;
    ran += measuring_ ? 1 : 0;
    if (start->skipped) {
      ++measures_.skipped;
      continue;
    }
    const TxnInputs inputs = shared_.workload.draw(random);
    measures_.spread.note(shared_.workload, inputs, coordinator.topology().nodes);
    if (!run_one(coordinator, session, inputs, random, start->at_ns)) return;
  }
}

void RunJob::count_committed(uint64_t start_ns, uint64_t now_ns, const TxnEffect& effect) {
  end_seconds(now_ns / 1000);
  const uint64_t latency_ns = now_ns - start_ns;
  latency_ns_.record(latency_ns);
  counts_.latency_ns.record(latency_ns);
  ++committed_;
  ++counts_.committed;
  delta_ += effect.delta;
  const uint64_t limit_ns = shared_.options.load.latency_limit_ns();
  if (limit_ns > 0 && latency_ns > limit_ns) ++measures_.late;
}

TxnOptions RunJob::next_options() {
  TxnOptions txn = shared_.txn;
  if (shared_.options.auto_plan) {
    txn.plan = chooser_.choose(txn.protocol, stages_of(txn.protocol)).plan;
  }
  return txn;
}

// Attempts until it is committed or its user rolls it back; false when the run is to end.
bool RunJob::run_one(Coordinator& coordinator, Session& session, const TxnInputs& inputs,
                     Random& random, uint64_t start_ns) {
  Worker& worker = coordinator.worker();
  EffectiveTime::Sample time(measures_.effective, worker.scheduler());
  for (uint32_t attempt = 1;; ++attempt) {
    TxnEffect effect;
    const TxnOptions txn = next_options();
    time.attempt_begins();
    const Status status = shared_.options.declares()
                              ? attempt_as_procedure(shared_.workload, session, txn, inputs, effect)
                              : shared_.workload.attempt(session, txn, inputs, effect);
    time.attempt_ends(status.ok() && !effect.rollback);
    shared_.attempts.fetch_add(1, std::memory_order_relaxed);
    if (status.ok()) {
      shared_.ended.fetch_add(1, std::memory_order_relaxed);
      declared_ += effect.declared ? 1 : 0;
      if (effect.rollback) {
        ++rolled_back_;
        ++counts_.rolled_back;
        return true;
      }
      count_committed(start_ns, worker.endpoint().now_ns(), effect);
      return true;
    }
    if (status.code() != Code::kAborted) {
      if (status_.ok()) status_ = status;
      shared_.failed.store(true);
      return false;
    }
    ++counts_.aborted;
    if (over(worker.endpoint().now_us())) return false;
    // Transactions that conflicted once do so again unless they restart at different times.
    worker.scheduler().sleep_for(random.below(uint64_t{1} << std::min(attempt, kBackOffBitsMax)));
  }
}

void RunJob::report_progress(Coordinator& coordinator) const {
  Scheduler& scheduler = coordinator.worker().scheduler();
  const double every = shared_.options.progress_seconds;
  const uint64_t began_us = started_us_;  // a warm-up counts here
  uint64_t ended_before = 0, attempts_before = 0;
  for (uint32_t line = 1;; ++line) {
    scheduler.sleep_until(began_us + static_cast<uint64_t>(line * every * 1e6));
    if (running_ == 0) return;
    const uint64_t ended = shared_.ended.load(), attempts = shared_.attempts.load();
    const uint64_t fresh = ended - ended_before, tried = attempts - attempts_before;
    std::fprintf(stderr, "progress: %.1f s, %.0f committed/s, %.2f %% aborted\n", line * every,
                 static_cast<double>(fresh) / every,
                 tried > fresh
                     ? 100.0 * static_cast<double>(tried - fresh) / static_cast<double>(tried)
                     : 0.0);
    ended_before = ended;
    attempts_before = attempts;
  }
}

// ---- CheckJob

TxnOptions CheckJob::scanning(const TxnOptions& of_run) {
  TxnOptions txn = of_run;
  if (executes_procedures(txn.protocol)) {
    txn.protocol = Protocol::kOcc;
    txn.plan = StagePlan();
  }
  return txn;
}

void CheckJob::start(Coordinator& coordinator) {
  CHECK(coordinator.worker().scheduler().spawn([this, &coordinator] {
    Session session(coordinator);
    if (options_.full_check) status_ = verify(session);
    if (status_.ok() && violation_.empty()) status_ = check(session);
    finished_ = true;
  }));
}

Status CheckJob::check(Session& session) {
  Status status;
  for (uint32_t i = 0; i < kCheckAttemptsMax; ++i) {
    status = workload_.check(session, txn_, delta_, violation_);
    if (status.code() != Code::kAborted) break;
    session.scheduler().sleep_for(uint64_t{1} << std::min(i, kCheckPauseBitsMax));
  }
  return status;
}

// On a cluster that goes on after the run, units may be what other runs have left.
Status CheckJob::verify(Session& session) {
  VerifyOptions options;
  options.txn = txn_;
  options.units = !options_.joins_running_cluster();
  options.cancelled = [this] { return interrupted_.load(); };
  Endpoint& endpoint = session.scheduler().endpoint();
  options.progress = [&endpoint, since_us = endpoint.now_us()](const std::string& line) {
    if (endpoint.now_us() < since_us + kSilentUs) return;
    std::fprintf(stderr, "rdmacc_bench: verifying: %s\n", line.c_str());
  };
  std::vector<TableToVerify> tables;
  for (size_t i = 0; i < workload_.tables().size(); ++i) {
    tables.push_back({workload_.tables()[i], workload_.is_ordered_index(i)});
  }
  Result<VerifyReport> report = verify_tables(session, tables, options);
  if (!report.ok()) return report.status();
  if (report->findings.empty()) return Status();
  violation_ = report->findings.front().to_string();
  if (report->findings.size() > 1) {
    violation_ += "; and " + std::to_string(report->findings.size() - 1) + " other findings";
  }
  return Status();
}

}  // namespace rdmacc
