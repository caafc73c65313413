#include <cstring>

#include "rdma/verbs/verbs_fabric.h"
#include "tests/fabric/fabric_harness.h"

// What the verbs fabric does beyond the contract: queues that are full, several queue pairs, rights
// of the region's parts, the fence, sleeping.

namespace rdmacc {
namespace {

HarnessOptions with_table() {
  HarnessOptions options;
  options.member_table = true;
  return options;
}

HarnessOptions small_queue() {
  HarnessOptions options = with_table();
  options.verbs.send_queue_depth = 16;
  return options;
}

// One READ of `words` words at `offset` of node 1.
Status read_words(Worker& worker, uint64_t offset, uint64_t* into, size_t words) {
  DoorbellBatch batch(worker.scheduler(), worker.counters());
  batch.read(GlobalAddress::make(1, offset), into, words * 8);
  return batch.execute();
}

Status write_word(Worker& worker, uint64_t offset, uint64_t* from) {
  DoorbellBatch batch(worker.scheduler(), worker.counters());
  batch.write(GlobalAddress::make(1, offset), from, 8);
  return batch.execute();
}

VerbsFabric::Usage usage_of(FabricHarness& cluster) {
  return dynamic_cast<VerbsFabric&>(cluster.fabric()).usage();
}

TEST(VerbsQueue, ChainsLongerThanTheQueueAreCarriedOutInOrder) {
  constexpr size_t kWrites = 1000;
  FabricHarness cluster(FabricKind::kVerbs, small_queue());
  Worker& w = cluster.coordinator(0);
  std::vector<std::pair<Worker*, std::function<void()>>> tasks;
  for (uint64_t coroutine = 0; coroutine < 4; ++coroutine) {
    tasks.emplace_back(&w, [&w, coroutine] {
      VerbArena arena(w.pool());
      auto* words = arena.allocate_array<uint64_t>(2 * kWrites);
      DoorbellBatch batch(w.scheduler(), w.counters());
      const GlobalAddress at = GlobalAddress::make(1, 8192 + 64 * coroutine);
      for (size_t i = 0; i < kWrites; ++i) {
        words[2 * i] = coroutine * kWrites + i + 1;
        batch.write(at, &words[2 * i], 8);
        if (i % 10 == 0) batch.read(at, &words[2 * i + 1], 8);
      }
      CHECK(batch.execute().ok());
      for (size_t i = 0; i < kWrites; i += 10) EXPECT_EQ(words[2 * i], words[2 * i + 1]);
    });
  }
  cluster.run(std::move(tasks));
  EXPECT_EQ(4 * kWrites, cluster.word_at(1, 8192 + 64 * 3));
  EXPECT_EQ(0u, usage_of(cluster).broken_connections);
}

TEST(VerbsQueue, PassiveChainsNeverFillTheQueue) {
  FabricHarness cluster(FabricKind::kVerbs, small_queue());
  Worker& w = cluster.coordinator(0);
  cluster.run(w, [&] {
    VerbArena arena(w.pool());
    auto* seen = arena.allocate_array<uint64_t>(501);
    DoorbellBatch batch(w.scheduler(), w.counters());
    for (int i = 0; i < 500; ++i) {
      batch.fetch_add(GlobalAddress::make(0, 64), 1, &seen[i]);
      batch.ring_unacknowledged();
    }
    batch.read(GlobalAddress::make(0, 64), &seen[500], 8);
    ASSERT_TRUE(batch.execute().ok());
    EXPECT_EQ(500u, seen[500]);
  });
}

TEST(VerbsQueue, PassiveChainsAreDoneWhenAWorkerLeaves) {
  FabricHarness cluster(FabricKind::kVerbs, small_queue());
  Worker& w = cluster.coordinator(0);
  cluster.run(w, [&] {
    auto* seen = reinterpret_cast<uint64_t*>(w.pool().take(1000 * 8));
    DoorbellBatch batch(w.scheduler(), w.counters());
    for (int i = 0; i < 1000; ++i) {
      batch.fetch_add(GlobalAddress::make(1, 64), 1, &seen[i]);
      batch.ring_unacknowledged();
    }
  });
  cluster.stop(w);
  EXPECT_EQ(1000u, cluster.word_at(1, 64));
}

TEST(VerbsQueue, SeveralQueuePairsKeepTheOrder) {
  HarnessOptions options = with_table();
  options.verbs.queue_pairs_per_node = 4;
  FabricHarness cluster(FabricKind::kVerbs, options);
  std::vector<std::pair<Worker*, std::function<void()>>> tasks;
  for (Worker* w : {&cluster.coordinator(0), &cluster.node(1)}) {
    for (uint64_t coroutine = 0; coroutine < 4; ++coroutine) {
      const uint64_t offset = 4096 + 512 * w->id() + 64 * coroutine;
      tasks.emplace_back(w, [w, offset] {
        VerbArena arena(w->pool());
        auto* words = arena.allocate_array<uint64_t>(401);
        DoorbellBatch batch(w->scheduler(), w->counters());
        for (uint64_t i = 1; i <= 200; ++i) {
          words[i] = i;
          batch.write(GlobalAddress::make(1, offset), &words[i], 8);
          batch.ring_unacknowledged();
          batch.fetch_add(GlobalAddress::make(1, 64), 1, &words[0]);
          batch.read(GlobalAddress::make(1, offset), &words[200 + i], 8);
          CHECK(batch.execute().ok());
          EXPECT_EQ(i, words[200 + i]);
        }
      });
    }
  }
  cluster.run(std::move(tasks));
  EXPECT_EQ(2u * 4 * 200, cluster.word_at(1, 64));
}

TEST(VerbsRegion, PeersHaveNoMoreRightsThanADomainGives) {
  HarnessOptions options = with_table();
  const uint64_t end = options.topology.region_bytes;
  options.verbs.domains = {
      {0, 4096, false, false}, {4096, 4096, true, false}, {8192, end - 8192, true, true}};
  FabricHarness cluster(FabricKind::kVerbs, options);
  Worker& w = cluster.coordinator(0);
  cluster.run(w, [&] {
    VerbArena arena(w.pool());
    auto* words = arena.allocate_array<uint64_t>(1024);
    words[0] = 1;
    EXPECT_TRUE(write_word(w, 4096, words).ok());
    EXPECT_TRUE(write_word(w, 8192, words).ok());
    EXPECT_EQ(Code::kUnavailable, write_word(w, 4088, words).code());
    // It was refused and the connection with it; the next chain makes a new one.
    ASSERT_TRUE(read_words(w, 0, words, 1024).ok());  // through two domains
    EXPECT_EQ(0u, words[511]);
    EXPECT_EQ(1u, words[512]);
    DoorbellBatch batch(w.scheduler(), w.counters());
    batch.fetch_add(GlobalAddress::make(1, 4096), 1, &words[1]);
    EXPECT_FALSE(batch.execute().ok());
    batch.fetch_add(GlobalAddress::make(1, 8192), 1, &words[1]);
    EXPECT_TRUE(batch.execute().ok());
  });
  EXPECT_EQ(0u, cluster.word_at(1, 4088));
  EXPECT_EQ(1u, cluster.word_at(1, 4096));
  EXPECT_EQ(2u, cluster.word_at(1, 8192));
  EXPECT_EQ(2u, usage_of(cluster).broken_connections);
}

// The chain that breaks takes those behind it along; each is told once.
TEST(VerbsErrors, EveryChainOfABrokenConnectionFailsOnce) {
  HarnessOptions options = with_table();
  options.verbs.domains = {{0, 4096, false, false},
                           {4096, options.topology.region_bytes - 4096, true, true}};
  options.verbs.send_queue_depth = 16;
  FabricHarness cluster(FabricKind::kVerbs, options);
  Worker& w = cluster.coordinator(0);
  Endpoint& endpoint = w.endpoint();
  VerbArena arena(w.pool());
  auto* words = arena.allocate_array<uint64_t>(64);
  std::vector<Completion> completions(50);
  for (size_t i = 0; i < completions.size(); ++i) {
    completions[i].outstanding = 1;
    const Verb verb{
        .opcode = Opcode::kWrite, .bytes = 8, .remote_offset = i == 5 ? 0u : 4096u, .local = words};
    endpoint.ring(1, {&verb, 1}, &completions[i]);
  }
  ASSERT_TRUE(cluster.run_until([&] {
    for (const Completion& each : completions) {
      if (each.outstanding != 0) return false;
    }
    return true;
  }));
  for (size_t i = 0; i < completions.size(); ++i) EXPECT_EQ(i >= 5, completions[i].failed) << i;
}

TEST(VerbsErrors, ADeadWorkersVerbsEndBeforeItIsNamed) {
  FabricHarness cluster(FabricKind::kVerbs, with_table());
  Worker& victim = cluster.coordinator(0);
  const WorkerId id = victim.id();
  const uint32_t incarnation = victim.endpoint().incarnation();
  VerbArena arena(victim.pool());
  auto* seen = arena.allocate_array<uint64_t>(1);
  DoorbellBatch batch(victim.scheduler(), victim.counters());
  const auto add_often = [&] {
    for (int i = 0; i < 100; ++i) {
      batch.fetch_add(GlobalAddress::make(1, 64), 1, seen);
      batch.ring_unacknowledged();
    }
  };
  add_often();
  cluster.members().kill(id);
  const uint64_t then = cluster.word_at(1, 64);
  add_often();
  Completion completion;
  completion.outstanding = 1;
  const Verb verb{
      .opcode = Opcode::kFetchAdd, .bytes = 8, .remote_offset = 64, .local = seen, .operand = 1};
  victim.endpoint().ring(1, {&verb, 1}, &completion);
  ASSERT_TRUE(cluster.run_until([&] { return completion.outstanding == 0; }));
  EXPECT_TRUE(completion.failed);
  EXPECT_EQ(then, cluster.word_at(1, 64));
  EXPECT_EQ(0u, cluster.node(1).endpoint().incarnation_of(id));
  EXPECT_EQ(std::vector<WorkerId>{id}, cluster.fabric().departed());
  // It does not get in again, and its id has another owner once it is released.
  victim.endpoint().ring(1, {&verb, 1}, &(completion = Completion{.outstanding = 1}));
  ASSERT_TRUE(cluster.run_until([&] { return completion.outstanding == 0; }));
  EXPECT_TRUE(completion.failed);
  cluster.fabric().release(id);
  Worker& next = cluster.start_coordinator();
  EXPECT_EQ(id, next.id());
  EXPECT_GT(next.endpoint().incarnation(), incarnation);
  cluster.run(next, [&] {
    VerbArena own(next.pool());
    EXPECT_TRUE(read_words(next, 64, own.allocate_array<uint64_t>(1), 1).ok());
  });
  EXPECT_EQ(then, cluster.word_at(1, 64));
}

// However it sleeps, what arrives ends the sleep, and is seen by the next poll().
TEST(VerbsSleep, CompletionsDatagramsAndWakesEndIt) {
  constexpr uint64_t kLongUs = 50'000'000;
  HarnessOptions options = with_table();
  options.verbs.wait_us_max = kLongUs;
  FabricHarness cluster(FabricKind::kVerbs, options);
  Endpoint& endpoint = cluster.coordinator(0).endpoint();
  VerbArena arena(cluster.coordinator(0).pool());
  Completion completion;
  completion.outstanding = 1;
  const Verb verb{.opcode = Opcode::kRead, .bytes = 8, .local = arena.allocate(8)};
  endpoint.ring(1, {&verb, 1}, &completion);
  for (int i = 0; i < 1000 && completion.outstanding != 0; ++i) {
    endpoint.wait(endpoint.now_us() + kLongUs);
    endpoint.poll();
  }
  EXPECT_EQ(0u, completion.outstanding);

  size_t got = 0;
  endpoint.set_datagram_handler(
      [&](WorkerId, std::span<const std::byte> bytes) { got += bytes.size(); });
  // Its first word to a node tells where it is to be answered; then the node has an answer.
  const std::byte one[1] = {std::byte{1}};
  ASSERT_TRUE(cluster.node(1).endpoint().send(endpoint.worker(), one));
  for (int i = 0; i < 1000 && got == 0; ++i) {
    endpoint.wait(endpoint.now_us() + kLongUs);
    endpoint.poll();
  }
  EXPECT_EQ(1u, got);
  endpoint.wake();
  endpoint.wait(endpoint.now_us() + kLongUs);  // a test that hangs here fails
}

TEST(VerbsOptions, ThoseOutOfRangeAreRefused) {
  ClusterConfig config;
  config.name = unique_cluster();
  MemberTable members(config);
  const auto refusal = [&](const VerbsOptions& wrong) {
    return VerbsFabric::open(std::move(*members.join()), wrong).status().code();
  };
  VerbsOptions options;
  options.retry_count = 7;
  EXPECT_EQ(Code::kInvalidArgument, refusal(options));
  options = VerbsOptions();
  options.timeout_exponent = 0;
  EXPECT_EQ(Code::kInvalidArgument, refusal(options));
  options = VerbsOptions();
  options.device = "nothing0";
  EXPECT_EQ(Code::kUnavailable, refusal(options));
  options = VerbsOptions();
  options.gid_index = 200;
  EXPECT_EQ(Code::kUnavailable, refusal(options));
}

}  // namespace
}  // namespace rdmacc
