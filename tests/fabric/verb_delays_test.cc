// Pauses between verbs: how they are drawn, and what they let happen on shm and tcp.
#include "rdma/fabric/verb_delays.h"

#include <cmath>
#include <map>
#include <set>

#include "rdma/base/host_clock.h"
#include "rdma/open/open_fabric.h"
#include "tests/fabric/fabric_harness.h"

namespace rdmacc {
namespace {

std::vector<Verb> chain_of(const std::vector<Opcode>& opcodes) {
  std::vector<Verb> chain;
  for (const Opcode opcode : opcodes) chain.push_back(Verb{.opcode = opcode, .bytes = 8});
  return chain;
}
const std::vector<Verb> kReads = chain_of({Opcode::kRead, Opcode::kRead});
const std::vector<Verb> kEveryOpcode =
    chain_of({Opcode::kWrite, Opcode::kRead, Opcode::kCompareSwap, Opcode::kFetchAdd});

// Pauses before every READ but the first of its chain.
DelayDraw reads_within_chains(uint64_t ns, bool whole_process) {
  DelayDraw draw;
  draw.kinds = DelayDraw::kRead;
  draw.position = DelayDraw::Position::kWithinChain;
  draw.whole_process = whole_process;
  draw.least_ns = draw.most_ns = ns;
  return draw;
}

// A seed whose draw is like `wanted`; the smallest.
uint64_t seed_of(const std::function<bool(const DelayDraw&)>& wanted) {
  uint64_t seed = 1;
  while (!wanted(DelayDraw::of(seed))) {
    CHECK(seed < 100'000);
    ++seed;
  }
  return seed;
}

TEST(DelayDraw, IsDecidedByItsSeed) {
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const std::string text = DelayDraw::of(seed).to_string();
    EXPECT_EQ(text, DelayDraw::of(seed).to_string());
    seen.insert(text.substr(text.find(": ")));
  }
  EXPECT_GT(seen.size(), 95u);
}

TEST(DelayDraw, StaysWithinItsBounds) {
  for (uint64_t seed = 0; seed < 20'000; ++seed) {
    const DelayDraw draw = DelayDraw::of(seed);
    SCOPED_TRACE(draw.to_string());
    EXPECT_GE(draw.least_ns, DelayDraw::kLeastNs);
    EXPECT_LE(draw.least_ns, draw.most_ns);
    EXPECT_LE(draw.most_ns, DelayDraw::kMostNs);
    EXPECT_TRUE(draw.every >= 1 && draw.every <= DelayDraw::kEveryMax);
    EXPECT_TRUE(draw.kinds >= 1 && draw.kinds <= DelayDraw::kEveryKind);
    EXPECT_TRUE(draw.long_every == 0 || (draw.long_every >= 256 && draw.long_every <= 4096));
    const auto low = static_cast<double>(draw.least_ns), high = static_cast<double>(draw.most_ns);
    const double mean = low == high ? low : (high - low) / std::log(high / low);
    EXPECT_LE(mean / draw.every, 1.0 * DelayDraw::kMeanNsMax);
    // A datagram is in no chain: such a run would have no pauses.
    EXPECT_FALSE(draw.kinds == DelayDraw::kMessage &&
                 draw.position == DelayDraw::Position::kWithinChain);
  }
}

TEST(DelayDraw, GivesEveryKindPositionAndSideItsShare) {
  std::map<int, int> kinds, positions, sides, shapes;
  int stalls = 0, longer_than_a_split = 0;
  constexpr int kDraws = 10'000;
  for (uint64_t seed = 0; seed < kDraws; ++seed) {
    const DelayDraw draw = DelayDraw::of(seed);
    ++kinds[draw.kinds];
    ++positions[static_cast<int>(draw.position)];
    ++sides[static_cast<int>(draw.side)];
    ++shapes[static_cast<int>(draw.shape)];
    stalls += draw.whole_process ? 1 : 0;
    longer_than_a_split += draw.most_ns > 100'000 ? 1 : 0;
  }
  for (const int kind : {1, 2, 4, 8, 16, 31}) EXPECT_GT(kinds[kind], kDraws / 120) << kind;
  for (int shape = 0; shape < 5; ++shape) EXPECT_GT(shapes[shape], kDraws / 20) << shape;
  for (int i = 0; i < 3; ++i) {
    EXPECT_GT(positions[i], kDraws / 20) << i;
    EXPECT_GT(sides[i], kDraws / 6) << i;
  }
  EXPECT_TRUE(stalls > kDraws / 2 && stalls < kDraws * 2 / 3);
  EXPECT_GT(longer_than_a_split, kDraws / 10);
}

TEST(VerbDelays, OneStreamIsOneSequence) {
  const DelayDraw draw{.seed = 5, .every = 3, .least_ns = 100, .most_ns = 200'000};
  VerbDelays first(draw, 1), same(draw, 1), other(draw, 2);
  int differences = 0, pauses = 0;
  for (int i = 0; i < 3'000; ++i) {
    const size_t place = static_cast<size_t>(i) % 4;
    const uint64_t ns = first.next_ns(kEveryOpcode, place);
    EXPECT_EQ(ns, same.next_ns(kEveryOpcode, place));
    differences += ns != other.next_ns(kEveryOpcode, place) ? 1 : 0;
    pauses += ns != 0 ? 1 : 0;
    EXPECT_TRUE(ns == 0 || (ns >= 100 && ns <= 200'000));
  }
  EXPECT_GT(differences, 100);
  EXPECT_TRUE(pauses > 900 && pauses < 1'100) << pauses;
}

TEST(VerbDelays, PausesAtTheKindAndPositionThatWereDrawn) {
  VerbDelays delays(reads_within_chains(700, true), 1);
  EXPECT_EQ(delays.next_ns(kReads, 0), 0u);
  EXPECT_EQ(delays.next_ns(kReads, 1), 700u);
  EXPECT_EQ(delays.next_ns(kEveryOpcode, 0), 0u);
  EXPECT_EQ(delays.next_ns(kEveryOpcode, 1), 700u);
  EXPECT_EQ(delays.next_ns(kEveryOpcode, 2), 0u);
  EXPECT_EQ(delays.next_message_ns(), 0u);
  DelayDraw draw = reads_within_chains(700, true);
  draw.kinds = DelayDraw::kEveryKind;
  draw.position = DelayDraw::Position::kBetweenChains;
  VerbDelays between(draw, 1);
  EXPECT_EQ(between.next_ns(kEveryOpcode, 0), 700u);
  EXPECT_EQ(between.next_ns(kEveryOpcode, 1), 0u);
  EXPECT_EQ(between.next_message_ns(), 700u);
}

TEST(VerbDelays, PausesInChainsOfTheShapeThatWasDrawn) {
  using Shape = DelayDraw::Shape;
  const std::pair<Shape, std::vector<Verb>> examples[] = {
      {Shape::kReads, kReads},
      {Shape::kWrites, chain_of({Opcode::kWrite, Opcode::kWrite})},
      {Shape::kAtomicFirst, chain_of({Opcode::kCompareSwap, Opcode::kRead})},
      {Shape::kMixed, kEveryOpcode}};
  for (const auto& [shape, example] : examples) {
    VerbDelays delays(DelayDraw{.shape = shape, .least_ns = 700, .most_ns = 700}, 1);
    for (const auto& [other, chain] : examples) {
      for (size_t place = 0; place < 2; ++place) {
        EXPECT_EQ(delays.next_ns(chain, place), shape == other ? 700u : 0u);
      }
    }
    EXPECT_EQ(delays.next_message_ns(), 0u);
  }
  VerbDelays longs(DelayDraw{.long_chains = true, .least_ns = 700, .most_ns = 700}, 1);
  EXPECT_EQ(longs.next_ns(kReads, 0), 0u);
  EXPECT_EQ(longs.next_ns(chain_of(std::vector<Opcode>(6, Opcode::kRead)), 0), 700u);
}

TEST(VerbDelays, FewPausesAreLong) {
  DelayDraw draw = reads_within_chains(700, true);
  draw.long_every = 256;
  VerbDelays delays(draw, 1);
  int longs = 0;
  for (int i = 0; i < 256 * 40; ++i) {
    EXPECT_EQ(delays.next_ns(kReads, 0), 0u);
    const uint64_t ns = delays.next_ns(kReads, 1);
    if (ns == 700) continue;
    ++longs;
    EXPECT_TRUE(ns >= DelayDraw::kLongLeastNs && ns <= DelayDraw::kLongMostNs) << ns;
  }
  EXPECT_TRUE(longs > 15 && longs < 80) << longs;
}

TEST(VerbDelays, AreNotThereUnlessAskedFor) {
  const Topology topology{.nodes = 2, .threads_per_node = 1, .workers_max = 8};
  EXPECT_EQ(VerbDelays::of_worker(std::nullopt, topology, 5, 1), nullptr);
  const auto side = [](DelayDraw::Side wanted) {
    return seed_of([wanted](const DelayDraw& draw) { return draw.side == wanted; });
  };
  const uint64_t nodes = side(DelayDraw::Side::kNodes);
  EXPECT_EQ(VerbDelays::of_worker(nodes, topology, 5, 1), nullptr);
  EXPECT_NE(VerbDelays::of_worker(nodes, topology, 1, 1), nullptr);
  const uint64_t coordinators = side(DelayDraw::Side::kCoordinators);
  EXPECT_NE(VerbDelays::of_worker(coordinators, topology, 5, 1), nullptr);
  EXPECT_EQ(VerbDelays::of_worker(coordinators, topology, 1, 1), nullptr);
}

TEST(VerbDelays, AVerbIsDueAfterItsPause) {
  constexpr uint64_t kNs = 2'000'000;
  VerbDelays held(reads_within_chains(kNs, false), 1);
  EXPECT_TRUE(held.due(kReads, 0));
  const uint64_t begin_ns = HostClock::monotonic_ns();
  EXPECT_EQ(held.held_us(), 0u);
  EXPECT_FALSE(held.due(kReads, 1));
  EXPECT_FALSE(held.sit_out()) << "the process goes on";
  EXPECT_LE(held.held_us(), kNs / 1000);
  while (!held.due(kReads, 1)) ASSERT_LT(HostClock::monotonic_ns(), begin_ns + 50 * kNs);
  EXPECT_GE(HostClock::monotonic_ns() - begin_ns, kNs);

  VerbDelays still(reads_within_chains(kNs, true), 1);
  EXPECT_TRUE(still.due(kReads, 0));
  const uint64_t still_ns = HostClock::monotonic_ns();
  EXPECT_FALSE(still.due(kReads, 1));
  EXPECT_TRUE(still.sit_out());
  EXPECT_GE(HostClock::monotonic_ns() - still_ns, kNs);
}

TEST(VerbDelays, SeedsAreNumbers) {
  EXPECT_EQ(*parse_delay_seed("18446744073709551615"), UINT64_MAX);
  for (const char* bad : {"", "x", "-1", "1x", " 1", "18446744073709551616"}) {
    EXPECT_EQ(parse_delay_seed(bad).status().code(), Code::kInvalidArgument) << bad;
  }
}

TEST(VerbDelays, AreRefusedWhereTheyCannotBe) {
  FabricChoice verbs = FabricChoice::remote(FabricKind::kVerbs, ClusterConfig());
  verbs.verb_delays = 1;
  EXPECT_EQ(open_fabric(verbs).status().message(), "verb delays: not on the fabric verbs");
  FabricChoice shm = FabricChoice::shm("there-is-none");
  setenv(kVerbDelaysVariable, "often", 1);
  EXPECT_EQ(open_fabric(shm).status().message(), "verb delays: \"often\" is not a seed");
  setenv(kVerbDelaysVariable, "1", 1);
  EXPECT_EQ(open_fabric(shm).status().code(), Code::kNotFound);
  unsetenv(kVerbDelaysVariable);
}

// On the fabrics that have them, for verbs alone that are held back between READs of a chain.
class DelayedFabric : public testing::TestWithParam<FabricKind> {
 protected:
  static HarnessOptions options() {
    HarnessOptions options;
    options.verb_delays = seed_of([](const DelayDraw& draw) {
      return draw.shape == DelayDraw::Shape::kReads && !draw.long_chains && !draw.whole_process &&
             draw.every == 1 && draw.position == DelayDraw::Position::kWithinChain &&
             draw.least_ns > 5'000 && draw.side == DelayDraw::Side::kEverywhere;
    });
    return options;
  }
  // Of one chain that adds and READs the same word in turn.
  static std::vector<uint64_t> counts_seen(Worker& worker, GlobalAddress at) {
    constexpr size_t kLooks = 16;
    VerbArena arena(worker.pool());
    auto* seen = arena.allocate_array<uint64_t>(kLooks);
    DoorbellBatch batch(worker.scheduler(), worker.counters());
    for (size_t i = 0; i < kLooks; ++i) batch.read(at, &seen[i], 8);
    EXPECT_TRUE(batch.execute().ok());
    return {seen, seen + kLooks};
  }
};

INSTANTIATE_TEST_SUITE_P(Fabrics, DelayedFabric,
                         testing::Values(FabricKind::kShm, FabricKind::kTcp), fabric_kind_name);

TEST_P(DelayedFabric, OthersVerbsFallBetweenThoseOfAChain) {
  FabricHarness cluster(GetParam(), options());
  const GlobalAddress at = GlobalAddress::make(1, 4096);
  Worker& reader = cluster.coordinator(0);
  Worker& writer = cluster.coordinator(1);
  size_t chains_torn = 0;
  bool over = false;
  cluster.run({{&reader,
                [&] {
                  for (int i = 0; i < 50; ++i) {
                    const std::vector<uint64_t> seen = counts_seen(reader, at);
                    EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
                    chains_torn += seen.front() != seen.back() ? 1 : 0;
                  }
                  over = true;
                }},
               {&writer, [&] {
                  VerbArena arena(writer.pool());
                  auto* before = arena.allocate_array<uint64_t>(1);
                  DoorbellBatch batch(writer.scheduler(), writer.counters());
                  for (uint64_t i = 0; !over; ++i) {
                    batch.fetch_add(at, 1, before);
                    ASSERT_TRUE(batch.execute().ok());
                    EXPECT_EQ(i, *before) << "each of its chains is carried out once, in order";
                  }
                }}});
  EXPECT_GT(chains_torn, 0u);
}

TEST_P(DelayedFabric, ANodesOwnVerbsArePausedToo) {
  FabricHarness cluster(GetParam(), options());
  Worker& node = cluster.node(1);
  Worker& writer = cluster.coordinator(0);
  const GlobalAddress at = GlobalAddress::make(1, 4096);
  size_t chains_torn = 0;
  bool over = false;
  cluster.run({{&node,
                [&] {
                  // The writer may have to be connected first.
                  for (int i = 0; i < 5'000 && chains_torn == 0; ++i) {
                    const std::vector<uint64_t> seen = counts_seen(node, at);
                    chains_torn += seen.front() != seen.back() ? 1 : 0;
                  }
                  over = true;
                }},
               {&writer, [&] {
                  VerbArena arena(writer.pool());
                  auto* before = arena.allocate_array<uint64_t>(1);
                  DoorbellBatch batch(writer.scheduler(), writer.counters());
                  while (!over) {
                    batch.fetch_add(at, 1, before);
                    ASSERT_TRUE(batch.execute().ok());
                  }
                }}});
  EXPECT_GT(chains_torn, 0u);
}

// The release of a lock may be behind a pause when its worker leaves.
TEST_P(DelayedFabric, WhatNobodyWaitsForHappensWhenItsWorkerLeaves) {
  FabricHarness cluster(GetParam(), options());
  Worker& worker = cluster.coordinator(0);
  cluster.run(worker, [&] {
    auto* words = reinterpret_cast<uint64_t*>(worker.pool().take(RegisteredPool::kBlockBytes));
    DoorbellBatch batch(worker.scheduler(), worker.counters());
    for (NodeId node = 0; node < 2; ++node) batch.read(GlobalAddress::make(node, 0), words, 8);
    ASSERT_TRUE(batch.execute().ok());  // it is connected
    words[0] = 17;
    batch.read(GlobalAddress::make(1, 4096), &words[1], 8);
    batch.read(GlobalAddress::make(1, 4096), &words[2], 8);
    batch.write(GlobalAddress::make(1, 4096), &words[0], 8);
    batch.ring_unacknowledged();
    words[3] = 18;
    batch.write(GlobalAddress::make(0, 4096), &words[3], 8);
    batch.ring_unacknowledged();
  });
  cluster.stop(worker);
  EXPECT_TRUE(cluster.run_until(
      [&] { return cluster.word_at(1, 4096) == 17 && cluster.word_at(0, 4096) == 18; }));
}

}  // namespace
}  // namespace rdmacc
