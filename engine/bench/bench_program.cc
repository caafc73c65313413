#include "engine/bench/bench_program.h"

#include <signal.h>

#include <cstdio>
#include <exception>

#include "engine/bench/limits.h"
#include "engine/bench/options.h"
#include "engine/bench/report.h"
#include "engine/bench/runner.h"

namespace rdmacc {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitInterrupted = 130;

std::atomic<bool> interrupted{false};

void on_signal(int) { interrupted.store(true); }

int report_failure(const Status& status) {
  if (interrupted.load()) {
    std::fprintf(stderr, "rdmacc_bench: interrupted\n");
    return kExitInterrupted;
  }
  std::fprintf(stderr, "rdmacc_bench: %s\n", status.to_string().c_str());
  const bool asked_too_much =
      status.code() == Code::kInvalidArgument || status.code() == Code::kNoSpace;
  return asked_too_much ? kExitUsage : kExitFailed;
}

// One line a run of many, so that a long enumeration is seen to go on.
void report_one_of_many(const BenchRun& run) {
  std::fprintf(stderr, "stages %u: %llu committed in %.3f s, invariant %s\n",
               run.options.plan.code(), static_cast<unsigned long long>(run.result.committed),
               run.result.seconds, run.result.violation.empty() ? "ok" : "broken");
}

Result<std::vector<BenchRun>> run_asked(const BenchOptions& options) {
  if (options.command == BenchOptions::Command::kEnumerate) {
    return run_all_plans(options, interrupted, report_one_of_many);
  }
  Result<RunResult> result = run_benchmark(options, interrupted);
  if (!result.ok()) return result.status();
  std::vector<BenchRun> runs;
  runs.push_back(BenchRun{options, std::move(*result)});
  return runs;
}

// A run that fails prints no report, and what it was up against is wanted all the more.
void report_verb_delays(const BenchOptions& options) {
  if (!options.verb_delays) return;
  std::fprintf(stderr, "rdmacc_bench: verb delays: %s\n", options.verb_delays_text().c_str());
}

int run_workload(const BenchOptions& options) {
  Result<std::vector<BenchRun>> runs = run_asked(options);
  if (!runs.ok()) {
    report_verb_delays(options);
    return report_failure(runs.status());
  }
  const std::string text = report(*runs);
  std::fwrite(text.data(), 1, text.size(), stdout);
  if (std::fflush(stdout) != 0) return kExitFailed;
  int exit_code = 0;
  for (const BenchRun& run : *runs) {
    if (run.result.violation.empty()) continue;
    std::fprintf(stderr, "rdmacc_bench: with stages %u the invariant is broken: %s\n",
                 run.options.plan.code(), run.result.violation.c_str());
    exit_code = kExitFailed;
  }
  return exit_code;
}

int run(int argc, char** argv) {
  const ParsedOptions parsed = parse_options(argc, argv);
  if (!parsed.options) return parsed.exit_code;
  struct sigaction action = {};
  action.sa_handler = on_signal;
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaction(number, &action, nullptr);
  signal(SIGPIPE, SIG_IGN);
  if (parsed.options->command != BenchOptions::Command::kLimits) {
    return run_workload(*parsed.options);
  }
  const Status status =
      print_limits(parsed.options->format, parsed.options->handwritten_records, interrupted);
  return status.ok() ? 0 : report_failure(status);
}

}  // namespace

int bench_program(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rdmacc_bench: %s\n", error.what());
    return kExitFailed;
  }
}

}  // namespace rdmacc
