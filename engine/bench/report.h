#pragma once
#include <span>
#include <string>

#include "engine/bench/runner.h"

namespace rdmacc {

// What the program prints, in the form that the options ask for: of kRun the one run, of
// kEnumerate all of them, ranked, of a sweep all of them in its order. README.md lists what JSON
// and CSV contain.
std::string report(std::span<const BenchRun> runs);

// The forms by themselves. JSON: an object, the keys in a fixed order, or an array of such.
std::string report_text(const BenchRun& run);
std::string report_ranking(std::span<const BenchRun> runs);
std::string report_table(std::span<const BenchRun> runs);  // of a sweep
std::string report_json(const BenchRun& run);
std::string report_json_array(std::span<const BenchRun> runs);
std::string report_csv(std::span<const BenchRun> runs);

}  // namespace rdmacc
