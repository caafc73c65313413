#include "engine/bench/report.h"

#include <cstdarg>
#include <cstdio>

#include "engine/bench/report_measures.h"
#include "engine/bench/report_numbers.h"
#include "engine/protocols/registry.h"

namespace rdmacc {

void add_line(std::string& text, const char* format, ...) {
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof(line), format, arguments);
  va_end(arguments);
  text += line;
  text += '\n';
}

void add_setup(std::string& text, const BenchOptions& options) {
  add_line(text, "workload: %s, %s", options.workload.c_str(),
           options.settings.to_string().c_str());
  add_line(text,
           "fabric: %s, %u nodes of %u threads, %u replicas, %u threads of %u coroutines, "
           "seed %llu",
           fabric_name(options.fabric), options.nodes, options.threads_per_node, options.replicas,
           options.threads, options.coroutines, static_cast<unsigned long long>(options.seed));
  if (options.verb_delays) add_line(text, "verb delays: %s", options.verb_delays_text().c_str());
}

namespace {

// Of a schedule and a limit, where there is one.
void add_load(std::string& text, const BenchRun& run) {
  const LoadOptions& load = run.options.load;
  const Measures& measures = run.result.measures;
  const auto count = [](uint64_t value) { return static_cast<unsigned long long>(value); };
  if (load.rate > 0) {
    add_line(text, "schedule: %.15g per second; lag us: mean %.1f, max %.1f", load.rate,
             measures.lag_ns.mean() / 1000, static_cast<double>(measures.lag_ns.max()) / 1000);
  }
  if (load.latency_limit_ms > 0) {
    add_line(text, "latency limit %.15g ms: %llu took longer, %llu skipped", load.latency_limit_ms,
             count(measures.late), count(measures.skipped));
  }
}

void add_processor_use(std::string& text, const BenchRun& run) {
  const std::optional<ProcessorUse> use = processor_use(run);
  if (!use) return;
  add_line(text, "coordinators' time: %.1f %% in attempts that committed, %.1f %% on a processor",
           100 * use->effective, 100 * use->busy);
}

}  // namespace

std::string report(std::span<const BenchRun> runs) {
  CHECK(!runs.empty());
  const BenchOptions& options = runs[0].options;
  const bool ranked = options.command == BenchOptions::Command::kEnumerate;
  const bool swept = !options.swept.empty();
  switch (options.format) {
    case ReportFormat::kJson:
      return ranked || swept ? report_json_array(runs) : report_json(runs[0]);
    case ReportFormat::kCsv:
      return report_csv(runs);
    case ReportFormat::kText:
      break;
  }
  if (swept) return report_table(runs);
  return ranked ? report_ranking(runs) : report_text(runs[0]);
}

std::string report_text(const BenchRun& run) {
  const RunResult& result = run.result;
  std::string text;
  add_setup(text, run.options);
  const StagePlan plan = plan_of(run);
  if (!run.options.preset.empty()) add_line(text, "preset: %s", run.options.preset.c_str());
  add_line(text, "protocol: %s, stages %s%u (%s), %s locks", protocol_name(run.options.protocol),
           run.options.auto_plan ? "auto, in the end " : "", plan.code(),
           plan.to_string(stages_of(run.options.protocol)).c_str(),
           lock_mode_name(run.options.lock_mode));
  add_line(text, "%llu committed in %.3f s: %.0f per second; %llu rolled back by their users",
           static_cast<unsigned long long>(result.committed), result.seconds,
           committed_per_second(result), static_cast<unsigned long long>(result.rolled_back));
  if (executes_procedures(run.options.protocol)) {
    const uint64_t ended = result.committed + result.rolled_back;
    add_line(text, "%s: %llu transactions with declared keys, %llu by reconnaissance",
             ordered_by_name(run.options.calvin), static_cast<unsigned long long>(result.declared),
             static_cast<unsigned long long>(ended - result.declared));
  }
  add_line(text, "%llu attempts aborted: %.2f %%",
           static_cast<unsigned long long>(aborted_attempts(result)), 100 * abort_rate(result));
  for (const auto& [reason, count] : aborts_by_reason(result)) {
    if (count == 0) continue;
    add_line(text, "  %-20s %llu", reason, static_cast<unsigned long long>(count));
  }
  if (result.stats.exclusive > 0) {
    add_line(text, "%llu attempts in exclusive gate mode",
             static_cast<unsigned long long>(result.stats.exclusive));
  }
  const LatencyUs latency = latency_us(result);
  add_line(text, "latency us: mean %.1f, p50 %.1f, p90 %.1f, p99 %.1f, p99.9 %.1f", latency.mean,
           latency.p50, latency.p90, latency.p99, latency.p999);
  add_load(text, run);
  for (const StageLatency& stage : stage_latencies(result)) {
    add_line(text, "  %-10s %-10s mean %8.2f us, p50 %8.2f, p99 %8.2f, %llu times",
             stage_name(stage.stage), primitive_name(stage.primitive), stage.mean_us, stage.p50_us,
             stage.p99_us, static_cast<unsigned long long>(stage.count));
  }
  text += "per transaction:";
  char number[32];
  for (const auto& [name, count] : per_transaction(result)) {
    std::snprintf(number, sizeof(number), "%.3f", count);
    text += std::string(" ") + name + " " + number;
  }
  text += '\n';
  add_processor_use(text, run);
  add_line(text, "invariant: %s", invariant(result).c_str());
  return text;
}

}  // namespace rdmacc
