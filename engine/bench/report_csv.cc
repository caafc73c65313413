#include <cstdio>

#include "engine/bench/report.h"
#include "engine/bench/report_measures.h"
#include "engine/bench/report_numbers.h"
#include "engine/bench/sweep.h"
#include "engine/bench/without_words.h"
#include "engine/protocols/registry.h"

namespace rdmacc {
namespace {

// A line of fields and, once, the names above them: the same order in all lines.
class CsvLine {
 public:
  void add(const std::string& name, const std::string& value) {
    append(names_, name);
    append(values_, value);
  }
  void add(const std::string& name, double value) {
    char text[32];
    std::snprintf(text, sizeof(text), "%.15g", value);
    add(name, std::string(text));
  }
  const std::string& names() const { return names_; }
  const std::string& values() const { return values_; }

 private:
  // RFC 4180: a field with a comma or a quote is quoted, its quotes are doubled.
  static void append(std::string& line, const std::string& field) {
    if (!line.empty()) line += ',';
    if (field.find_first_of(",\"\n") == field.npos) {
      line += field;
      return;
    }
    line += '"';
    for (const char letter : field) line.append(letter == '"' ? 2 : 1, letter);
    line += '"';
  }

  std::string names_, values_;
};

void add_options(CsvLine& line, const BenchRun& run) {
  const BenchOptions& options = run.options;
  line.add("workload", options.workload);
  line.add("settings", options.settings.to_string());
  line.add("preset", options.preset);
  line.add("protocol", protocol_name(options.protocol));
  line.add("stages", plan_of(run).code());
  line.add("auto_stages", options.auto_plan ? "true" : "false");
  line.add("lock_mode", lock_mode_name(options.lock_mode));
  line.add("calvin", executes_procedures(options.protocol) ? ordered_by_name(options.calvin) : "");
  line.add("fabric", fabric_name(options.fabric));
  line.add("nodes", options.nodes);
  line.add("threads_per_node", options.threads_per_node);
  line.add("threads", options.threads);
  line.add("coroutines", options.coroutines);
  line.add("location_cache", options.location_cache ? "true" : "false");
  line.add("without", without_text(options.savings));
  line.add("replicas", options.replicas);
  line.add("seed", std::to_string(options.seed));
  line.add("verb_delays", options.verb_delays_text());
}

void add_numbers(CsvLine& line, const RunResult& result) {
  line.add("seconds", rounded(result.seconds));
  line.add("committed", static_cast<double>(result.committed));
  line.add("rolled_back", static_cast<double>(result.rolled_back));
  line.add("declared", static_cast<double>(result.declared));
  line.add("aborted", static_cast<double>(aborted_attempts(result)));
  line.add("committed_per_second", rounded(committed_per_second(result)));
  line.add("abort_rate", abort_rate(result));
  for (const auto& [reason, count] : aborts_by_reason(result)) {
    line.add(std::string("aborts_") + reason, static_cast<double>(count));
  }
  line.add("exclusive", static_cast<double>(result.stats.exclusive));
  const LatencyUs latency = latency_us(result);
  line.add("latency_mean_us", latency.mean);
  line.add("latency_p50_us", latency.p50);
  line.add("latency_p90_us", latency.p90);
  line.add("latency_p99_us", latency.p99);
  line.add("latency_p999_us", latency.p999);
  for (const auto& [name, count] : per_transaction(result)) {
    line.add(std::string(name) + "_per_transaction", count);
  }
}

// Every stage and primitive that there is, so that all lines of all files have the same fields;
// empty where none ran.
void add_stages(CsvLine& line, const RunResult& result) {
  const std::vector<StageLatency> seen = stage_latencies(result);
  for (uint32_t s = 0; s < kStageCount; ++s) {
    for (const Primitive primitive : {Primitive::kOneSided, Primitive::kRpc}) {
      const auto stage = static_cast<Stage>(1u << s);
      const std::string name =
          std::string(stage_name(stage)) + "_" + primitive_name(primitive) + "_";
      const StageLatency* ran = nullptr;
      for (const StageLatency& each : seen) {
        if (each.stage == stage && each.primitive == primitive) ran = &each;
      }
      if (ran == nullptr) {
        for (const char* field : {"mean_us", "p50_us", "p99_us"}) line.add(name + field, "");
        continue;
      }
      line.add(name + "mean_us", ran->mean_us);
      line.add(name + "p50_us", ran->p50_us);
      line.add(name + "p99_us", ran->p99_us);
    }
  }
}

// A field for each value of the JSON objects that is none itself.
void add_flat(CsvLine& line, const ReportJson& object, const std::string& prefix = "") {
  for (const auto& [name, value] : object.items()) {
    if (value.is_string()) {
      line.add(prefix + name, value.get<std::string>());
    } else if (value.is_number()) {
      line.add(prefix + name, value.get<double>());
    } else {
      line.add(prefix + name, "");
    }
  }
}

// The same fields whatever was asked for: what JSON leaves out is empty.
void add_measures(CsvLine& line, const BenchRun& run) {
  ReportJson load = load_json(run), measures = measures_json(run), origin = origin_json(run);
  ReportJson lag = {{"mean", nullptr}, {"max", nullptr}};
  if (load["schedule_lag_us"].is_object()) lag = load["schedule_lag_us"];
  ReportJson host = {{"processor", nullptr}, {"cores", nullptr}, {"kernel", nullptr}};
  if (origin["host"].is_object()) host = origin["host"];
  load.erase("schedule_lag_us");
  origin.erase("host");
  measures.erase("latency_buckets_us");
  add_flat(line, load);
  add_flat(line, lag, "schedule_lag_us_");
  add_flat(line, measures);
  line.add("timeline", timeline_text(run.result));
  line.add("latency_buckets_us", latency_buckets_text(run.result));
  add_flat(line, origin);
  add_flat(line, host, "host_");
}

}  // namespace

std::string report_csv(std::span<const BenchRun> runs) {
  std::string text;
  for (const BenchRun& run : runs) {
    CsvLine line;
    add_options(line, run);
    add_numbers(line, run.result);
    add_stages(line, run.result);
    line.add("invariant", invariant(run.result));
    add_measures(line, run);
    line.add("swept", point_text(run.options.swept));
    if (text.empty()) text = line.names() + "\n";
    text += line.values() + "\n";
  }
  return text;
}

}  // namespace rdmacc
