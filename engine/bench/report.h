#pragma once
#include <string>

#include "engine/bench/runner.h"

namespace rdmacc {

// One JSON object, the keys in a fixed order; README.md lists them.
std::string report_json(const BenchOptions& options, const RunResult& result);
std::string report_text(const BenchOptions& options, const RunResult& result);

}  // namespace rdmacc
