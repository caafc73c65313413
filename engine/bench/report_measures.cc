#include "engine/bench/report_measures.h"

#include <algorithm>

#include "engine/bench/measure/host.h"
#include "engine/bench/report_numbers.h"

namespace rdmacc {
namespace {

bool in_virtual_time(const BenchRun& run) { return run.options.fabric == FabricKind::kSim; }

double to_us(uint64_t ns) { return rdmacc::to_us(static_cast<double>(ns)); }

template <typename T>
ReportJson unless_zero(T value) {
  return value > 0 ? ReportJson(value) : ReportJson(nullptr);
}

ReportJson latency_buckets(const RunResult& result) {
  ReportJson buckets = ReportJson::array();
  result.latency_ns.for_each_bucket([&buckets](uint64_t least, uint64_t below, uint64_t count) {
    buckets.push_back({to_us(least), to_us(below), count});
  });
  return buckets;
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.15g", value);
  return text;
}

}  // namespace

std::optional<ProcessorUse> processor_use(const BenchRun& run) {
  const Measures& measures = run.result.measures;
  if (in_virtual_time(run) || measures.coordinator_ns == 0) return std::nullopt;
  const auto there_ns = static_cast<double>(measures.coordinator_ns);
  const double effective = measures.effective.effective_ns() / there_ns;
  return ProcessorUse{rounded(std::min(effective, 1.0)),  // a sample may be some more
                      rounded(static_cast<double>(measures.processor_ns) / there_ns)};
}

double verbs_per_transaction(const RunResult& result) {
  const VerbCounters& verbs = result.stats.verbs;
  if (result.committed == 0) return 0;
  return rounded(static_cast<double>(verbs.reads + verbs.writes + verbs.atomics + verbs.messages) /
                 static_cast<double>(result.committed));
}

ReportJson swept_json(const BenchOptions& options) {
  ReportJson swept = ReportJson::object();
  for (const auto& [parameter, value] : options.swept) {
    const ReportJson parsed = ReportJson::parse(value, nullptr, false);
    swept[parameter] = parsed.is_number() ? parsed : ReportJson(value);
  }
  return swept;
}

ReportJson load_json(const BenchRun& run) {
  const LoadOptions& load = run.options.load;
  const Measures& measures = run.result.measures;
  const Histogram& lag_ns = measures.lag_ns;
  ReportJson lag = nullptr;
  if (load.rate > 0) lag = {{"mean", rdmacc::to_us(lag_ns.mean())}, {"max", to_us(lag_ns.max())}};
  return {{"transactions_per_coroutine", unless_zero(load.transactions)},
          {"rate", unless_zero(load.rate)},
          {"latency_limit_ms", unless_zero(load.latency_limit_ms)},
          {"warm_up_seconds", load.warm_up_seconds},
          {"skipped", measures.skipped},
          {"late", measures.late},
          {"schedule_lag_us", std::move(lag)}};
}

ReportJson measures_json(const BenchRun& run) {
  const std::optional<ProcessorUse> use = processor_use(run);
  const NodeSpread& spread = run.result.measures.spread;
  return {{"verbs_per_transaction", verbs_per_transaction(run.result)},
          {"nodes_per_transaction",
           spread.known() ? ReportJson(rounded(spread.mean())) : ReportJson(nullptr)},
          {"effective_cpu", use ? ReportJson(use->effective) : ReportJson(nullptr)},
          {"coordinator_cpu", use ? ReportJson(use->busy) : ReportJson(nullptr)},
          {"latency_buckets_us", latency_buckets(run.result)}};
}

// In virtual time neither the machine nor the hour matters, and one seed is one report.
ReportJson origin_json(const BenchRun& run) {
  ReportJson host = nullptr;
  if (!in_virtual_time(run)) {
    const HostDescription here = describe_host();
    host = {{"processor", here.processor}, {"cores", here.cores}, {"kernel", here.kernel}};
  }
  const std::string& started = run.result.started;
  const std::string& command = run.options.command_line;
  return {{"version", RDMACC_VERSION},
          {"host", std::move(host)},
          {"started", started.empty() ? ReportJson(nullptr) : ReportJson(started)},
          {"command", command.empty() ? ReportJson(nullptr) : ReportJson(command)}};
}

std::string latency_buckets_text(const RunResult& result) {
  std::string text;
  result.latency_ns.for_each_bucket([&text](uint64_t least, uint64_t below, uint64_t count) {
    text += (text.empty() ? "" : " ") + number(to_us(least)) + "-" + number(to_us(below)) + ":" +
            std::to_string(count);
  });
  return text;
}

std::string timeline_text(const RunResult& result) {
  std::string text;
  for (const RunSecond& second : result.timeline) {
    text += (text.empty() ? "" : " ") + std::to_string(second.committed) + "/" +
            std::to_string(second.aborted) + "/" + number(rdmacc::to_us(second.mean_ns)) + "/" +
            number(to_us(second.p99_ns));
  }
  return text;
}

}  // namespace rdmacc
