#pragma once
#include "rdma/base/status.h"

namespace rdmacc {

struct OptionWords;

// How much a run does, beside the seconds that it takes, and when.
struct LoadOptions {
  uint64_t transactions = 0;    // of each coroutine, in place of the seconds; 0: the seconds count
  double rate = 0;              // starts a second of the whole run; 0: as fast as it goes
  double latency_limit_ms = 0;  // 0: none
  double warm_up_seconds = 0;   // before anything is measured

  uint64_t latency_limit_ns() const { return static_cast<uint64_t>(latency_limit_ms * 1e6); }
};

// kInvalidArgument says what is wrong with the words.
Status take_load(const OptionWords& words, LoadOptions& load);

}  // namespace rdmacc
