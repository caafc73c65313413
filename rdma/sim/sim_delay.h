#pragma once
#include <string>

#include "rdma/base/random.h"
#include "rdma/fabric/verb.h"

namespace rdmacc {

// Pauses before verbs, beside the simulator's own delays: as a network, a NIC's queue or a
// preempted process puts between two verbs of one batch, or before a batch. What is slowed is drawn
// once for a run (swarm testing): pauses before verbs of every kind alike hide what shows when one
// kind alone is slow.
struct SimDelays {
  static constexpr uint8_t kReads = 1, kWrites = 2, kAtomics = 4;  // kinds
  static constexpr uint8_t kWords = 1, kLines = 2, kLong = 4;      // lengths: 8 bytes, up to 64
  static constexpr uint8_t kWithinBatch = 1, kBeforeBatch = 2;     // places
  static constexpr uint8_t kOfCoordinators = 1, kOfNodes = 2;      // initiators
  static constexpr uint64_t kNsMin = 10, kNsMax = 200'000;         // a split takes some 10 us

  uint8_t kinds = 0;  // none: no verb is delayed
  uint8_t lengths = kWords | kLines | kLong;
  uint8_t places = kWithinBatch | kBeforeBatch;
  uint8_t initiators = kOfCoordinators | kOfNodes;
  uint32_t every = 1;                         // of the verbs that all of this fits
  uint64_t ns_min = kNsMin, ns_max = kNsMin;  // log-uniform

  bool any() const { return kinds != 0; }
  static SimDelays draw(Random& random);
  // Between any two READs of a batch, long enough for a split.
  static SimDelays between_reads(Random& random);
  // For a run's description; empty without delays.
  std::string describe() const;
};

// Carries the delays of a run out, by chances of its own: what else the simulator draws is the
// same with and without them.
class SimDelayer {
 public:
  SimDelayer(const SimDelays& delays, uint64_t seed) : delays_(delays), random_(seed) {}

  // Nanoseconds to wait before `verb`. `first`: of its chain; `of_node`: a node's thread posted it.
  uint64_t before(const Verb& verb, bool first, bool of_node);

 private:
  bool fits(const Verb& verb, bool first, bool of_node) const;

  const SimDelays delays_;
  Random random_;
  uint64_t fitting_ = 0;
};

}  // namespace rdmacc
