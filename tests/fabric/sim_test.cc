#include <cstring>
#include <set>

#include "tests/fabric/fabric_harness.h"

// What only the simulator does: one seed is one history, verbs tear, workers die at any event.

namespace rdmacc {
namespace {

constexpr uint64_t kRecordWords = 16;  // 128 bytes

struct RunResult {
  uint64_t events = 0;
  uint64_t now_ns = 0;
  uint64_t torn_reads = 0;
  uint64_t checksum = 0;
  friend bool operator==(const RunResult&, const RunResult&) = default;
};

// Two writers and two readers of one record, and a counter.
RunResult run_record_workload(const SimOptions& sim, WordOrder order = WordOrder::kAscending) {
  HarnessOptions options;
  options.sim = sim;
  FabricHarness cluster(FabricKind::kSim, options);
  RunResult result;
  std::vector<std::pair<Worker*, std::function<void()>>> tasks;
  for (uint64_t c = 0; c < 4; ++c) {
    Worker* w = &cluster.coordinator(c % 2);
    tasks.emplace_back(w, [w, c, order, &result] {
      VerbArena arena(w->pool());
      auto* record = arena.allocate_array<uint64_t>(kRecordWords);
      auto* seen = arena.allocate_array<uint64_t>(1);
      DoorbellBatch batch(w->scheduler(), w->counters());
      for (uint64_t i = 1; i <= 50; ++i) {
        const GlobalAddress at = GlobalAddress::make(0, 4096);
        if (c < 2) {
          for (uint64_t k = 0; k < kRecordWords; ++k) record[k] = c * 1000 + i;
          batch.write(at, record, kRecordWords * 8);
        } else {
          batch.read(at, record, kRecordWords * 8, order);
        }
        batch.fetch_add(GlobalAddress::make(0, 64), 1, seen);
        CHECK(batch.execute().ok());
        result.checksum = result.checksum * 31 + *seen;
        for (uint64_t k = 1; k < kRecordWords; ++k) {
          if (record[k] == record[0]) continue;
          ++result.torn_reads;
          break;
        }
      }
    });
  }
  cluster.run(std::move(tasks));
  CHECK(cluster.word_at(0, 64) == 200);
  result.events = cluster.sim().events();
  result.now_ns = cluster.sim().now_ns();
  return result;
}

TEST(Simulator, OneSeedIsOneHistory) {
  std::set<uint64_t> ends;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SimOptions sim;
    sim.seed = seed;
    const RunResult first = run_record_workload(sim);
    EXPECT_EQ(first, run_record_workload(sim)) << "seed " << seed;
    ends.insert(first.now_ns);
  }
  EXPECT_EQ(10u, ends.size());  // and different seeds are different ones
}

TEST(Simulator, AnObserverChangesNothing) {
  const RunResult alone = run_record_workload(SimOptions());
  HarnessOptions options;
  FabricHarness cluster(FabricKind::kSim, options);
  uint64_t observed = 0;
  cluster.sim().set_observer([&](uint64_t event) { EXPECT_EQ(++observed, event); });
  cluster.run(cluster.coordinator(0), [] {});
  EXPECT_EQ(observed, cluster.sim().events());
  EXPECT_EQ(alone, run_record_workload(SimOptions()));
}

TEST(Simulator, LongReadsTear) {
  for (bool cpu_reads : {true, false}) {
    uint64_t torn = 0;
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      SimOptions sim;
      sim.seed = seed;
      sim.cpu_reads = cpu_reads;
      torn +=
          run_record_workload(sim, seed % 2 == 0 ? WordOrder::kDescending : WordOrder::kAscending)
              .torn_reads;
    }
    EXPECT_GT(torn, 0u) << "cpu_reads " << cpu_reads;
  }
}

TEST(Simulator, NothingTearsWithoutTearing) {
  SimOptions sim;
  sim.tear = false;
  EXPECT_EQ(0u, run_record_workload(sim).torn_reads);
}

// Words of one line are written in ascending order. A reader that takes them in descending order
// never sees a word newer than the one before it in the line.
TEST(Simulator, WordOrderIsKept) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    HarnessOptions options;
    options.sim.seed = seed;
    FabricHarness cluster(FabricKind::kSim, options);
    bool stop = false;
    Worker* writer = &cluster.coordinator(0);
    Worker* reader = &cluster.coordinator(1);
    cluster.run({{writer,
                  [&] {
                    VerbArena arena(writer->pool());
                    auto* words = arena.allocate_array<uint64_t>(8);
                    DoorbellBatch batch(writer->scheduler(), writer->counters());
                    for (uint64_t i = 1; i <= 100; ++i) {
                      for (int k = 0; k < 8; ++k) words[k] = i;
                      batch.write(GlobalAddress::make(0, 64), words, 64);
                      CHECK(batch.execute().ok());
                    }
                    stop = true;
                  }},
                 {reader, [&] {
                    VerbArena arena(reader->pool());
                    auto* words = arena.allocate_array<uint64_t>(8);
                    DoorbellBatch batch(reader->scheduler(), reader->counters());
                    while (!stop) {
                      batch.read(GlobalAddress::make(0, 64), words, 64, WordOrder::kDescending);
                      CHECK(batch.execute().ok());
                      // Word k was read after word k + 1, and is written before it.
                      for (int k = 0; k < 7; ++k) CHECK(words[k] >= words[k + 1]);
                    }
                  }}});
  }
}

TEST(Simulator, RunUntilIsBounded) {
  FabricHarness cluster(FabricKind::kSim);
  EXPECT_FALSE(cluster.sim().run_until([] { return false; }, 1'000'000));  // nothing left
  Worker& w = cluster.coordinator(0);
  bool stop = false;
  ASSERT_TRUE(w.scheduler().spawn([&] {
    while (!stop) w.scheduler().yield();
  }));
  EXPECT_FALSE(cluster.sim().run_until([] { return false; }, 1'000));  // too many
  stop = true;
  EXPECT_TRUE(cluster.run_until([&] { return w.scheduler().busy_coroutines() == 0; }));
}

// Kills a writer at an event of its run. What it leaves must be a prefix of its chain.
TEST(Simulator, AKilledWorkerLeavesAPrefixOfItsVerbs) {
  std::set<uint64_t> prefixes;
  for (uint64_t kill_at = 3; kill_at < 60; ++kill_at) {
    HarnessOptions options;
    options.sim.seed = kill_at;
    FabricHarness cluster(FabricKind::kSim, options);
    Worker& victim = cluster.coordinator(0);
    const WorkerId id = victim.id();
    ASSERT_TRUE(victim.scheduler().spawn([&victim] {
      VerbArena arena(victim.pool());
      auto* words = arena.allocate_array<uint64_t>(8);
      DoorbellBatch batch(victim.scheduler(), victim.counters());
      for (int i = 0; i < 8; ++i) {
        words[i] = 1;
        batch.write(GlobalAddress::make(0, 64 * static_cast<uint64_t>(i + 1)), &words[i], 8);
      }
      for (int k = 0; k < 100; ++k) batch.read(GlobalAddress::make(1, 0), arena.allocate(64), 64);
      CHECK(batch.execute().ok());
      victim.scheduler().sleep_for(1u << 30);
    }));
    bool killed = false;
    cluster.sim().set_observer([&](uint64_t event) {
      if (event == kill_at) cluster.sim().kill(id);
      killed = killed || event == kill_at;
    });
    ASSERT_TRUE(cluster.run_until([&] { return killed; }));
    cluster.stop(victim);
    ASSERT_TRUE(cluster.run_until([&] { return !cluster.fabric().departed().empty(); }) ||
                !cluster.fabric().departed().empty());
    EXPECT_EQ(std::vector<WorkerId>{id}, cluster.fabric().departed());
    EXPECT_EQ(0u, cluster.node(0).endpoint().incarnation_of(id));
    uint64_t prefix = 0;
    while (prefix < 8 && cluster.word_at(0, 64 * (prefix + 1)) == 1) ++prefix;
    for (uint64_t i = prefix; i < 8; ++i) EXPECT_EQ(0u, cluster.word_at(0, 64 * (i + 1)));
    prefixes.insert(prefix);
    cluster.fabric().release(id);
    EXPECT_TRUE(cluster.fabric().departed().empty());
    Worker& next = cluster.start_coordinator();
    EXPECT_EQ(id, next.id());
    EXPECT_EQ(2u, next.endpoint().incarnation());
  }
  EXPECT_TRUE(prefixes.contains(8));
  EXPECT_GT(prefixes.size(), 3u) << testing::PrintToString(prefixes);
}

TEST(Simulator, AKilledEndpointDoesNothing) {
  FabricHarness cluster(FabricKind::kSim);
  Worker& victim = cluster.coordinator(0);
  VerbArena arena(victim.pool());
  auto* word = arena.allocate_array<uint64_t>(1);
  *word = 9;
  cluster.sim().kill(victim.id());
  const Verb verb{.opcode = Opcode::kWrite, .bytes = 8, .remote_offset = 64, .local = word};
  Completion completion;
  completion.outstanding = 1;
  victim.endpoint().ring(0, {&verb, 1}, &completion);
  EXPECT_TRUE(victim.endpoint().send(0, std::as_bytes(std::span<uint64_t>(word, 1))));
  EXPECT_FALSE(victim.endpoint().poll());
  EXPECT_FALSE(cluster.sim().run_until([] { return false; }, 1000));
  EXPECT_EQ(1u, completion.outstanding);
  EXPECT_EQ(0u, cluster.word_at(0, 64));
}

TEST(Simulator, AKilledNodeKeepsItsRegion) {
  for (bool unreachable : {false, true}) {
    HarnessOptions options;
    options.sim.dead_node_unreachable = unreachable;
    FabricHarness cluster(FabricKind::kSim, options);
    Worker& w = cluster.coordinator(0);
    std::memset(cluster.node(1).endpoint().local_region() + 64, 1, 8);
    cluster.sim().kill(1);
    cluster.stop(cluster.node(1));
    EXPECT_TRUE(cluster.fabric().departed().empty());  // node threads are never listed
    const auto read_status = [&] {
      Status status;
      cluster.run(w, [&] {
        VerbArena arena(w.pool());
        DoorbellBatch batch(w.scheduler(), w.counters());
        batch.read(GlobalAddress::make(1, 64), arena.allocate(8), 8);
        status = batch.execute();
      });
      return status.code();
    };
    EXPECT_EQ(unreachable ? Code::kUnavailable : Code::kOk, read_status());
    cluster.start_node(1);
    EXPECT_EQ(Code::kOk, read_status());
    EXPECT_EQ(2u, cluster.node(1).endpoint().incarnation());
    EXPECT_EQ(0x0101010101010101ull, cluster.word_at(1, 64));
  }
}

TEST(Simulator, UnregisteredBuffersAreProgrammerErrors) {
  testing::GTEST_FLAG(death_test_style) = "fast";
  FabricHarness cluster(FabricKind::kSim);
  uint64_t on_stack = 0;
  const Verb verb{.opcode = Opcode::kRead, .bytes = 8, .remote_offset = 0, .local = &on_stack};
  EXPECT_DEATH(cluster.coordinator(0).endpoint().ring(0, {&verb, 1}, nullptr), "registered");
}

}  // namespace
}  // namespace rdmacc
