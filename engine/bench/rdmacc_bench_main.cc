#include <signal.h>

#include <cstdio>
#include <exception>

#include "engine/bench/limits.h"
#include "engine/bench/options.h"
#include "engine/bench/report.h"
#include "engine/bench/runner.h"

// rdmacc_bench: native benchmarks. Exit code 0: ran and the invariant held; 1: it did not, or the
// run failed; 2: the command line is wrong or asks for what cannot be; 130: interrupted.

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

int run_workload(const BenchOptions& options) {
  Result<RunResult> result = run_benchmark(options, interrupted);
  if (!result.ok()) return report_failure(result.status());
  const std::string text =
      options.json ? report_json(options, *result) : report_text(options, *result);
  std::fwrite(text.data(), 1, text.size(), stdout);
  if (std::fflush(stdout) != 0) return kExitFailed;
  if (result->violation.empty()) return 0;
  std::fprintf(stderr, "rdmacc_bench: the invariant is broken: %s\n", result->violation.c_str());
  return kExitFailed;
}

int run(int argc, char** argv) {
  const ParsedOptions parsed = parse_options(argc, argv);
  if (!parsed.options) return parsed.exit_code;
  struct sigaction action = {};
  action.sa_handler = on_signal;
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaction(number, &action, nullptr);
  signal(SIGPIPE, SIG_IGN);
  if (parsed.options->command == BenchOptions::Command::kRun) {
    return run_workload(*parsed.options);
  }
  const Status status = print_limits(interrupted);
  return status.ok() ? 0 : report_failure(status);
}

}  // namespace
}  // namespace rdmacc

int main(int argc, char** argv) {
  try {
    return rdmacc::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rdmacc_bench: %s\n", error.what());
    return 1;
  }
}
