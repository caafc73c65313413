#include "engine/bench/run_jobs.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "engine/protocols/registry.h"
#include "engine/verify/verify.h"
#include "engine/workloads/procedures.h"

namespace rdmacc {
namespace {

constexpr uint32_t kLoadCoroutines = 8;
constexpr uint32_t kCheckAttemptsMax = 1000;
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

void RunJob::start(Coordinator& coordinator) {
  coordinator.set_history(shared_.history);
  if (shared_.options.auto_plan) coordinator.set_observer(&recorder_);
  if (shared_.options.fabric != FabricKind::kSim) shared_.ready.arrive_and_wait();
  Worker& worker = coordinator.worker();
  started_us_ = ended_us_ = worker.endpoint().now_us();
  deadline_us_ = started_us_ + static_cast<uint64_t>(shared_.options.seconds * 1e6);
  // One stream of random numbers per coroutine, all from the one seed.
  Random seeds(shared_.options.seed * 1'000'003 + thread_);
  running_ = shared_.options.coroutines;
  for (uint32_t c = 0; c < shared_.options.coroutines; ++c) {
    const uint64_t seed = seeds.next();
    CHECK(worker.scheduler().spawn([this, &coordinator, seed] {
      run_transactions(coordinator, seed);
      ended_us_ = std::max(ended_us_, coordinator.worker().endpoint().now_us());
      if (--running_ == 0) end_seconds(UINT64_MAX);
    }));
  }
  if (thread_ == 0 && shared_.options.progress_seconds > 0) {
    CHECK(worker.scheduler().spawn([this, &coordinator] { report_progress(coordinator); }));
  }
}

// Hands over the seconds that have ended. The last one ends with the run: what is under way when
// the time is over counts as part of it.
void RunJob::end_seconds(uint64_t now_us) {
  const auto seconds = static_cast<uint32_t>(std::ceil(shared_.options.seconds));
  while (second_ < seconds) {
    const bool last = second_ + 1 == seconds;
    if (now_us < (last ? UINT64_MAX : started_us_ + (second_ + 1) * kUsPerSecond)) return;
    shared_.timeline.add(second_++, counts_);
    counts_ = SecondCounts();
  }
}

bool RunJob::over(Endpoint& endpoint) const {
  return shared_.interrupted.load(std::memory_order_relaxed) ||
         shared_.failed.load(std::memory_order_relaxed) || endpoint.now_us() >= deadline_us_;
}

void RunJob::run_transactions(Coordinator& coordinator, uint64_t seed) {
  Random random(seed);
  Session session(coordinator);
  Endpoint& endpoint = coordinator.worker().endpoint();
  while (!over(endpoint)) {
    end_seconds(endpoint.now_us());
    const TxnInputs inputs = shared_.workload.draw(random);
    if (!run_one(coordinator, session, inputs, random)) return;
  }
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
                     Random& random) {
  Worker& worker = coordinator.worker();
  const uint64_t start_ns = worker.endpoint().now_ns();
  for (uint32_t attempt = 1;; ++attempt) {
    TxnEffect effect;
    const TxnOptions txn = next_options();
    const Status status = shared_.options.declares()
                              ? attempt_as_procedure(shared_.workload, session, txn, inputs, effect)
                              : shared_.workload.attempt(session, txn, inputs, effect);
    shared_.attempts.fetch_add(1, std::memory_order_relaxed);
    if (status.ok()) {
      shared_.ended.fetch_add(1, std::memory_order_relaxed);
      declared_ += effect.declared ? 1 : 0;
      if (effect.rollback) {
        ++rolled_back_;
        ++counts_.rolled_back;
        return true;
      }
      const uint64_t took_ns = worker.endpoint().now_ns() - start_ns;
      latency_ns_.record(took_ns);
      counts_.latency_ns.record(took_ns);
      ++committed_;
      ++counts_.committed;
      delta_ += effect.delta;
      return true;
    }
    if (status.code() != Code::kAborted) {
      if (status_.ok()) status_ = status;
      shared_.failed.store(true);
      return false;
    }
    ++counts_.aborted;
    if (over(worker.endpoint())) return false;
    // Transactions that conflicted once do so again unless they restart at different times.
    worker.scheduler().sleep_for(random.below(uint64_t{1} << std::min(attempt, kBackOffBitsMax)));
  }
}

void RunJob::report_progress(Coordinator& coordinator) const {
  Scheduler& scheduler = coordinator.worker().scheduler();
  const double every = shared_.options.progress_seconds;
  uint64_t ended_before = 0, attempts_before = 0;
  for (uint32_t line = 1;; ++line) {
    scheduler.sleep_until(started_us_ + static_cast<uint64_t>(line * every * 1e6));
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
    session.scheduler().yield();
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
