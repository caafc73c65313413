#pragma once
#include "engine/bench/option_words.h"
#include "rdma/base/status.h"

namespace rdmacc {

// Gives options that were not given the values of --preset; those that were given win. First what
// the transactions are (kInvalidArgument: there is no such preset), and later, when the cluster's
// size is known, what depends on it.
Status take_preset(OptionWords& words);
void take_preset_sizes(OptionWords& words);

}  // namespace rdmacc
