#include "engine/bench/report.h"

#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "engine/protocols/registry.h"

namespace rdmacc {
namespace {

using Json = nlohmann::ordered_json;

double rounded(double value) { return std::round(value * 1000) / 1000; }
double us(double ns) { return rounded(ns / 1000); }
double us(uint64_t ns) { return us(static_cast<double>(ns)); }

double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

double per_second(const RunResult& result) {
  return ratio(static_cast<double>(result.committed), result.seconds);
}

double abort_rate(const RunResult& result) {
  const auto aborted = static_cast<double>(result.stats.aborted);
  return ratio(aborted, aborted + static_cast<double>(result.committed));
}

double per_transaction(uint64_t count, const RunResult& result) {
  return rounded(ratio(static_cast<double>(count), static_cast<double>(result.committed)));
}

Json aborts(const RunResult& result) {
  Json counts = Json::object();
  for (size_t r = 1; r < result.stats.aborts.size(); ++r) {
    if (result.stats.aborts[r] == 0) continue;
    counts[abort_reason_name(static_cast<AbortReason>(r))] = result.stats.aborts[r];
  }
  return counts;
}

Json stage_latencies(const RunResult& result) {
  Json list = Json::array();
  for (uint32_t s = 0; s < kStageCount; ++s) {
    for (const Primitive primitive : {Primitive::kOneSided, Primitive::kRpc}) {
      const Histogram& ns = result.stats.stage_ns[s][static_cast<size_t>(primitive)];
      if (ns.count() == 0) continue;
      list.push_back({{"stage", stage_name(static_cast<Stage>(1u << s))},
                      {"primitive", primitive_name(primitive)},
                      {"count", ns.count()},
                      {"mean_us", us(ns.mean())},
                      {"p50_us", us(ns.percentile(50))},
                      {"p99_us", us(ns.percentile(99))}});
    }
  }
  return list;
}

Json verbs(const RunResult& result) {
  const VerbCounters& verbs = result.stats.verbs;
  return {{"round_trips", per_transaction(verbs.round_trips, result)},
          {"doorbells", per_transaction(verbs.doorbells, result)},
          {"reads", per_transaction(verbs.reads, result)},
          {"writes", per_transaction(verbs.writes, result)},
          {"atomics", per_transaction(verbs.atomics, result)},
          {"messages", per_transaction(verbs.messages, result)}};
}

Json to_json(const BenchOptions& options, const RunResult& result) {
  const Histogram& latency = result.latency_ns;
  return {{"workload", options.workload},
          {"protocol", protocol_name(options.protocol)},
          {"stages", options.plan.code()},
          {"fabric", fabric_name(options.fabric)},
          {"nodes", options.nodes},
          {"threads", options.threads},
          {"coroutines", options.coroutines},
          {"replicas", options.replicas},
          {"seconds", rounded(result.seconds)},
          {"committed", result.committed},
          {"aborted", result.stats.aborted},
          {"committed_per_second", rounded(per_second(result))},
          {"abort_rate", std::round(abort_rate(result) * 1e6) / 1e6},
          {"aborts", aborts(result)},
          {"latency_us",
           {{"mean", us(latency.mean())},
            {"p50", us(latency.percentile(50))},
            {"p90", us(latency.percentile(90))},
            {"p99", us(latency.percentile(99))},
            {"p999", us(latency.percentile(99.9))}}},
          {"stage_latency", stage_latencies(result)},
          {"per_transaction", verbs(result)},
          {"invariant", result.violation.empty() ? "ok" : result.violation}};
}

// Appends one formatted line.
__attribute__((format(printf, 2, 3))) void add_line(std::string& text, const char* format, ...) {
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof(line), format, arguments);
  va_end(arguments);
  text += line;
  text += '\n';
}

}  // namespace

std::string report_json(const BenchOptions& options, const RunResult& result) {
  return to_json(options, result).dump(2) + "\n";
}

std::string report_text(const BenchOptions& options, const RunResult& result) {
  std::string text;
  add_line(text, "workload: %s, %llu accounts, %llu of them hot with %u %% of the accesses",
           options.workload.c_str(), static_cast<unsigned long long>(options.smallbank.accounts),
           static_cast<unsigned long long>(options.smallbank.hot_accounts),
           options.smallbank.hot_access_percent);
  add_line(text, "protocol: %s, stages %u (%s)", protocol_name(options.protocol),
           options.plan.code(), options.plan.to_string(stages_of(options.protocol)).c_str());
  add_line(text, "fabric: %s, %u nodes, %u replicas, %u threads of %u coroutines, seed %llu",
           fabric_name(options.fabric), options.nodes, options.replicas, options.threads,
           options.coroutines, static_cast<unsigned long long>(options.seed));
  add_line(text, "%llu committed in %.3f s: %.0f per second",
           static_cast<unsigned long long>(result.committed), result.seconds, per_second(result));
  add_line(text, "%llu attempts aborted: %.2f %%",
           static_cast<unsigned long long>(result.stats.aborted), 100 * abort_rate(result));
  const Json reasons = aborts(result);
  for (const auto& [reason, count] : reasons.items()) {
    add_line(text, "  %-20s %s", reason.c_str(), count.dump().c_str());
  }
  const Histogram& latency = result.latency_ns;
  add_line(text, "latency us: mean %.1f, p50 %.1f, p90 %.1f, p99 %.1f, p99.9 %.1f",
           us(latency.mean()), us(latency.percentile(50)), us(latency.percentile(90)),
           us(latency.percentile(99)), us(latency.percentile(99.9)));
  for (const Json& stage : stage_latencies(result)) {
    add_line(text, "  %-10s %-10s mean %8.2f us, p50 %8.2f, p99 %8.2f, %llu times",
             stage["stage"].get<std::string>().c_str(),
             stage["primitive"].get<std::string>().c_str(), stage["mean_us"].get<double>(),
             stage["p50_us"].get<double>(), stage["p99_us"].get<double>(),
             stage["count"].get<unsigned long long>());
  }
  text += "per transaction:";
  const Json counts = verbs(result);
  for (const auto& [name, count] : counts.items()) {
    text += " " + name + " " + count.dump();
  }
  add_line(text, "\ninvariant: %s", result.violation.empty() ? "ok" : result.violation.c_str());
  return text;
}

}  // namespace rdmacc
