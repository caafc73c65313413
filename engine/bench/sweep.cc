#include "engine/bench/sweep.h"

#include <algorithm>
#include <array>

namespace rdmacc {
namespace {

constexpr std::array kSwept = {
    "nodes",       "threads-per-node", "replicas",   "memory", "spin-us",
    "queue-pairs", "threads",          "coroutines", "time",   "transactions",
    "rate",        "latency-limit",    "warm-up",    "seed",   "protocol",
    "stages",      "lock-mode",        "calvin",     "fabric", "verb-delays",
    "preset",      "location-cache",   "without"};

Status refuse(std::string sentence) { return Status(Code::kInvalidArgument, std::move(sentence)); }

}  // namespace

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char letter : text) {
    if (letter == ',') {
      parts.emplace_back();
    } else {
      parts.back() += letter;
    }
  }
  return parts;
}

Result<SweepAxis> parse_sweep_axis(const std::string& text) {
  const size_t colon = text.find(':');
  if (colon == text.npos || colon == 0) {
    return refuse("--sweep=" + text + " must be PARAMETER:VALUE,VALUE,...");
  }
  SweepAxis axis{text.substr(0, colon), split_at_commas(text.substr(colon + 1))};
  axis.parameter.erase(0, std::min(axis.parameter.find_first_not_of('-'), colon));
  for (const std::string& value : axis.values) {
    if (value.empty()) return refuse("--sweep=" + text + " has an empty value");
    if (std::count(axis.values.begin(), axis.values.end(), value) > 1) {
      return refuse("--sweep=" + text + " has " + value + " twice");
    }
  }
  return axis;
}

bool may_be_swept(const std::string& option) {
  return std::find(kSwept.begin(), kSwept.end(), option) != kSwept.end();
}

Result<std::vector<SweepPoint>> sweep_points(const std::vector<SweepAxis>& axes) {
  std::vector<SweepPoint> points(1);
  for (const SweepAxis& axis : axes) {
    if (points.size() * axis.values.size() > kSweepPointsMax) {
      return refuse("a sweep has at most " + std::to_string(kSweepPointsMax) + " points");
    }
    std::vector<SweepPoint> longer;
    for (const SweepPoint& point : points) {
      for (const std::string& value : axis.values) {
        longer.push_back(point);
        longer.back().emplace_back(axis.parameter, value);
      }
    }
    points = std::move(longer);
  }
  return points;
}

std::string point_text(const SweepPoint& point) {
  std::string text;
  for (const auto& [parameter, value] : point) {
    text += (text.empty() ? "" : ", ") + parameter + "=" + value;
  }
  return text;
}

// The protocol is the only option that is an axis by itself.
std::vector<std::string> words_of_point(int argc, const char* const* argv,
                                        const SweepPoint& point) {
  const bool protocol_swept = std::any_of(
      point.begin(), point.end(), [](const auto& each) { return each.first == "protocol"; });
  std::vector<std::string> words;
  for (int i = 0; i < argc; ++i) {
    const std::string word = argv[i];
    const std::string name = word.substr(0, word.find('='));
    if (name != "--sweep" && !(protocol_swept && name == "--protocol")) {
      words.push_back(word);
    } else if (name == word) {
      ++i;  // its value is a word of its own
    }
  }
  for (const auto& [parameter, value] : point) words.push_back("--" + parameter + "=" + value);
  return words;
}

}  // namespace rdmacc
