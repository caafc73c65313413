#pragma once
#include <string>

#include "engine/bench/options.h"

namespace rdmacc {

// Appends one formatted line of at most 511 characters.
__attribute__((format(printf, 2, 3))) void add_line(std::string& text, const char* format, ...);
// The lines that say what was run on what.
void add_setup(std::string& text, const BenchOptions& options);

}  // namespace rdmacc
