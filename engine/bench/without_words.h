#pragma once
#include <string>

#include "rdma/base/status.h"
#include "rdma/coroutine/verb_savings.h"

// --without: the names of what posted verbs are not to save.

namespace rdmacc {

std::string saving_names();  // all there are, by commas
// "none", or names with a + between them. An error names what there is.
Result<VerbSavings> parse_without(const std::string& text);
// The same text of what is left out; empty: nothing.
std::string without_text(const VerbSavings& savings);

}  // namespace rdmacc
