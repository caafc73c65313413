#pragma once
#include <string>
#include <utility>
#include <vector>

#include "rdma/base/status.h"

namespace rdmacc {

// A parameter of a sweep and the values that it takes, as they were typed.
struct SweepAxis {
  std::string parameter;
  std::vector<std::string> values;
};

// "coroutines:1,2,4". kInvalidArgument says what is wrong; values are looked at by the option.
Result<SweepAxis> parse_sweep_axis(const std::string& text);
std::vector<std::string> split_at_commas(const std::string& text);
// Options that a sweep may name beside the workload's settings.
bool may_be_swept(const std::string& option);

// Values of all axes, in their order.
using SweepPoint = std::vector<std::pair<std::string, std::string>>;
constexpr size_t kSweepPointsMax = 10'000;
// Every combination, the last axis changing fastest. kInvalidArgument: more than kSweepPointsMax.
Result<std::vector<SweepPoint>> sweep_points(const std::vector<SweepAxis>& axes);
std::string point_text(const SweepPoint& point);  // "coroutines=4, protocol=occ"

// A command line that runs one point: without what is swept, and with the point's values.
std::vector<std::string> words_of_point(int argc, const char* const* argv, const SweepPoint& point);

}  // namespace rdmacc
