#pragma once
#include <memory>
#include <optional>
#include <string>

#include "rdma/base/random.h"
#include "rdma/fabric/fabric.h"

namespace rdmacc {

// A fault of the fabrics whose verbs CPUs carry out (shm, tcp): pauses between verbs. What takes
// nanoseconds on shared memory takes microseconds over a network, and as long as the operating
// system likes where a process is preempted; races that need such a gap are found only if there is
// one.
//
// A seed decides how the pauses of a whole run are distributed (swarm testing: a run that pauses
// at one kind of verb alone, and often, finds what an even mixture of everything does not). All
// workers of the run share the distribution; each draws from a stream of its own.
struct DelayDraw {
  enum Kind : uint8_t {
    kRead = 1,
    kWrite = 2,
    kCompareSwap = 4,
    kFetchAdd = 8,
    kMessage = 16,
    kEveryKind = 31
  };
  // Where in its chain a verb is that is paused before. Datagrams stand between chains.
  enum class Position : uint8_t { kWithinChain, kBetweenChains, kAny };
  enum class Side : uint8_t { kEverywhere, kCoordinators, kNodes };

  // What the chain is like: a stage of a transaction has chains of a shape.
  enum class Shape : uint8_t { kAny, kReads, kWrites, kAtomicFirst, kMixed };

  // 200 us is longer than a split of a group takes.
  static constexpr uint64_t kLeastNs = 100, kMostNs = 200'000;
  static constexpr uint64_t kLongLeastNs = 1'000'000, kLongMostNs = 5'000'000;
  // What all pauses come to for each verb of the chosen kinds, at most; the long ones apart.
  static constexpr uint64_t kMeanNsMax = 25'000;
  static constexpr uint32_t kEveryMax = 8 * 64;
  static constexpr uint32_t kLongChainVerbs = 6;

  uint64_t seed = 0;
  uint8_t kinds = kEveryKind;
  Position position = Position::kAny;
  Side side = Side::kEverywhere;
  Shape shape = Shape::kAny;
  bool long_chains = false;  // those of kLongChainVerbs and more alone
  // The whole process stands still, as if preempted; otherwise the worker's verbs alone, as if they
  // were slow on their way, while its other coroutines and its datagrams go on.
  bool whole_process = true;
  uint32_t every = 1;  // one pause in so many verbs of the kinds, on average
  uint64_t least_ns = kLeastNs, most_ns = kLeastNs;  // log-uniform between them
  uint32_t long_every = 0;  // one pause in so many takes milliseconds; 0: none

  static DelayDraw of(uint64_t seed);
  // "seed 7: READ, WRITE within a chain, at coordinators, every 3 verbs, 120 .. 5000 ns, …"
  std::string to_string() const;
};

// A decimal number of 64 bits; kInvalidArgument otherwise.
Result<uint64_t> parse_delay_seed(const std::string& text);

// The pauses of one worker. Used by its thread alone.
class VerbDelays {
 public:
  VerbDelays(const DelayDraw& draw, uint64_t stream);
  // nullptr: no pauses are asked for, or the draw leaves this worker alone.
  static std::unique_ptr<VerbDelays> of_worker(std::optional<uint64_t> seed,
                                               const Topology& topology, WorkerId worker,
                                               uint32_t incarnation);

  // Whether the verb at `place` of `chain` may be carried out now. False: a pause before it has
  // begun, or is not over yet; then the same verb is asked about again, and nothing behind it is
  // carried out. A verb that has waited may be carried out without a further draw.
  bool due(std::span<const Verb> chain, size_t place);
  // After due() was false. Where the process stands still: waits for the end of the pause, and the
  // verb may be carried out; true. Otherwise false.
  bool sit_out();
  // Until the verb that is held back may be carried out; 0: none is.
  uint64_t held_us() const;

  // Pauses the process if the draw says so.
  void before_message();
  // For verbs that a node carries out for others: it can only stand still as a whole.
  void stall_before(std::span<const Verb> chain, size_t place);

  // Length of the pause before the next such verb or datagram, mostly 0: for tests, too.
  uint64_t next_ns(std::span<const Verb> chain, size_t place);
  uint64_t next_message_ns();

 private:
  bool concerns(std::span<const Verb> chain) const;
  uint64_t count_down();

  const DelayDraw draw_;
  Random random_;
  uint64_t countdown_;
  bool concerned_ = false;  // with the chain that is being carried out
  uint64_t resume_ns_ = 0;  // 0: no verb is held back
};

}  // namespace rdmacc
