#include <CLI/CLI.hpp>
#include <cinttypes>
#include <cstdio>
#include <exception>

#include "engine/check/checker.h"
#include "engine/check/history_file.h"

// rdmacc_check: is this history serializable? Exit codes: docs/HISTORY.md.

namespace {

constexpr int kExitNotSerializable = 1;
constexpr int kExitUsage = 2;
constexpr int kExitNotStrict = 3;

struct Request {
  std::string path;
  bool preloaded = false;
  bool strict = false;
};

int check_file(const Request& request) {
  rdmacc::Result<std::vector<rdmacc::HistoryTransaction>> history =
      rdmacc::read_history(request.path);
  if (!history.ok()) {
    std::fprintf(stderr, "rdmacc_check: %s\n", history.status().message().c_str());
    return kExitUsage;
  }
  const rdmacc::CheckReport report =
      rdmacc::check_serializable(*history, {.preloaded = request.preloaded, .real_time = true});
  std::printf("%" PRIu64 " transactions, %" PRIu64 " committed, %" PRIu64 " operations, %" PRIu64
              " dependencies, %" PRIu64 " real-time violations\n",
              report.transactions, report.committed, report.operations, report.edges,
              report.real_time_violations);
  if (!report.serializable) {
    std::printf("not serializable: %s\n", report.problem.c_str());
    return kExitNotSerializable;
  }
  if (report.strictly_serializable) {
    std::printf("strictly serializable\n");
    return 0;
  }
  std::printf("serializable, but not strictly: %s\n", report.real_time_problem.c_str());
  return request.strict ? kExitNotStrict : 0;
}

int run(int argc, char** argv) {
  CLI::App app("Checks that a history of transactions is serializable");
  Request request;
  app.add_option("file", request.path, "history, one JSON object per line (docs/HISTORY.md)")
      ->required();
  app.add_flag("--preloaded", request.preloaded,
               "versions and keys that the history does not make were there before it began");
  app.add_flag("--strict", request.strict,
               "exit code 3 unless it is strictly serializable (respects real time), too");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitUsage;
  }
  return check_file(request);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rdmacc_check: %s\n", error.what());
    return kExitUsage;
  }
}
