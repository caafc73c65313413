#include "engine/bench/report_numbers.h"

#include <cmath>

namespace rdmacc {
namespace {

double us(double ns) { return rounded(ns / 1000); }
double us(uint64_t ns) { return us(static_cast<double>(ns)); }

double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

}  // namespace

StagePlan plan_of(const BenchRun& run) {
  return run.options.auto_plan ? run.result.plan : run.options.plan;
}

double rounded(double value) { return std::round(value * 1000) / 1000; }

double committed_per_second(const RunResult& result) {
  return ratio(static_cast<double>(result.committed), result.seconds);
}

uint64_t aborted_attempts(const RunResult& result) {
  // The coordinator counts the users' own among the aborted, those that only looked something up
  // (Workload::survey), too.
  uint64_t aborted = 0;
  for (const auto& [reason, count] : aborts_by_reason(result)) aborted += count;
  return aborted;
}

double abort_rate(const RunResult& result) {
  const auto aborted = static_cast<double>(aborted_attempts(result));
  return ratio(aborted, aborted + static_cast<double>(result.committed));
}

std::vector<std::pair<const char*, uint64_t>> aborts_by_reason(const RunResult& result) {
  std::vector<std::pair<const char*, uint64_t>> counts;
  for (size_t r = 1; r < result.stats.aborts.size(); ++r) {
    counts.emplace_back(abort_reason_name(static_cast<AbortReason>(r)), result.stats.aborts[r]);
  }
  return counts;
}

LatencyUs latency_us(const RunResult& result) {
  const Histogram& ns = result.latency_ns;
  return {us(ns.mean()), us(ns.percentile(50)), us(ns.percentile(90)), us(ns.percentile(99)),
          us(ns.percentile(99.9))};
}

std::vector<StageLatency> stage_latencies(const RunResult& result) {
  std::vector<StageLatency> list;
  for (uint32_t s = 0; s < kStageCount; ++s) {
    for (const Primitive primitive : {Primitive::kOneSided, Primitive::kRpc}) {
      const Histogram& ns = result.stats.stage_ns[s][static_cast<size_t>(primitive)];
      if (ns.count() == 0) continue;
      list.push_back({static_cast<Stage>(1u << s), primitive, ns.count(), us(ns.mean()),
                      us(ns.percentile(50)), us(ns.percentile(99))});
    }
  }
  return list;
}

std::vector<std::pair<const char*, double>> per_transaction(const RunResult& result) {
  const VerbCounters& verbs = result.stats.verbs;
  const auto per = [&result](uint64_t count) {
    return rounded(ratio(static_cast<double>(count), static_cast<double>(result.committed)));
  };
  return {{"round_trips", per(verbs.round_trips)},
          {"doorbells", per(verbs.doorbells)},
          {"reads", per(verbs.reads)},
          {"writes", per(verbs.writes)},
          {"atomics", per(verbs.atomics)},
          {"messages", per(verbs.messages)}};
}

double to_us(double ns) { return us(ns); }

std::string invariant(const RunResult& result) {
  return result.violation.empty() ? "ok" : result.violation;
}

}  // namespace rdmacc
