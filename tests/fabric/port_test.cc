// A round of verbs comes to the same whichever port carries it out: by chains, in place, or one
// verb at a time.
#include "tests/fabric/fabric_harness.h"

namespace rdmacc {
namespace {

constexpr uint64_t kPlaceBegin = 4096;  // words that the rounds below work on
constexpr uint64_t kPlaceWords = 64;

HarnessOptions with_port(Endpoint::Port port) {
  HarnessOptions options;
  options.mapped = port == Endpoint::Port::kMapped;
  options.sim.one_by_one = port == Endpoint::Port::kOneByOne;
  return options;
}

// What random rounds of one coordinator saw, and what they left in the nodes' memory.
std::vector<uint64_t> outcome_of_rounds(FabricHarness& harness, uint64_t seed) {
  std::vector<uint64_t> outcome;
  Worker& worker = harness.coordinator(0);
  harness.run(worker, [&] {
    VerbArena arena(worker.pool());
    VerbCounters counters;
    Random random(seed);
    for (int round = 0; round < 50; ++round) {
      DoorbellBatch batch(worker.scheduler(), counters);
      constexpr size_t kVerbs = 12;
      auto* words = arena.allocate_array<uint64_t>(8 * kVerbs);
      std::fill_n(words, 8 * kVerbs, 0);
      for (size_t v = 0; v < kVerbs; ++v) {
        uint64_t* local = words + 8 * v;
        const uint64_t count = 1 + random.below(8);
        const auto at = GlobalAddress::make(static_cast<NodeId>(random.below(2)),
                                            kPlaceBegin + 8 * random.below(kPlaceWords - 8));
        switch (random.below(4)) {
          case 0:
            batch.read(at, local, 8 * count,
                       random.percent(50) ? WordOrder::kAscending : WordOrder::kDescending);
            break;
          case 1:
            for (uint64_t i = 0; i < count; ++i) local[i] = random.below(3);
            batch.write(at, local, 8 * count);
            break;
          case 2:
            batch.compare_swap(at, random.below(3), random.below(3), local);
            break;
          default:
            batch.fetch_add(at, random.below(3), local);
        }
      }
      ASSERT_FALSE(batch.empty());
      ASSERT_TRUE(batch.execute().ok());
      ASSERT_TRUE(batch.empty());
      outcome.insert(outcome.end(), words, words + 8 * kVerbs);
      arena.reset();
    }
    outcome.insert(outcome.end(),
                   {counters.reads, counters.writes, counters.atomics, counters.round_trips});
  });
  for (NodeId node = 0; node < 2; ++node) {
    for (uint64_t i = 0; i < kPlaceWords; ++i) {
      outcome.push_back(harness.word_at(node, kPlaceBegin + 8 * i));
    }
  }
  return outcome;
}

TEST(Ports, EveryPortComesToTheSame) {
  FabricHarness mapped(FabricKind::kShm, with_port(Endpoint::Port::kMapped));
  FabricHarness posted(FabricKind::kShm, with_port(Endpoint::Port::kPosted));
  FabricHarness sim(FabricKind::kSim, with_port(Endpoint::Port::kPosted));
  FabricHarness one_by_one(FabricKind::kSim, with_port(Endpoint::Port::kOneByOne));
  const std::vector<uint64_t> expected = outcome_of_rounds(sim, 5);
  EXPECT_EQ(expected, outcome_of_rounds(one_by_one, 5));
  EXPECT_EQ(expected, outcome_of_rounds(posted, 5));
  EXPECT_EQ(expected, outcome_of_rounds(mapped, 5));
}

TEST(Ports, InPlaceANodeThatIsMissingFailsItsRoundAlone) {
  HarnessOptions options = with_port(Endpoint::Port::kMapped);
  options.nodes_down = 1;
  FabricHarness harness(FabricKind::kShm, options);
  Worker& worker = harness.coordinator(0);
  if (worker.scheduler().mapped() == nullptr) GTEST_SKIP() << "verbs are delayed";
  harness.run(worker, [&] {
    VerbArena arena(worker.pool());
    VerbCounters counters;
    auto* word = arena.allocate_array<uint64_t>(1);
    *word = 7;
    DoorbellBatch batch(worker.scheduler(), counters);
    batch.write(GlobalAddress::make(0, kPlaceBegin), word, 8);
    batch.write(GlobalAddress::make(1, kPlaceBegin), word, 8);
    EXPECT_EQ(Code::kUnavailable, batch.execute().code());
    batch.write(GlobalAddress::make(0, kPlaceBegin), word, 8);
    EXPECT_TRUE(batch.execute().ok());
  });
  EXPECT_EQ(7u, harness.word_at(0, kPlaceBegin));
}

// Of a missing node one verb is tried, and what follows is not, as in a chain that has broken.
TEST(Ports, OneByOneANodeThatIsMissingIsAskedOnce) {
  HarnessOptions options = with_port(Endpoint::Port::kOneByOne);
  options.nodes_down = 1;
  FabricHarness harness(FabricKind::kSim, options);
  Worker& worker = harness.coordinator(0);
  harness.run(worker, [&] {
    VerbArena arena(worker.pool());
    VerbCounters counters;
    auto* word = arena.allocate_array<uint64_t>(1);
    *word = 7;
    const auto here = GlobalAddress::make(0, kPlaceBegin);
    const auto away = GlobalAddress::make(1, kPlaceBegin);
    DoorbellBatch batch(worker.scheduler(), counters);
    for (int i = 0; i < 5; ++i) batch.write(away, word, 8);
    EXPECT_FALSE(batch.empty());  // though none of them is left to be carried out
    batch.write(here, word, 8);
    EXPECT_EQ(Code::kUnavailable, batch.execute().code());
    EXPECT_EQ(2u, counters.doorbells);
    for (int i = 0; i < 2; ++i) batch.write(away, word, 8);
    EXPECT_EQ(Code::kUnavailable, batch.execute().code());
    EXPECT_EQ(3u, counters.doorbells);
    EXPECT_TRUE(batch.empty());
    batch.write(here.plus(8), word, 8);
    EXPECT_TRUE(batch.execute().ok());
  });
  EXPECT_EQ(7u, harness.word_at(0, kPlaceBegin));
  EXPECT_EQ(7u, harness.word_at(0, kPlaceBegin + 8));
}

// A coroutine that never has to wait does not keep timers and others from their turn.
TEST(Ports, InPlaceOthersGetTheirTurn) {
  FabricHarness harness(FabricKind::kShm, with_port(Endpoint::Port::kMapped));
  Worker& worker = harness.coordinator(0);
  bool fired = false;
  int rounds = 0;
  harness.run(worker, [&] {
    VerbArena arena(worker.pool());
    VerbCounters counters;
    auto* word = arena.allocate_array<uint64_t>(1);
    worker.scheduler().call_at(worker.endpoint().now_us(), [&] { fired = true; });
    for (; rounds < 10'000 && !fired; ++rounds) {
      DoorbellBatch batch(worker.scheduler(), counters);
      batch.read(GlobalAddress::make(0, kPlaceBegin), word, 8);
      ASSERT_TRUE(batch.execute().ok());
    }
  });
  EXPECT_TRUE(fired);
}

// One verb at a time, and the worker's other coroutines stand still meanwhile.
TEST(Ports, OneByOneIsAlone) {
  FabricHarness harness(FabricKind::kSim, with_port(Endpoint::Port::kOneByOne));
  Worker& worker = harness.coordinator(0);
  bool within = false;
  uint64_t seen_within = 0, yields = 0;
  bool ended = false;
  const auto rounds = [&] {
    VerbArena arena(worker.pool());
    VerbCounters counters;
    auto* word = arena.allocate_array<uint64_t>(1);
    for (int i = 0; i < 100; ++i) {
      DoorbellBatch batch(worker.scheduler(), counters);
      within = true;
      for (int v = 0; v < 5; ++v) batch.read(GlobalAddress::make(0, kPlaceBegin), word, 8);
      within = false;
      ASSERT_TRUE(batch.execute().ok());
    }
    ended = true;
  };
  const auto look = [&] {
    while (!ended) {
      seen_within += within ? 1 : 0;
      worker.scheduler().sleep_for(1);
      ++yields;
    }
  };
  harness.run({{&worker, rounds}, {&worker, look}});
  EXPECT_EQ(0u, seen_within);
  EXPECT_LT(100u, yields);
}

}  // namespace
}  // namespace rdmacc
