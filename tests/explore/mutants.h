#pragma once
#include <span>

#include "engine/protocols/registry.h"
#include "engine/txn/rule/rule.h"
#include "rdma/sim/sim_choice.h"
#include "tests/explore/program.h"

namespace rdmacc {

// An engine that is wrong on purpose, in one thing that looks harmless, and a program that shows
// it. What each breaks stands beside it in mutants.cc.
struct ExploreMutant {
  const char* name;
  const char* program;
  ProtocolRules rules;  // used for its protocol in either lock mode
  SimChainRewriter rewriter = nullptr;
  uint16_t code = kStageCodeMax;
  bool words = false;
  bool vast = false;  // the program has more orders than can be tried

  ExploreSetup setup() const;
};

std::span<const ExploreMutant> explore_mutants();

// ---- For making wrong engines, here and in tests/sim

inline const ProtocolRules& right(Protocol protocol, LockMode mode = LockMode::kExclusive) {
  return *rules_of(protocol, mode);
}
// The same rules but for one. Where a read is a lock, both are replaced.
ProtocolRules with_read(ProtocolRules rules, StageRule read);
ProtocolRules with_gap(ProtocolRules rules, GapRule read_gap);
ProtocolRules with_lock(ProtocolRules rules, StageRule lock);
ProtocolRules with_validate(ProtocolRules rules, StageRule validate);
ProtocolRules with_effects(ProtocolRules rules, std::span<const Effect> effects);
using HoldsRule = bool (*)(const Access& access, const TxnStamps& txn);
ProtocolRules with_hold(ProtocolRules rules, HoldsRule holds);

// A wrong rule that shows in more than one engine.
Step read_whether_locked_or_not(const Access& access, const HeaderSnapshot* seen,
                                const TxnStamps& txn);

// Makes `rules` those of their protocol in either lock mode for mutated_rules_of(), which gives the
// right ones of all others. One wrong engine at a time.
void put_in_use(const ProtocolRules& rules);
const ProtocolRules* mutated_rules_of(Protocol protocol, LockMode mode);

}  // namespace rdmacc
