#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "engine/check/checker.h"
#include "engine/check/history_file.h"

// rdmacc_check: is this history serializable? Exit code 0: yes; 1: no; 2: it cannot be read.

namespace {

constexpr int kExitNo = 1;
constexpr int kExitUsage = 2;

int check_file(const std::string& path, bool preloaded) {
  rdmacc::Result<std::vector<rdmacc::HistoryTransaction>> history = rdmacc::read_history(path);
  if (!history.ok()) {
    std::fprintf(stderr, "rdmacc_check: %s\n", history.status().message().c_str());
    return kExitUsage;
  }
  const rdmacc::CheckReport report = rdmacc::check_serializable(*history, preloaded);
  std::printf("%llu transactions, %llu committed, %llu operations, %llu dependencies\n",
              static_cast<unsigned long long>(report.transactions),
              static_cast<unsigned long long>(report.committed),
              static_cast<unsigned long long>(report.operations),
              static_cast<unsigned long long>(report.edges));
  if (report.serializable) {
    std::printf("serializable\n");
    return 0;
  }
  std::printf("not serializable: %s\n", report.problem.c_str());
  return kExitNo;
}

int run(int argc, char** argv) {
  CLI::App app("Checks that a history of transactions is serializable");
  std::string path;
  bool preloaded = false;
  app.add_option("file", path, "history, one JSON object per line (docs/HISTORY.md)")->required();
  app.add_flag("--preloaded", preloaded,
               "versions and keys that the history does not make were there before it began");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitUsage;
  }
  return check_file(path, preloaded);
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
