#pragma once
#include <array>

#include "engine/txn/rule/stage.h"
#include "rdma/base/random.h"

// Chooses stage plans by what stages cost: which primitive is cheaper for a stage depends on the
// machine, the load and the workload, so it is measured while transactions run. Stages do not
// depend on each other: each is learned alone, and a hybrid code is one choice per stage.
//
//   learning   the first transactions try both primitives of every stage, until each was timed
//              kLearnSamples times or kLearnTries transactions have passed (some stages are rare)
//   settled    the cheaper primitive; with a chance that halves every kChanceHalvesEvery
//              transactions, from 1/8 down to 1/128, one stage of a transaction tries the other
//   again      a stage whose own primitive has become twice as slow or fast, or whose other one
//              was cheaper kSurprises times in a row, learns anew, at most every kRelearnEvery
//              transactions
//
// So at most kLearnTries of any kRelearnEvery transactions learn, per stage, and few others
// explore. Latencies have long tails (a process that waits for its processor): an estimate begins
// as a median and then follows samples cut at kCut times itself.
//
// One per worker, its thread alone. The same seed and calls give the same choices.

namespace rdmacc {

class PlanChooser {
 public:
  static constexpr uint32_t kLearnSamples = 16, kLearnTries = 64;
  static constexpr uint32_t kChanceHalvesEvery = 64, kRelearnEvery = 1024, kSurprises = 3;
  static constexpr double kCut = 4;

  explicit PlanChooser(uint64_t seed) : random_(seed) {}

  struct Choice {
    StagePlan plan;
    bool explores = false;  // it differs from best()
  };
  // For the next transaction; `stages` are the bits of Stage that the protocol has. The code has
  // no others.
  Choice choose(Protocol protocol, uint16_t stages);
  // What a round of a stage took.
  void stage_done(Protocol protocol, Stage stage, Primitive primitive, uint64_t ns);
  // The cheapest known.
  StagePlan best(Protocol protocol, uint16_t stages) const;

 private:
  struct Cost {  // of one primitive
    std::array<uint64_t, kLearnSamples> first{};
    uint32_t samples = 0;
    double ns = 0;
  };
  struct StageState {
    std::array<Cost, 2> costs;  // [primitive]
    size_t current = 1;         // primitive; stages begin as a plan does
    bool learning = true;
    uint32_t tries = 0;                    // transactions that it has been learning for
    uint64_t learned_at = 0;               // transaction at which it learned last
    uint32_t surprises = 0;                // cheaper samples of the other in a row
    double settled_ns = 0, recent_ns = 0;  // of the current one: when it settled, and lately
  };
  struct ProtocolState {
    std::array<StageState, kStageCount> stages;
    uint64_t transactions = 0;
  };

  static void add(Cost& cost, uint64_t ns);
  static void settle(StageState& stage);
  void learn_again(ProtocolState& protocol, StageState& stage);
  void watch_current(ProtocolState& protocol, StageState& stage, uint64_t ns);
  void watch_other(ProtocolState& protocol, StageState& stage, uint64_t ns);
  size_t to_learn(const StageState& stage);
  uint16_t to_explore(uint64_t transactions, uint16_t stages);

  Random random_;
  std::array<ProtocolState, kProtocolCount> protocols_;
};

}  // namespace rdmacc
