#pragma once
#include <array>

#include "engine/txn/rule/outcome.h"
#include "engine/txn/rule/stage.h"
#include "rdma/base/histogram.h"
#include "rdma/coroutine/doorbell_batch.h"

namespace rdmacc {

// What one worker measured of its transactions. Its thread alone writes it; readers copy it when
// the worker rests.
struct WorkerStats {
  uint64_t committed = 0;
  uint64_t aborted = 0;
  uint64_t exclusive = 0;  // attempts, committed or not, in exclusive gate mode
  std::array<uint64_t, static_cast<size_t>(AbortReason::kCount)> aborts{};
  // Nanoseconds per stage and primitive, [stage_index][primitive]; from some transactions on, those
  // of a sample (rdma/base/sampling.h).
  std::array<std::array<Histogram, 2>, kStageCount> stage_ns;
  VerbCounters verbs;             // of committed and aborted transactions
  VerbCounters allocation_verbs;  // allocate, free, chain: counted apart
  uint64_t log_full_waits = 0;

  void merge(const WorkerStats& other);
};

}  // namespace rdmacc
