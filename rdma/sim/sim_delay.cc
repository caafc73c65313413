#include "rdma/sim/sim_delay.h"

#include <algorithm>
#include <bit>

namespace rdmacc {
namespace {

constexpr uint32_t kEveryMax = 64;

// Every power of two is as likely as another; whole numbers alone, so that every machine draws the
// same.
uint64_t log_uniform(Random& random, uint64_t from, uint64_t to) {
  const uint64_t low = static_cast<uint64_t>(std::bit_width(from)) - 1;
  const uint64_t high = static_cast<uint64_t>(std::bit_width(to)) - 1;
  const uint64_t base = uint64_t{1} << (low + random.below(high - low + 1));
  return std::clamp(base + random.below(base), from, to);
}

// Any of the bits of `all`, but not none.
uint8_t some_of(Random& random, uint8_t all) {
  for (;;) {
    const auto some = static_cast<uint8_t>(random.next() & all);
    if (some != 0) return some;
  }
}

uint8_t kind_of(const Verb& verb) {
  switch (verb.opcode) {
    case Opcode::kRead:
      return SimDelays::kReads;
    case Opcode::kWrite:
      return SimDelays::kWrites;
    case Opcode::kCompareSwap:
    case Opcode::kFetchAdd:
      break;
  }
  return SimDelays::kAtomics;
}

uint8_t length_of(const Verb& verb) {
  if (verb.bytes <= 8) return SimDelays::kWords;
  return verb.bytes <= kCacheLineBytes ? SimDelays::kLines : SimDelays::kLong;
}

struct Named {
  uint8_t bit;
  const char* name;
};

template <size_t count>
std::string names_of(uint8_t bits, const Named (&names)[count]) {
  std::string text;
  for (const Named& each : names) {
    if ((bits & each.bit) != 0) text += (text.empty() ? "" : "+") + std::string(each.name);
  }
  return text;
}

}  // namespace

SimDelays SimDelays::draw(Random& random) {
  SimDelays delays;
  delays.kinds = some_of(random, kReads | kWrites | kAtomics);
  delays.lengths = some_of(random, kWords | kLines | kLong);
  delays.places = some_of(random, kWithinBatch | kBeforeBatch);
  delays.initiators = some_of(random, kOfCoordinators | kOfNodes);
  delays.every = static_cast<uint32_t>(log_uniform(random, 1, kEveryMax));
  delays.ns_min = log_uniform(random, kNsMin, kNsMax);
  delays.ns_max = log_uniform(random, delays.ns_min, kNsMax);
  return delays;
}

SimDelays SimDelays::between_reads(Random& random) {
  SimDelays delays;
  delays.kinds = kReads;
  delays.places = kWithinBatch;
  delays.ns_min = log_uniform(random, 100, 10'000);
  delays.ns_max = log_uniform(random, 10'000, kNsMax / 4);
  return delays;
}

std::string SimDelays::describe() const {
  if (!any()) return "";
  constexpr Named kKinds[] = {{kReads, "READ"}, {kWrites, "WRITE"}, {kAtomics, "atomic"}};
  constexpr Named kLengths[] = {{kWords, "words"}, {kLines, "lines"}, {kLong, "long"}};
  constexpr Named kPlaces[] = {{kWithinBatch, "within"}, {kBeforeBatch, "before"}};
  constexpr Named kInitiators[] = {{kOfCoordinators, "coordinators"}, {kOfNodes, "nodes"}};
  return "delays of " + std::to_string(ns_min) + ".." + std::to_string(ns_max) + " ns " +
         names_of(places, kPlaces) + " batches, 1 in " + std::to_string(every) + " " +
         names_of(kinds, kKinds) + " (" + names_of(lengths, kLengths) + ") of " +
         names_of(initiators, kInitiators);
}

bool SimDelayer::fits(const Verb& verb, bool first, bool of_node) const {
  const uint8_t place = first ? SimDelays::kBeforeBatch : SimDelays::kWithinBatch;
  const uint8_t initiator = of_node ? SimDelays::kOfNodes : SimDelays::kOfCoordinators;
  return (delays_.kinds & kind_of(verb)) != 0 && (delays_.lengths & length_of(verb)) != 0 &&
         (delays_.places & place) != 0 && (delays_.initiators & initiator) != 0;
}

uint64_t SimDelayer::before(const Verb& verb, bool first, bool of_node) {
  if (!delays_.any() || !fits(verb, first, of_node)) return 0;
  if (++fitting_ % delays_.every != 0) return 0;
  return log_uniform(random_, delays_.ns_min, delays_.ns_max);
}

}  // namespace rdmacc
