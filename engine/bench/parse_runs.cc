#include <cstdio>

#include "engine/bench/option_words.h"
#include "engine/bench/options.h"

namespace rdmacc {
namespace {

Status refuse(const char* sentence) { return Status(Code::kInvalidArgument, sentence); }

// What a shell would take for the same words.
std::string command_line_of(int argc, const char* const* argv) {
  constexpr const char* kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+.,:/@%";
  std::string line;
  for (int i = 0; i < argc; ++i) {
    const std::string word = argv[i];
    line += i == 0 ? "" : " ";
    if (!word.empty() && word.find_first_not_of(kPlain) == word.npos) {
      line += word;
      continue;
    }
    line += '\'';
    for (const char letter : word) line += letter == '\'' ? "'\\''" : std::string(1, letter);
    line += '\'';
  }
  return line;
}

// Options that name one file or folder, or make many runs of one, stand against a sweep.
Status check_sweep(const OptionWords& words) {
  if (words.axes.empty()) return Status();
  if (words.enumerate) return refuse("--enumerate and a sweep exclude each other");
  if (!words.history_file.empty()) return refuse("--history-file is for a single run");
  if (!words.data_dir.empty()) return refuse("--data-dir is for a single run");
  return Status();
}

}  // namespace

ParsedRuns parse_runs(int argc, const char* const* argv) {
  ParsedRuns parsed;
  const OptionWords words = parse_words(argc, argv);
  if (words.ended) {
    parsed.exit_code = words.exit_code;
    return parsed;
  }
  const Status possible = check_sweep(words);
  Result<std::vector<SweepPoint>> points =
      possible.ok() ? sweep_points(words.axes) : Result<std::vector<SweepPoint>>(possible);
  if (!points.ok()) {
    parsed.exit_code = usage_error(points.status().message());
    return parsed;
  }
  for (SweepPoint& point : *points) {
    const std::vector<std::string> of_point = words_of_point(argc, argv, point);
    std::vector<const char*> of_point_argv;
    for (const std::string& word : of_point) of_point_argv.push_back(word.c_str());
    ParsedOptions one = parse_options(static_cast<int>(of_point_argv.size()), of_point_argv.data());
    if (!one.options) {
      if (!point.empty()) std::fprintf(stderr, "rdmacc_bench: at %s\n", point_text(point).c_str());
      return {{}, one.exit_code};
    }
    one.options->command_line = command_line_of(argc, argv);
    one.options->swept = std::move(point);
    parsed.runs.push_back(std::move(*one.options));
  }
  return parsed;
}

}  // namespace rdmacc
