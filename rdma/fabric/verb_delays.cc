#include "rdma/fabric/verb_delays.h"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "rdma/base/host_clock.h"

namespace rdmacc {
namespace {

// A timer of the kernel comes some 50 us late.
constexpr uint64_t kSpinNsMax = 60'000;
constexpr uint64_t kBusyNsMax = 1'000;

uint64_t log_uniform(Random& random, uint64_t least, uint64_t most) {
  const double low = std::log(static_cast<double>(least));
  const double high = std::log(static_cast<double>(most));
  const double drawn = std::exp(low + random.unit() * (high - low));
  return std::clamp(static_cast<uint64_t>(drawn), least, most);
}

double log_uniform_mean(uint64_t least, uint64_t most) {
  if (least == most) return static_cast<double>(least);
  const double low = static_cast<double>(least), high = static_cast<double>(most);
  return (high - low) / std::log(high / low);
}

uint8_t draw_kinds(Random& random) {
  const uint64_t share = random.below(100);
  if (share < 20) return DelayDraw::kEveryKind;
  if (share < 40) return static_cast<uint8_t>(1 + random.below(DelayDraw::kEveryKind));
  const uint64_t one = random.below(100);
  if (one < 45) return DelayDraw::kRead;
  if (one < 65) return DelayDraw::kWrite;
  if (one < 85) return DelayDraw::kCompareSwap;
  return one < 95 ? DelayDraw::kMessage : DelayDraw::kFetchAdd;
}

DelayDraw::Position draw_position(Random& random, uint8_t kinds) {
  const uint64_t share = random.below(100);
  if (share < 35 || kinds == DelayDraw::kMessage) return DelayDraw::Position::kAny;
  return share < 75 ? DelayDraw::Position::kWithinChain : DelayDraw::Position::kBetweenChains;
}

DelayDraw::Side draw_side(Random& random) {
  const uint64_t share = random.below(4);
  if (share < 2) return DelayDraw::Side::kEverywhere;
  return share == 2 ? DelayDraw::Side::kCoordinators : DelayDraw::Side::kNodes;
}

uint8_t kind_of(Opcode opcode) {
  switch (opcode) {
    case Opcode::kRead:
      return DelayDraw::kRead;
    case Opcode::kWrite:
      return DelayDraw::kWrite;
    case Opcode::kCompareSwap:
      return DelayDraw::kCompareSwap;
    case Opcode::kFetchAdd:
      return DelayDraw::kFetchAdd;
  }
  CHECK(false);
  return 0;
}

DelayDraw::Shape shape_of(std::span<const Verb> chain) {
  CHECK(!chain.empty());
  const auto all = [chain](Opcode opcode) {
    return std::all_of(chain.begin(), chain.end(),
                       [opcode](const Verb& verb) { return verb.opcode == opcode; });
  };
  if (all(Opcode::kRead)) return DelayDraw::Shape::kReads;
  if (all(Opcode::kWrite)) return DelayDraw::Shape::kWrites;
  const Opcode first = chain.front().opcode;
  const bool atomic = first == Opcode::kCompareSwap || first == Opcode::kFetchAdd;
  return atomic ? DelayDraw::Shape::kAtomicFirst : DelayDraw::Shape::kMixed;
}

DelayDraw::Shape draw_shape(Random& random) {
  const uint64_t share = random.below(100);
  if (share < 50) return DelayDraw::Shape::kReads;
  if (share < 70) return DelayDraw::Shape::kWrites;
  return share < 90 ? DelayDraw::Shape::kAtomicFirst : DelayDraw::Shape::kMixed;
}

std::string kinds_text(uint8_t kinds) {
  if (kinds == DelayDraw::kEveryKind) return "any verb";
  constexpr const char* kNames[] = {"READ", "WRITE", "CAS", "FAA", "SEND"};
  std::string text;
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if ((kinds & (1u << i)) != 0) text += (text.empty() ? "" : "+") + std::string(kNames[i]);
  }
  return text;
}

void pause_until(uint64_t deadline_ns) {
  for (uint64_t now = HostClock::monotonic_ns(); now < deadline_ns;
       now = HostClock::monotonic_ns()) {
    if (deadline_ns - now <= kBusyNsMax) {
      __builtin_ia32_pause();
      continue;
    }
    if (deadline_ns - now <= kSpinNsMax) {
      sched_yield();  // where processors are scarce, it is now that the others do something
      continue;
    }
    const uint64_t ns = deadline_ns - now - kSpinNsMax / 2;
    const timespec length{static_cast<time_t>(ns / 1'000'000'000),
                          static_cast<long>(ns % 1'000'000'000)};
    nanosleep(&length, nullptr);  // a signal ends it early: then it is made again
  }
}

}  // namespace

DelayDraw DelayDraw::of(uint64_t seed) {
  Random random(seed ^ 0xDE1A'75ED'0000'0001ull);
  DelayDraw draw;
  draw.seed = seed;
  // Of one stage alone, and at every verb of it: what is paused everywhere changes little between
  // the parties to a race.
  const bool one_stage = random.percent(60);
  if (one_stage) {
    draw.shape = draw_shape(random);
    draw.long_chains = random.percent(50);
    if (random.percent(70)) draw.position = Position::kWithinChain;
  } else {
    draw.kinds = draw_kinds(random);
    draw.position = draw_position(random, draw.kinds);
  }
  draw.side = draw_side(random);
  draw.whole_process = random.percent(60);
  draw.least_ns = draw.most_ns = log_uniform(random, one_stage ? 2'000 : kLeastNs, kMostNs);
  if (random.percent(50)) draw.most_ns = log_uniform(random, draw.least_ns, kMostNs);
  const double mean_ns = log_uniform_mean(draw.least_ns, draw.most_ns);
  const auto densest = static_cast<uint64_t>(std::ceil(mean_ns / kMeanNsMax));
  const bool dense = one_stage || random.percent(50);
  draw.every = static_cast<uint32_t>(densest * (dense ? 1 : log_uniform(random, 1, 64)));
  if (random.percent(25)) draw.long_every = static_cast<uint32_t>(log_uniform(random, 256, 4096));
  CHECK(draw.kinds != 0 && draw.every > 0 && draw.every <= kEveryMax);
  return draw;
}

std::string DelayDraw::to_string() const {
  constexpr const char* kPositions[] = {" within", " at the start of", " in"};
  constexpr const char* kSides[] = {"", ", at coordinators", ", at nodes"};
  constexpr const char* kShapes[] = {"", " of READs", " of WRITEs", " that begins with an atomic",
                                     " of a mixed kind"};
  std::string text = "seed " + std::to_string(seed) + ": " + kinds_text(kinds);
  text += kPositions[static_cast<size_t>(position)];
  text += long_chains ? " a long chain" : " a chain";
  text += kShapes[static_cast<size_t>(shape)];
  text += kSides[static_cast<size_t>(side)];
  text += ", one in " + std::to_string(every) + ", " + std::to_string(least_ns);
  if (most_ns != least_ns) text += " .. " + std::to_string(most_ns);
  text += whole_process ? " ns of the process" : " ns of the verbs alone";
  if (long_every > 0) text += ", one pause in " + std::to_string(long_every) + " of milliseconds";
  return text;
}

Result<uint64_t> parse_delay_seed(const std::string& text) {
  uint64_t seed = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, seed);
  if (error == std::errc() && stop == end) return seed;
  return Status(Code::kInvalidArgument, "verb delays: \"" + text + "\" is not a seed");
}

VerbDelays::VerbDelays(const DelayDraw& draw, uint64_t stream)
    : draw_(draw), random_(Random(draw.seed ^ (stream << 20)).next()), countdown_(0) {
  countdown_ = 1 + random_.below(2 * draw_.every - 1);
}

std::unique_ptr<VerbDelays> VerbDelays::of_worker(std::optional<uint64_t> seed,
                                                  const Topology& topology, WorkerId worker,
                                                  uint32_t incarnation) {
  if (!seed) return nullptr;
  const DelayDraw draw = DelayDraw::of(*seed);
  const bool node = topology.is_node_worker(worker);
  if (draw.side == DelayDraw::Side::kCoordinators && node) return nullptr;
  if (draw.side == DelayDraw::Side::kNodes && !node) return nullptr;
  return std::make_unique<VerbDelays>(draw, (uint64_t{incarnation} << 16) | worker);
}

uint64_t VerbDelays::count_down() {
  CHECK(countdown_ > 0);
  if (--countdown_ > 0) return 0;
  countdown_ = 1 + random_.below(2 * draw_.every - 1);
  if (draw_.long_every > 0 && random_.below(draw_.long_every) == 0) {
    return log_uniform(random_, DelayDraw::kLongLeastNs, DelayDraw::kLongMostNs);
  }
  return log_uniform(random_, draw_.least_ns, draw_.most_ns);
}

bool VerbDelays::concerns(std::span<const Verb> chain) const {
  if (draw_.long_chains && chain.size() < DelayDraw::kLongChainVerbs) return false;
  return draw_.shape == DelayDraw::Shape::kAny || draw_.shape == shape_of(chain);
}

uint64_t VerbDelays::next_ns(std::span<const Verb> chain, size_t place) {
  if (place == 0) concerned_ = concerns(chain);
  if (!concerned_ || (draw_.kinds & kind_of(chain[place].opcode)) == 0) return 0;
  if (draw_.position == DelayDraw::Position::kWithinChain && place == 0) return 0;
  if (draw_.position == DelayDraw::Position::kBetweenChains && place > 0) return 0;
  return count_down();
}

uint64_t VerbDelays::next_message_ns() {
  if ((draw_.kinds & DelayDraw::kMessage) == 0) return 0;
  if (draw_.shape != DelayDraw::Shape::kAny || draw_.long_chains) return 0;
  if (draw_.position == DelayDraw::Position::kWithinChain) return 0;
  return count_down();
}

bool VerbDelays::due(std::span<const Verb> chain, size_t place) {
  if (resume_ns_ == 0) {
    const uint64_t ns = next_ns(chain, place);
    if (ns == 0) return true;
    resume_ns_ = HostClock::monotonic_ns() + ns;
    return false;
  }
  if (HostClock::monotonic_ns() < resume_ns_) return false;
  resume_ns_ = 0;
  return true;
}

bool VerbDelays::sit_out() {
  CHECK(resume_ns_ != 0);
  if (!draw_.whole_process) return false;
  pause_until(resume_ns_);
  resume_ns_ = 0;
  return true;
}

uint64_t VerbDelays::held_us() const {
  if (resume_ns_ == 0) return 0;
  const uint64_t now = HostClock::monotonic_ns();
  return now < resume_ns_ ? (resume_ns_ - now) / 1000 : 0;
}

void VerbDelays::before_message() {
  const uint64_t ns = next_message_ns();
  if (ns > 0) pause_until(HostClock::monotonic_ns() + ns);
}

void VerbDelays::stall_before(std::span<const Verb> chain, size_t place) {
  const uint64_t ns = next_ns(chain, place);
  if (ns > 0) pause_until(HostClock::monotonic_ns() + ns);
}

}  // namespace rdmacc
