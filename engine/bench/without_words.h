#pragma once
#include <string>

#include "engine/bench/options.h"

// Names of what posted verbs save (rdma/coroutine/verb_savings.h), as --without has them.

namespace rdmacc {

std::string saving_names();
// "none", or names with a + between them. An error names what there is.
Status take_without(const std::string& text, BenchOptions& options);

}  // namespace rdmacc
