#pragma once
#include <span>
#include <string>

#include "engine/bench/runner.h"

namespace rdmacc {

// What the program prints, in the form that the options ask for: of kRun the one run, of
// kEnumerate all of them, ranked. README.md lists what JSON and CSV contain.
std::string report(std::span<const Run> runs);

// The forms by themselves. JSON: an object, the keys in a fixed order, or an array of such.
std::string report_text(const Run& run);
std::string report_ranking(std::span<const Run> runs);
std::string report_json(const Run& run);
std::string report_json_array(std::span<const Run> runs);
std::string report_csv(std::span<const Run> runs);

}  // namespace rdmacc
