#include <cstring>
#include <set>

#include "tests/fabric/fabric_harness.h"

// What every fabric promises (F1-F6 in rdma/fabric/fabric.h).

namespace rdmacc {
namespace {

class FabricContract : public testing::TestWithParam<FabricKind> {
 protected:
  FabricHarness cluster{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Fabrics, FabricContract, testing::ValuesIn(every_fabric()),
                         fabric_kind_name);

TEST_P(FabricContract, WriteReachesRegionAndReadReturnsIt) {
  Worker& w = cluster.coordinator(0);
  cluster.run(w, [&] {
    VerbArena arena(w.pool());
    auto* out = arena.allocate_array<uint64_t>(32);
    auto* in = arena.allocate_array<uint64_t>(32);
    for (uint64_t i = 0; i < 32; ++i) out[i] = i * i + 1;
    DoorbellBatch batch(w.scheduler(), w.counters());
    batch.write(GlobalAddress::make(1, 4096), out, 256);
    ASSERT_TRUE(batch.execute().ok());
    batch.read(GlobalAddress::make(1, 4096), in, 256, WordOrder::kDescending);
    ASSERT_TRUE(batch.execute().ok());
    EXPECT_EQ(0, std::memcmp(in, out, 256));
  });
  EXPECT_EQ(1u, cluster.word_at(1, 4096));
  EXPECT_EQ(31u * 31 + 1, cluster.word_at(1, 4096 + 31 * 8));
  EXPECT_EQ(0u, cluster.word_at(0, 4096));
}

TEST_P(FabricContract, CompareSwapChangesOnlyTheExpectedValue) {
  Worker& w = cluster.coordinator(0);
  cluster.run(w, [&] {
    VerbArena arena(w.pool());
    auto* seen = arena.allocate_array<uint64_t>(2);
    DoorbellBatch batch(w.scheduler(), w.counters());
    batch.compare_swap(GlobalAddress::make(0, 64), 0, 7, &seen[0]);
    batch.compare_swap(GlobalAddress::make(0, 64), 0, 8, &seen[1]);
    ASSERT_TRUE(batch.execute().ok());
    EXPECT_EQ(0u, seen[0]);
    EXPECT_EQ(7u, seen[1]);
  });
  EXPECT_EQ(7u, cluster.word_at(0, 64));
}

TEST_P(FabricContract, ChainToOneNodeExecutesInOrder) {
  Worker& w = cluster.coordinator(0);
  cluster.run(w, [&] {
    VerbArena arena(w.pool());
    auto* words = arena.allocate_array<uint64_t>(6);
    words[0] = 5;
    words[1] = 50;
    DoorbellBatch batch(w.scheduler(), w.counters());
    const GlobalAddress at = GlobalAddress::make(1, 128);
    batch.write(at, &words[0], 8);
    batch.read(at, &words[2], 8);
    batch.fetch_add(at, 2, &words[3]);
    batch.write(at, &words[1], 8);
    batch.read(at, &words[4], 8);
    ASSERT_TRUE(batch.execute().ok());
    EXPECT_EQ(5u, words[2]);
    EXPECT_EQ(5u, words[3]);
    EXPECT_EQ(50u, words[4]);
  });
}

TEST_P(FabricContract, ChainsToOneNodeExecuteInTheOrderOfTheirDoorbells) {
  Worker& w = cluster.coordinator(0);
  cluster.run(w, [&] {
    VerbArena arena(w.pool());
    auto* words = arena.allocate_array<uint64_t>(101);
    DoorbellBatch batch(w.scheduler(), w.counters());
    for (uint64_t i = 0; i < 100; ++i) {
      words[i] = i + 1;
      batch.write(GlobalAddress::make(1, 256), &words[i], 8);
      batch.ring_unacknowledged();
    }
    batch.read(GlobalAddress::make(1, 256), &words[100], 8);
    ASSERT_TRUE(batch.execute().ok());
    EXPECT_EQ(100u, words[100]);
  });
}

TEST_P(FabricContract, AtomicsOfSeveralInitiatorsCountExactly) {
  constexpr int kRounds = 500;
  std::vector<std::pair<Worker*, std::function<void()>>> tasks;
  for (Worker* w : {&cluster.coordinator(0), &cluster.coordinator(1), &cluster.node(0)}) {
    for (int coroutine = 0; coroutine < 3; ++coroutine) {
      tasks.emplace_back(w, [w] {
        VerbArena arena(w->pool());
        auto* seen = arena.allocate_array<uint64_t>(2);
        DoorbellBatch batch(w->scheduler(), w->counters());
        for (int i = 0; i < kRounds; ++i) {
          batch.fetch_add(GlobalAddress::make(0, 512), 3, &seen[0]);
          CHECK(batch.execute().ok());
          // The same by compare-and-swap, as often as it takes.
          uint64_t expected = 0;
          for (;;) {
            batch.compare_swap(GlobalAddress::make(0, 520), expected, expected + 1, &seen[1]);
            CHECK(batch.execute().ok());
            if (seen[1] == expected) break;
            expected = seen[1];
          }
        }
      });
    }
  }
  cluster.run(std::move(tasks));
  EXPECT_EQ(9u * kRounds * 3, cluster.word_at(0, 512));
  EXPECT_EQ(9u * kRounds, cluster.word_at(0, 520));
}

TEST_P(FabricContract, DoorbellBatchToTwoNodesIsOneRoundTrip) {
  Worker& w = cluster.coordinator(0);
  VerbCounters counters;
  cluster.run(w, [&] {
    VerbArena arena(w.pool());
    auto* words = arena.allocate_array<uint64_t>(4);
    DoorbellBatch batch(w.scheduler(), counters);
    EXPECT_TRUE(batch.empty());
    batch.read(GlobalAddress::make(0, 0), &words[0], 8);
    batch.write(GlobalAddress::make(1, 8), &words[1], 8);
    batch.fetch_add(GlobalAddress::make(0, 64), 1, &words[2]);
    EXPECT_FALSE(batch.empty());
    EXPECT_TRUE(batch.execute().ok());
    EXPECT_TRUE(batch.empty());
    EXPECT_TRUE(batch.execute().ok());  // no-op
  });
  EXPECT_EQ(1u, counters.round_trips);
  EXPECT_EQ(2u, counters.doorbells);
  EXPECT_EQ(1u, counters.reads);
  EXPECT_EQ(1u, counters.writes);
  EXPECT_EQ(1u, counters.atomics);
}

TEST_P(FabricContract, CompletionIsSignalledOnceFromPoll) {
  Worker& w = cluster.coordinator(0);
  VerbArena arena(w.pool());
  auto* word = arena.allocate_array<uint64_t>(1);
  Completion completion;
  completion.outstanding = 2;
  const Verb verb{.opcode = Opcode::kRead, .bytes = 8, .remote_offset = 0, .local = word};
  w.endpoint().ring(0, {&verb, 1}, &completion);
  w.endpoint().ring(1, {&verb, 1}, &completion);
  EXPECT_EQ(2u, completion.outstanding);  // nothing happens but in poll()
  ASSERT_TRUE(cluster.run_until([&] { return completion.outstanding == 0; }));
  EXPECT_FALSE(completion.failed);
}

TEST_P(FabricContract, DatagramsArriveUnaltered) {
  Endpoint& from = cluster.coordinator(0).endpoint();
  Endpoint& to = cluster.node(1).endpoint();
  std::multiset<std::string> sent, received;
  to.set_datagram_handler([&](WorkerId sender, std::span<const std::byte> datagram) {
    EXPECT_EQ(from.worker(), sender);
    received.emplace(reinterpret_cast<const char*>(datagram.data()), datagram.size());
  });
  for (size_t bytes : {1u, 7u, 8u, 100u, 4095u, 4096u}) {
    std::string text(bytes, static_cast<char>('a' + bytes % 26));
    sent.insert(text);
    ASSERT_TRUE(from.send(to.worker(), std::as_bytes(std::span<const char>(text))));
  }
  ASSERT_TRUE(cluster.run_until([&] { return received.size() == sent.size(); }));
  EXPECT_EQ(sent, received);
  EXPECT_GE(cluster.fabric().capabilities().max_datagram_bytes, 4096u);
}

TEST_P(FabricContract, VerbsToANodeThatNeverJoinedFail) {
  HarnessOptions options;
  options.topology.nodes = 3;
  options.nodes_down = 1;
  FabricHarness partial(GetParam(), options);
  Worker& worker = partial.coordinator(0);
  Status status;
  partial.run(worker, [&] {
    VerbArena arena(worker.pool());
    DoorbellBatch batch(worker.scheduler(), worker.counters());
    batch.read(GlobalAddress::make(2, 0), arena.allocate(8), 8);
    status = batch.execute();
  });
  EXPECT_EQ(Code::kUnavailable, status.code());
}

TEST_P(FabricContract, IncarnationsGrowAndTheDeadHaveNone) {
  Endpoint& watcher = cluster.node(0).endpoint();
  Worker& first = cluster.start_coordinator();
  const WorkerId id = first.id();
  const uint32_t incarnation = first.endpoint().incarnation();
  EXPECT_NE(0u, incarnation);
  EXPECT_EQ(incarnation, watcher.incarnation_of(id));
  cluster.stop(first);
  EXPECT_EQ(0u, watcher.incarnation_of(id));
  Worker& second = cluster.start_coordinator();
  EXPECT_EQ(id, second.id());
  EXPECT_GT(second.endpoint().incarnation(), incarnation);
  EXPECT_EQ(second.endpoint().incarnation(), watcher.incarnation_of(id));
  EXPECT_TRUE(cluster.fabric_of(0).departed().empty());  // it left in order
}

TEST_P(FabricContract, RegionOutlivesItsNode) {
  Worker& w = cluster.coordinator(0);
  std::memset(cluster.node(1).endpoint().local_region() + 64, 0x5A, 8);
  const uint32_t incarnation = cluster.node(1).endpoint().incarnation();
  cluster.stop(cluster.node(1));
  Worker& again = cluster.start_node(1);
  EXPECT_EQ(0x5A5A5A5A5A5A5A5Aull, cluster.word_at(1, 64));
  EXPECT_EQ(incarnation + 1, again.endpoint().incarnation());
  EXPECT_EQ(nullptr, w.endpoint().local_region());
}

TEST_P(FabricContract, SlotsAreBoundedAndUsedAgain) {
  std::vector<Worker*> joined;
  for (int i = 0; i < 12; ++i) joined.push_back(&cluster.start_coordinator());
  const auto refused = cluster.fabric().join();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(Code::kNoWorkerSlot, refused.status().code());
  cluster.stop(*joined[5]);
  EXPECT_TRUE(cluster.fabric().join().ok());
  EXPECT_FALSE(cluster.fabric().join_as_node(0, 0).ok());  // it is running
}

TEST_P(FabricContract, RegionIsBackedUpToItsEnd) {
  Endpoint& node = cluster.node(0).endpoint();
  const uint64_t bytes = cluster.fabric().topology().region_bytes;
  EXPECT_TRUE(node.back_region(0, bytes).ok());
  EXPECT_TRUE(node.back_region(4096, 8).ok());
  EXPECT_EQ(Code::kNoSpace, node.back_region(bytes - 8, 16).code());
  EXPECT_EQ(Code::kNoSpace, node.back_region(UINT64_MAX - 7, 16).code());
}

TEST_P(FabricContract, ClockIsSharedAndDoesNotStepBack) {
  Endpoint& a = cluster.coordinator(0).endpoint();
  Endpoint& b = cluster.node(0).endpoint();
  uint64_t last_us = a.now_us();
  for (int i = 0; i < 1000; ++i) {
    const uint64_t now_us = (i % 2 == 0 ? a : b).now_us();
    EXPECT_GE(now_us, last_us);
    last_us = now_us;
  }
}

TEST_P(FabricContract, RegisteredMemoryIsZeroedAndAligned) {
  Endpoint& endpoint = cluster.coordinator(0).endpoint();
  Result<std::byte*> memory = endpoint.allocate_registered(1000);
  ASSERT_TRUE(memory.ok());
  EXPECT_EQ(0u, reinterpret_cast<uintptr_t>(*memory) % kCacheLineBytes);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(std::byte{0}, (*memory)[i]);
}

TEST_P(FabricContract, VerbsBeyondTheRegionAreProgrammerErrors) {
  testing::GTEST_FLAG(death_test_style) = "fast";
  Endpoint& endpoint = cluster.coordinator(0).endpoint();
  Result<std::byte*> memory = endpoint.allocate_registered(64);
  const uint64_t end = cluster.fabric().topology().region_bytes;
  Verb verb{.opcode = Opcode::kRead, .bytes = 16, .remote_offset = end - 8, .local = *memory};
  EXPECT_DEATH(endpoint.ring(0, {&verb, 1}, nullptr), "CHECK");
  verb.remote_offset = UINT64_MAX - 7;
  EXPECT_DEATH(endpoint.ring(0, {&verb, 1}, nullptr), "CHECK");
  verb.remote_offset = 4;
  EXPECT_DEATH(endpoint.ring(0, {&verb, 1}, nullptr), "CHECK");
  verb.remote_offset = 0;
  EXPECT_DEATH(endpoint.ring(9, {&verb, 1}, nullptr), "CHECK");
}

}  // namespace
}  // namespace rdmacc
