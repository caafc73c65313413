#include "engine/report/report_program.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "engine/report/page.h"
#include "engine/report/runs.h"

namespace rdmacc {
namespace {

constexpr int kExitFailed = 1, kExitUsage = 2;

int complain(const std::string& sentence, int exit_code) {
  std::fprintf(stderr, "rdmacc_report: %s\n", sentence.c_str());
  return exit_code;
}

// "-": standard input.
Result<RunsFile> read_runs_file(const std::string& name) {
  std::stringstream content;
  if (name == "-") {
    content << std::cin.rdbuf();
    return RunsFile{"standard input", content.str()};
  }
  std::ifstream file(name);
  if (!file || !(content << file.rdbuf())) {
    return Status(Code::kInvalidArgument, name + ": cannot be read, or is empty");
  }
  return RunsFile{name, content.str()};
}

}  // namespace

int report_program(int argc, const char* const* argv) {
  std::vector<std::string> names;
  std::string page_file, title;
  CLI::App app("Makes a page for a browser of runs that rdmacc_bench --format=json has printed");
  app.add_option("files", names, "JSON of runs; - is standard input")->required();
  app.add_option("-o,--output", page_file, "the page, an HTML file")->required();
  app.add_option("--title", title, "of the page");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    return complain(error.what(), kExitUsage);
  }
  std::vector<RunsFile> files;
  for (const std::string& name : names) {
    Result<RunsFile> file = read_runs_file(name);
    if (!file.ok()) return complain(file.status().message(), kExitUsage);
    files.push_back(std::move(*file));
  }
  const Result<nlohmann::ordered_json> runs = gather_runs(files);
  if (!runs.ok()) return complain(runs.status().message(), kExitUsage);
  if (title.empty()) title = "pg_rdmacc: " + workloads_of(runs.value());
  const Status written = write_file_whole(page_file, report_page(title, runs.value().dump()));
  return written.ok() ? 0 : complain(written.message(), kExitFailed);
}

}  // namespace rdmacc
