#pragma once
#include <span>

#include "engine/txn/rule.h"
#include "rdma/sim_choice.h"

namespace rdmacc {

// An engine that is wrong on purpose, in one thing that looks harmless, and a program that shows
// it. What each breaks stands beside it in mutants.cc.
struct ExploreMutant {
  const char* name;
  const char* setup;
  const char* program;
  ProtocolRules rules;  // used for its protocol in either lock mode
  SimChainRewriter rewriter;
};

std::span<const ExploreMutant> explore_mutants();

}  // namespace rdmacc
