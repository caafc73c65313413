// The text of --enumerate: all plans of a protocol from the fastest to the slowest, and what each
// of their stages took.
#include <cstdio>

#include "engine/bench/report.h"
#include "engine/bench/report_numbers.h"
#include "engine/protocols/registry.h"

namespace rdmacc {
namespace {

double rate_of(std::span<const BenchRun> runs, uint16_t code) {
  for (const BenchRun& run : runs) {
    if (run.options.plan.code() == code) return committed_per_second(run.result);
  }
  return 0;
}

double ratio(double rate, double to) { return to > 0 ? rate / to : 0; }

void add_ranks(std::string& text, std::span<const BenchRun> runs, uint16_t stages) {
  const double rpc = rate_of(runs, 0), one_sided = rate_of(runs, stages);
  add_line(text, "%4s %6s %12s %7s %12s %9s %9s %9s  %-9s %s", "rank", "stages", "committed/s",
           "to rpc", "to one_sided", "aborted %", "p50 us", "p99 us", "invariant", "one-sided are");
  size_t rank = 0;
  for (const BenchRun& run : runs) {
    const uint16_t code = run.options.plan.code();
    std::string names;
    for (uint32_t s = 0; s < kStageCount; ++s) {
      const auto stage = static_cast<Stage>(1u << s);
      if ((code & static_cast<uint16_t>(stage)) == 0) continue;
      names += (names.empty() ? "" : ",") + std::string(stage_name(stage));
    }
    const double rate = committed_per_second(run.result);
    const LatencyUs latency = latency_us(run.result);
    add_line(text, "%4zu %6u %12.0f %7.2f %12.2f %9.2f %9.1f %9.1f  %-9s %s", ++rank, code, rate,
             ratio(rate, rpc), ratio(rate, one_sided), 100 * abort_rate(run.result), latency.p50,
             latency.p99, run.result.violation.empty() ? "ok" : "BROKEN",
             code == stages  ? "all"
             : names.empty() ? "none"
                             : names.c_str());
  }
}

// RCC's Figure 13 for every plan.
void add_stages(std::string& text, std::span<const BenchRun> runs, uint16_t stages) {
  add_line(text, "stage latencies in us, mean/p50/p99 (1: one-sided, r: RPC)");
  std::string head = "stages";
  char cell[64];
  for (uint32_t s = 0; s < kStageCount; ++s) {
    if ((stages >> s & 1) == 0) continue;
    std::snprintf(cell, sizeof(cell), " %23s", stage_name(static_cast<Stage>(1u << s)));
    head += cell;
  }
  text += head + "\n";
  for (const BenchRun& run : runs) {
    std::snprintf(cell, sizeof(cell), "%6u", run.options.plan.code());
    std::string line = cell;
    const std::vector<StageLatency> seen = stage_latencies(run.result);
    for (uint32_t s = 0; s < kStageCount; ++s) {
      if ((stages >> s & 1) == 0) continue;
      std::string value = "-";
      for (const StageLatency& stage : seen) {
        if (stage_index(stage.stage) != s) continue;
        std::snprintf(cell, sizeof(cell), "%c %.1f/%.1f/%.1f",
                      stage.primitive == Primitive::kOneSided ? '1' : 'r', stage.mean_us,
                      stage.p50_us, stage.p99_us);
        value = cell;
      }
      std::snprintf(cell, sizeof(cell), " %23s", value.c_str());
      line += cell;
    }
    text += line + "\n";
  }
}

}  // namespace

std::string report_ranking(std::span<const BenchRun> runs) {
  CHECK(!runs.empty());
  const BenchOptions& options = runs[0].options;
  const uint16_t stages = stages_of(options.protocol);
  std::string text;
  add_setup(text, options);
  add_line(text, "protocol: %s, %zu distinct hybrid codes, %s locks",
           protocol_name(options.protocol), runs.size(), lock_mode_name(options.lock_mode));
  add_ranks(text, runs, stages);
  text += '\n';
  add_stages(text, runs, stages);
  return text;
}

}  // namespace rdmacc
