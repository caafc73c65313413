#pragma once
#include "engine/storage/layout/region_layout.h"

// The global order: epochs, and within an epoch the requests of node 0's batch, then node 1's, …
//
// Stamps. The requests of epoch e have the stamps (base(e) + index) << 16 | kOrderWorker, where
// base(e) is the largest of the times that the batches of e carry. Every batch's time is larger
//   O1  than the last stamp of epoch e - 1, which its sender has executed: stamps of the order are
//       unique, rise with it, and so rise on every record that it writes;
//   O2  than the ctts of its requests, which are larger than the gate's floor: no stamp given out
//       before the gate opened for this protocol is as large;
//   O3  than the last split's stamp on its node. Splits wait while their node has an epoch sealed
//       and not executed, so that a gap header's stamp rises through splits as well.
// A stamp is observed by its coordinator's clock before that leaves the gate, so that the floor for
// the next protocol is larger. No other stamp ends in kOrderWorker. As a lock word it is the same
// when a restarted node executes the request again.

namespace rdmacc {

// Everything before it has been executed: all of the epochs below `epoch`, and the first `index`
// requests of that.
struct Position {
  uint64_t epoch = 1;
  uint32_t index = 0;

  uint64_t word() const { return (epoch << 16) | index; }
  static Position of(uint64_t word) {
    return Position{word >> 16, static_cast<uint32_t>(word & 0xFFFF)};
  }
};
constexpr uint64_t kFirstPosition = 1ull << 16;

constexpr uint64_t order_stamp(uint64_t base_us, uint64_t index) {
  return ((base_us + index) << 16) | kOrderWorker;
}

}  // namespace rdmacc
