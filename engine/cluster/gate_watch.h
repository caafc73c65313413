#pragma once
#include <vector>

#include "engine/cluster/gate.h"

namespace rdmacc {

// Whether one transaction has been alone in the gate for a while: then nothing that it has read
// meanwhile is any other's, and need not be looked at again. Two looks at all workers' lines, of
// which each has to say that nothing is inside, and the second has to be what the first was: a line
// of a worker that has been inside tells a later ctts, and one that was cleared for a dead worker
// has a mark of its own (Gate::clear_line). By G1 a line says `inside` until after the last effect.
class GateWatch {
 public:
  // The first look, of a transaction that is inside. Before whatever it is to speak for. Nothing
  // begins where others are inside, or node 0 does not answer.
  void begin(Gate& gate, VerbCounters& counters);
  bool begun() const { return gate_ != nullptr; }
  // It has been alone since. False if not, or if that is not known.
  bool still_alone(VerbCounters& counters);

 private:
  Gate* gate_ = nullptr;  // nullptr: nothing to be known
  uint64_t entries_ = 0;  // of the worker's own transactions
  std::vector<WorkerLine> lines_;
};

}  // namespace rdmacc
