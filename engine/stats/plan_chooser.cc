#include "engine/stats/plan_chooser.h"

#include <algorithm>
#include <bit>

#include "rdma/base/check.h"

namespace rdmacc {
namespace {

constexpr double kCheaper = 0.9;  // the other has to be cheaper by a tenth
constexpr double kChanged = 2;    // times slower or faster
constexpr double kFollow = 1.0 / 32, kFollowLately = 1.0 / 16;
constexpr uint64_t kChanceFirst = 8, kChanceHalvings = 4;  // 1/8 .. 1/128
// Fewer samples of a rare stage's primitive say nothing.
constexpr uint32_t kSamplesMin = 3;

uint16_t with(uint16_t code, uint32_t stage, size_t primitive) {
  const auto bit = static_cast<uint16_t>(1u << stage);
  return static_cast<uint16_t>(primitive == 1 ? code | bit : code & ~bit);
}

}  // namespace

void PlanChooser::add(Cost& cost, uint64_t ns) {
  if (cost.samples < kLearnSamples) {
    cost.first[cost.samples++] = ns;
    auto sorted = cost.first;
    const auto middle = sorted.begin() + cost.samples / 2;
    std::nth_element(sorted.begin(), middle, sorted.begin() + cost.samples);
    cost.ns = static_cast<double>(*middle);
    return;
  }
  cost.ns += (std::min(static_cast<double>(ns), kCut * cost.ns) - cost.ns) * kFollow;
}

// The current primitive stays unless the other is clearly cheaper.
void PlanChooser::settle(StageState& stage) {
  const Cost& current = stage.costs[stage.current];
  const Cost& other = stage.costs[1 - stage.current];
  if (current.samples < kSamplesMin || other.samples < kSamplesMin) return;
  if (other.ns >= kCheaper * current.ns) return;
  stage.current = 1 - stage.current;
  stage.settled_ns = stage.recent_ns = other.ns;
  stage.surprises = 0;
}

void PlanChooser::learn_again(ProtocolState& protocol, StageState& stage) {
  if (stage.learning || protocol.transactions - stage.learned_at < kRelearnEvery) return;
  stage.costs = {};
  stage.learning = true;
  stage.tries = 0;
  stage.learned_at = protocol.transactions;
}

void PlanChooser::watch_current(ProtocolState& protocol, StageState& stage, uint64_t ns) {
  if (stage.settled_ns == 0) return;
  const double cut = std::min(static_cast<double>(ns), kCut * stage.settled_ns);
  stage.recent_ns += (cut - stage.recent_ns) * kFollowLately;
  if (stage.recent_ns > kChanged * stage.settled_ns ||
      stage.recent_ns * kChanged < stage.settled_ns) {
    learn_again(protocol, stage);
  }
}

void PlanChooser::watch_other(ProtocolState& protocol, StageState& stage, uint64_t ns) {
  const double current_ns = stage.costs[stage.current].ns;
  stage.surprises = static_cast<double>(ns) < kCheaper * current_ns ? stage.surprises + 1 : 0;
  if (stage.surprises >= kSurprises) learn_again(protocol, stage);
}

void PlanChooser::stage_done(Protocol protocol, Stage stage, Primitive primitive, uint64_t ns) {
  ProtocolState& own = protocols_[static_cast<size_t>(protocol)];
  StageState& state = own.stages[stage_index(stage)];
  const auto timed = static_cast<size_t>(primitive);
  CHECK(timed < state.costs.size());
  add(state.costs[timed], ns);
  if (state.learning) {
    const uint32_t fewest = std::min(state.costs[0].samples, state.costs[1].samples);
    if (fewest < kLearnSamples && state.tries < kLearnTries) return;
    state.learning = false;
    state.surprises = 0;
    state.settled_ns = state.recent_ns = state.costs[state.current].ns;
    settle(state);
    return;
  }
  settle(state);
  if (timed == state.current) {
    watch_current(own, state, ns);
  } else {
    watch_other(own, state, ns);
  }
}

// The primitive that was timed less often; any at first.
size_t PlanChooser::to_learn(const StageState& stage) {
  const uint32_t rpc = stage.costs[0].samples, one_sided = stage.costs[1].samples;
  if (rpc == one_sided) return random_.below(2);
  return rpc < one_sided ? 0 : 1;
}

// The bit of a stage that tries its other primitive now; mostly 0.
uint16_t PlanChooser::to_explore(uint64_t transactions, uint16_t stages) {
  if (stages == 0) return 0;
  const uint64_t halvings = std::min(transactions / kChanceHalvesEvery, kChanceHalvings);
  if (random_.below(kChanceFirst << halvings) != 0) return 0;
  uint64_t skip = random_.below(static_cast<uint64_t>(std::popcount(stages)));
  for (; skip > 0; --skip) stages = static_cast<uint16_t>(stages & (stages - 1));
  return static_cast<uint16_t>(stages & -stages);
}

PlanChooser::Choice PlanChooser::choose(Protocol protocol, uint16_t stages) {
  ProtocolState& own = protocols_[static_cast<size_t>(protocol)];
  ++own.transactions;
  const StagePlan known = best(protocol, stages);
  uint16_t code = known.code(), settled = 0;
  for (uint32_t i = 0; i < kStageCount; ++i) {
    StageState& stage = own.stages[i];
    if ((stages & (1u << i)) == 0) continue;
    if (stage.learning && stage.tries < kLearnTries) {
      ++stage.tries;
      code = with(code, i, to_learn(stage));
    } else {
      settled = static_cast<uint16_t>(settled | (1u << i));
    }
  }
  code = static_cast<uint16_t>(code ^ to_explore(own.transactions, settled));
  return {.plan = StagePlan(code), .explores = code != known.code()};
}

StagePlan PlanChooser::best(Protocol protocol, uint16_t stages) const {
  const ProtocolState& own = protocols_[static_cast<size_t>(protocol)];
  uint16_t code = 0;
  for (uint32_t i = 0; i < kStageCount; ++i) {
    if ((stages & (1u << i)) != 0) code = with(code, i, own.stages[i].current);
  }
  return StagePlan(code);
}

}  // namespace rdmacc
