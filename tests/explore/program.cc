#include "tests/explore/program.h"

#include <array>
#include <sstream>

namespace rdmacc {
namespace {

constexpr std::array<std::string_view, static_cast<size_t>(ExploreOp::kCount)> kNames = {
    "gx", "gy", "gz", "px", "py", "iz", "rx", "sc"};

std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> parts;
  std::istringstream in{std::string(text)};
  for (std::string part; std::getline(in, part, at);) parts.push_back(part);
  return parts;
}

}  // namespace

std::string ExploreProgram::to_string() const {
  std::string text;
  for (const ExploreTransaction& transaction : transactions) {
    if (!text.empty()) text += '|';
    for (size_t i = 0; i < transaction.operations.size(); ++i) {
      if (i > 0) text += ',';
      text += kNames[static_cast<size_t>(transaction.operations[i])];
    }
    if (transaction.user_aborts) text += '!';
  }
  return text;
}

std::optional<ExploreProgram> ExploreProgram::parse(std::string_view text) {
  ExploreProgram program;
  for (std::string part : split(text, '|')) {
    ExploreTransaction transaction;
    if (!part.empty() && part.back() == '!') {
      transaction.user_aborts = true;
      part.pop_back();
    }
    for (const std::string& name : split(part, ',')) {
      size_t op = 0;
      while (op < kNames.size() && kNames[op] != name) ++op;
      if (op == kNames.size()) return std::nullopt;
      transaction.operations.push_back(static_cast<ExploreOp>(op));
    }
    program.transactions.push_back(std::move(transaction));
  }
  if (program.transactions.empty()) return std::nullopt;
  return program;
}

bool ExploreProgram::allocates() const {
  for (const ExploreTransaction& transaction : transactions) {
    for (const ExploreOp op : transaction.operations) {
      if (op == ExploreOp::kInsertZ || op == ExploreOp::kRemoveX) return true;
    }
  }
  return false;
}

std::string ExploreSetup::to_string() const {
  return std::string(protocol_name(protocol)) + " stages=" + std::to_string(plan.code()) + ' ' +
         lock_mode_name(lock_mode) + " nodes=" + std::to_string(nodes) +
         (words ? " words" : " lines") + (warm ? " warm" : " cold") +
         (younger_first ? " younger_first" : " older_first") + (wide_rows ? " wide" : " narrow");
}

std::optional<ExploreSetup> ExploreSetup::parse(std::string_view text) {
  ExploreSetup setup;
  const std::vector<std::string> parts = split(text, ' ');
  if (parts.size() != 8) return std::nullopt;
  const std::optional<Protocol> protocol = parse_protocol(parts[0]);
  if (!protocol || !parts[1].starts_with("stages=") || !parts[3].starts_with("nodes=")) {
    return std::nullopt;
  }
  const Result<StagePlan> plan = StagePlan::parse(parts[1].substr(7));
  const std::optional<LockMode> mode = parse_lock_mode(parts[2]);
  if (!plan.ok() || !mode) return std::nullopt;
  setup.protocol = *protocol;
  setup.plan = plan.value();
  setup.lock_mode = *mode;
  setup.nodes = parts[3] == "nodes=2" ? 2 : 1;
  setup.words = parts[4] == "words";
  setup.warm = parts[5] == "warm";
  setup.younger_first = parts[6] == "younger_first";
  setup.wide_rows = parts[7] == "wide";
  return setup;
}

std::vector<ExploreProgram> all_programs_of_two() {
  std::vector<ExploreTransaction> transactions;
  for (size_t a = 0; a < kNames.size(); ++a) {
    for (size_t b = 0; b < kNames.size(); ++b) {
      transactions.push_back({{static_cast<ExploreOp>(a), static_cast<ExploreOp>(b)}, false});
    }
  }
  std::vector<ExploreProgram> programs;
  for (size_t first = 0; first < transactions.size(); ++first) {
    for (size_t second = first; second < transactions.size(); ++second) {
      programs.push_back({{transactions[first], transactions[second]}});
    }
  }
  return programs;
}

}  // namespace rdmacc
