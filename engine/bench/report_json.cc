#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/bench/report.h"
#include "engine/bench/report_measures.h"
#include "engine/bench/report_numbers.h"
#include "engine/bench/without_words.h"
#include "engine/protocols/registry.h"

namespace rdmacc {
namespace {

using Json = ReportJson;

Json aborts(const RunResult& result) {
  Json counts = Json::object();
  for (const auto& [reason, count] : aborts_by_reason(result)) {
    if (count > 0) counts[reason] = count;
  }
  return counts;
}

Json stages(const RunResult& result) {
  Json list = Json::array();
  for (const StageLatency& stage : stage_latencies(result)) {
    list.push_back({{"stage", stage_name(stage.stage)},
                    {"primitive", primitive_name(stage.primitive)},
                    {"count", stage.count},
                    {"mean_us", stage.mean_us},
                    {"p50_us", stage.p50_us},
                    {"p99_us", stage.p99_us}});
  }
  return list;
}

Json verbs(const RunResult& result) {
  Json counts = Json::object();
  for (const auto& [name, count] : per_transaction(result)) counts[name] = count;
  return counts;
}

Json timeline(const RunResult& result) {
  Json list = Json::array();
  for (const RunSecond& second : result.timeline) {
    list.push_back({{"committed", second.committed},
                    {"rolled_back", second.rolled_back},
                    {"aborted", second.aborted},
                    {"mean_us", to_us(second.mean_ns)},
                    {"p50_us", to_us(static_cast<double>(second.p50_ns))},
                    {"p99_us", to_us(static_cast<double>(second.p99_ns))}});
  }
  return list;
}

Json settings(const WorkloadSettings& settings) {
  Json values = Json::object();
  for (const WorkloadSetting& setting : settings.known()) {
    if (setting.fraction) {
      values[setting.name] = settings.fraction(setting.name);
    } else {
      values[setting.name] = settings.number(setting.name);
    }
  }
  return values;
}

Json to_json(const BenchRun& run) {
  const BenchOptions& options = run.options;
  const RunResult& result = run.result;
  const LatencyUs latency = latency_us(result);
  const std::string without = without_text(options.savings);
  Json json = {
      {"workload", options.workload},
      {"swept", swept_json(options)},
      {"settings", settings(options.settings)},
      {"preset", options.preset.empty() ? Json(nullptr) : Json(options.preset)},
      {"protocol", protocol_name(options.protocol)},
      {"stages", plan_of(run).code()},
      {"auto_stages", options.auto_plan},
      {"lock_mode", lock_mode_name(options.lock_mode)},
      {"calvin", executes_procedures(options.protocol) ? Json(ordered_by_name(options.calvin))
                                                       : Json(nullptr)},
      {"fabric", fabric_name(options.fabric)},
      {"nodes", options.nodes},
      {"threads_per_node", options.threads_per_node},
      {"threads", options.threads},
      {"coroutines", options.coroutines},
      {"location_cache", options.location_cache},
      {"without", without.empty() ? Json(nullptr) : Json(without)},
      {"replicas", options.replicas},
      {"seed", options.seed},
      {"verb_delays", options.verb_delays ? Json(options.verb_delays_text()) : Json(nullptr)},
      {"seconds", rounded(result.seconds)},
      {"committed", result.committed},
      {"rolled_back", result.rolled_back},
      {"declared", result.declared},
      {"aborted", aborted_attempts(result)},
      {"committed_per_second", rounded(committed_per_second(result))},
      {"abort_rate", std::round(abort_rate(result) * 1e6) / 1e6},
      {"aborts", aborts(result)},
      {"exclusive", result.stats.exclusive},
      {"latency_us",
       {{"mean", latency.mean},
        {"p50", latency.p50},
        {"p90", latency.p90},
        {"p99", latency.p99},
        {"p999", latency.p999}}},
      {"stage_latency", stages(result)},
      {"per_transaction", verbs(result)},
      {"timeline", timeline(result)},
      {"invariant", invariant(result)}};
  json.update(load_json(run));
  json.update(measures_json(run));
  json.update(origin_json(run));
  return json;
}

// A line for each field: lists of numbers are long.
std::string lines_of(const BenchRun& run, const std::string& margin) {
  const Json json = to_json(run);
  std::string text = margin + "{";
  const char* between = "\n";
  for (const auto& [name, value] : json.items()) {
    text += between + margin + "  " + Json(name).dump() + ": " + value.dump();
    between = ",\n";
  }
  return text + "\n" + margin + "}";
}

}  // namespace

std::string report_json(const BenchRun& run) { return lines_of(run, "") + "\n"; }

std::string report_json_array(std::span<const BenchRun> runs) {
  std::string text = "[";
  for (const BenchRun& run : runs) text += (text == "[" ? "\n" : ",\n") + lines_of(run, "  ");
  return text + "\n]\n";
}

}  // namespace rdmacc
