#include "engine/bench/bench_program.h"

#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>

#include "engine/bench/limits.h"
#include "engine/bench/options.h"
#include "engine/bench/report.h"
#include "engine/bench/runner.h"
#include "engine/bench/sweep.h"
#include "engine/report/page.h"

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
      status.code() == Code::kInvalidArgument || status.code() == Code::kNoSpace ||
      status.code() == Code::kWriteSetFull || status.code() == Code::kNoWorkerSlot;
  return asked_too_much ? kExitUsage : kExitFailed;
}

// One line a run of many, so that a long enumeration is seen to go on.
void report_one_of_many(const BenchRun& run) {
  std::fprintf(stderr, "stages %u: %llu committed in %.3f s, invariant %s\n",
               run.options.plan.code(), static_cast<unsigned long long>(run.result.committed),
               run.result.seconds, run.result.violation.empty() ? "ok" : "broken");
}

void report_point(const BenchRun& run) {
  std::fprintf(stderr, "%s: %llu committed in %.3f s, invariant %s\n",
               point_text(run.options.swept).c_str(),
               static_cast<unsigned long long>(run.result.committed), run.result.seconds,
               run.result.violation.empty() ? "ok" : "broken");
}

// Not ok: `done` are the runs before the one that failed.
Status run_asked(const std::vector<BenchOptions>& asked, std::vector<BenchRun>& done) {
  const BenchOptions& options = asked.front();
  if (options.command == BenchOptions::Command::kEnumerate) {
    Result<std::vector<BenchRun>> runs = run_all_plans(options, interrupted, report_one_of_many);
    if (!runs.ok()) return runs.status();
    done = std::move(*runs);
    return Status();
  }
  const bool sweep = !options.swept.empty();
  return run_in_turn(
      asked, interrupted, sweep ? report_point : [](const BenchRun&) {}, done);
}

// A run that fails prints no report, and what it was up against is wanted all the more.
void report_verb_delays(const BenchOptions& options) {
  if (!options.verb_delays) return;
  std::fprintf(stderr, "rdmacc_bench: verb delays: %s\n", options.verb_delays_text().c_str());
}

bool write_page(const std::vector<BenchRun>& runs) {
  const BenchOptions& options = runs.front().options;
  if (options.page_file.empty()) return true;
  const std::string page =
      report_page("rdmacc_bench: " + options.workload, report_json_array(runs));
  const Status written = write_file_whole(options.page_file, page);
  if (!written.ok()) std::fprintf(stderr, "rdmacc_bench: %s\n", written.message().c_str());
  return written.ok();
}

// A write to a full disk may fail long before the last one: the stream remembers it.
bool flush_output() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return true;
  std::fprintf(stderr, "rdmacc_bench: cannot write to the standard output: %s\n",
               std::strerror(errno));
  return false;
}

// A sweep that fails on its way reports the points that it came to.
int run_workload(const std::vector<BenchOptions>& asked) {
  std::vector<BenchRun> runs;
  const Status status = run_asked(asked, runs);
  int exit_code = 0;
  if (!status.ok()) {
    const BenchOptions& failed = asked[std::min(runs.size(), asked.size() - 1)];
    report_verb_delays(failed);
    exit_code = report_failure(status);
    if (runs.empty()) return exit_code;
    std::fprintf(stderr, "rdmacc_bench: the report is of %zu of %zu runs; not of %s\n", runs.size(),
                 asked.size(), point_text(failed.swept).c_str());
  }
  const std::string text = report(runs);
  std::fwrite(text.data(), 1, text.size(), stdout);
  const bool written = flush_output();
  if (!write_page(runs) || !written) exit_code = kExitFailed;
  for (const BenchRun& run : runs) {
    if (run.result.violation.empty()) continue;
    std::fprintf(stderr, "rdmacc_bench: with stages %u the invariant is broken: %s\n",
                 run.options.plan.code(), run.result.violation.c_str());
    exit_code = kExitFailed;
  }
  return exit_code;
}

int run(int argc, char** argv) {
  const ParsedRuns parsed = parse_runs(argc, argv);
  if (parsed.runs.empty()) return parsed.exit_code;
  const BenchOptions& options = parsed.runs.front();
  struct sigaction action = {};
  action.sa_handler = on_signal;
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaction(number, &action, nullptr);
  signal(SIGPIPE, SIG_IGN);
  if (options.command != BenchOptions::Command::kLimits) return run_workload(parsed.runs);
  const Status status = print_limits(options.format, options.handwritten_records, interrupted);
  if (!status.ok()) return report_failure(status);
  return flush_output() ? 0 : kExitFailed;
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
