#include "rdma/tcp/tcp_fabric.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "tests/fabric/fabric_harness.h"

// What only the tcp fabric has: processes that die or stand still, fences, connections that end.

namespace rdmacc {
namespace {

constexpr MethodId kEcho = 1;
const Topology kTopology{
    .nodes = 2, .threads_per_node = 1, .workers_max = 8, .region_bytes = 4 << 20};

// One coordinator in this process.
struct Coordinator {
  explicit Coordinator(const ClusterConfig& config, TcpOptions options = {})
      : fabric(std::move(*TcpFabric::open(config, options))), worker(std::move(*fabric->join())) {}

  bool until(const std::function<bool()>& done) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    worker.scheduler().run_until([&] { return done() || std::chrono::steady_clock::now() > end; });
    return done();
  }
  Status run(const std::function<Status()>& task) {
    Status status;
    bool ended = false;
    CHECK(worker.scheduler().spawn([&] {
      status = task();
      ended = true;
    }));
    CHECK(until([&] { return ended; }));
    return status;
  }
  Status add(NodeId node, uint64_t offset, uint64_t addend, uint64_t* seen = nullptr) {
    return run([&] {
      VerbArena arena(worker.pool());
      auto* word = arena.allocate_array<uint64_t>(1);
      DoorbellBatch batch(worker.scheduler(), worker.counters());
      batch.fetch_add(GlobalAddress::make(node, offset), addend, word);
      const Status status = batch.execute();
      if (seen != nullptr) *seen = *word;
      return status;
    });
  }
  Status write(NodeId node, uint64_t offset, const std::vector<uint64_t>& words) {
    return run([&] {
      VerbArena arena(worker.pool());
      auto* local = arena.allocate_array<uint64_t>(words.size());
      std::memcpy(local, words.data(), words.size() * 8);
      DoorbellBatch batch(worker.scheduler(), worker.counters());
      batch.write(GlobalAddress::make(node, offset), local, words.size() * 8);
      return batch.execute();
    });
  }

  std::unique_ptr<TcpFabric> fabric;
  Worker worker;
};

class Tcp : public testing::Test {
 protected:
  void SetUp() override {
    loopback = std::move(*LoopbackCluster::make(unique_cluster(), kTopology));
    for (NodeId node = 0; node < kTopology.nodes; ++node) nodes[node] = start_node(node);
    Coordinator c(config());
    ASSERT_TRUE(c.until([&] {
      Endpoint& endpoint = c.worker.endpoint();
      return endpoint.incarnation_of(0) != 0 && endpoint.incarnation_of(1) != 0;
    }));
  }
  void TearDown() override {
    for (const pid_t child : children) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
    TcpFabric::destroy(config());
  }
  const ClusterConfig& config() const { return loopback->config(); }

  // Runs `body` in another process.
  pid_t start_child(const std::function<void()>& body) {
    const pid_t child = fork();
    if (child == 0) {
      signal(SIGPIPE, SIG_IGN);  // as the programs do
      alarm(60);                 // whatever happens, it does not stay
      body();
      _exit(0);
    }
    children.push_back(child);
    return child;
  }
  pid_t start_node(NodeId node) {
    return start_child([this, node] {
      auto fabric = TcpFabric::open_as_node(config(), node);
      if (!fabric.ok()) _exit(2);
      Worker worker(std::move(*(*fabric)->join_as_node(node, 0)));
      CHECK(worker.endpoint().back_region(0, kTopology.region_bytes).ok());
      worker.rpc().handle(kEcho,
                          [](WorkerId, std::span<const std::byte> request, Rpc::Bytes& reply) {
                            reply.assign(request.begin(), request.end());
                            return Status();
                          });
      // What node 0 does with departed workers, without looking at logs.
      while (true) {
        worker.scheduler().run_until([until = worker.endpoint().now_us() + 20'000, &worker] {
          return worker.endpoint().now_us() >= until;
        });
        for (const WorkerId dead : (*fabric)->departed()) (*fabric)->release(dead);
      }
    });
  }
  void kill_child(pid_t child) {
    ASSERT_EQ(0, kill(child, SIGKILL));
    ASSERT_EQ(child, waitpid(child, nullptr, 0));
    std::erase(children, child);
  }

  // Node 1 has died: starts it again, until `each` knows the new one.
  void start_again(std::initializer_list<Coordinator*> each) {
    nodes[1] = start_node(1);
    for (Coordinator* c : each) {
      ASSERT_TRUE(c->until([&] { return c->worker.endpoint().incarnation_of(1) == 2; }));
    }
  }

  std::unique_ptr<LoopbackCluster> loopback;
  pid_t nodes[2] = {};
  std::vector<pid_t> children;
};

TEST_F(Tcp, LongChainsAreCutAndStayInOrder) {
  Coordinator c(config());
  std::vector<uint64_t> words(200'000);  // more than a segment
  for (size_t i = 0; i < words.size(); ++i) words[i] = i * 7 + 1;
  ASSERT_TRUE(c.write(1, 4096, words).ok());
  const Status status = c.run([&] {
    VerbArena arena(c.worker.pool());
    const size_t bytes = words.size() * 8;
    auto* up = arena.allocate_array<uint64_t>(words.size());
    auto* down = arena.allocate_array<uint64_t>(words.size());
    auto* small = arena.allocate_array<uint64_t>(3'000);
    DoorbellBatch batch(c.worker.scheduler(), c.worker.counters());
    batch.read(GlobalAddress::make(1, 4096), up, bytes);
    batch.read(GlobalAddress::make(1, 4096), down, bytes, WordOrder::kDescending);
    // More verbs than a frame has, each of which sees the one before.
    for (uint64_t i = 0; i < 3'000; ++i) batch.fetch_add(GlobalAddress::make(1, 8), 1, &small[i]);
    RDMACC_RETURN_IF_ERROR(batch.execute());
    EXPECT_EQ(0, std::memcmp(up, words.data(), bytes));
    EXPECT_EQ(0, std::memcmp(down, words.data(), bytes));
    for (uint64_t i = 0; i < 3'000; ++i) EXPECT_EQ(i, small[i]);
    return Status();
  });
  EXPECT_TRUE(status.ok()) << status.to_string();
}

TEST_F(Tcp, AKilledCoordinatorDepartsAndItsIdIsUsedAgain) {
  int fds[2];
  ASSERT_EQ(0, pipe(fds));
  const pid_t child = start_child([&] {
    Coordinator own(config());
    CHECK(own.add(0, 64, 1).ok() && own.add(1, 64, 1).ok());
    const WorkerId id = own.worker.id();
    CHECK(write(fds[1], &id, sizeof(id)) == sizeof(id));
    pause();
  });
  WorkerId id = 0;
  ASSERT_EQ(ssize_t{sizeof(id)}, read(fds[0], &id, sizeof(id)));
  close(fds[0]);
  close(fds[1]);
  Coordinator watcher(config());
  const uint32_t before = watcher.worker.endpoint().incarnation_of(id);
  EXPECT_NE(0u, before);
  kill_child(child);
  ASSERT_TRUE(watcher.until([&] { return watcher.worker.endpoint().incarnation_of(id) == 0; }));
  // Node 0 releases it at its next look.
  for (int i = 0; i < 200; ++i) {
    Coordinator next(config());
    if (next.worker.id() == id) {
      EXPECT_GT(next.worker.endpoint().incarnation(), before);
      return;
    }
    usleep(20'000);
  }
  FAIL() << "the id of the dead was never given out again";
}

TEST_F(Tcp, AKilledNodeFailsChainsAndServesAgainWithItsRows) {
  Coordinator c(config());
  ASSERT_TRUE(c.add(1, 128, 5).ok());
  kill_child(nodes[1]);
  ASSERT_TRUE(c.until([&] { return c.worker.endpoint().incarnation_of(1) == 0; }));
  EXPECT_EQ(Code::kUnavailable, c.add(1, 128, 1).code());
  EXPECT_TRUE(c.add(0, 128, 1).ok());  // the other one is not concerned
  start_again({&c});
  uint64_t seen = 0;
  ASSERT_TRUE(c.add(1, 128, 1, &seen).ok());
  EXPECT_EQ(5u, seen);
}

TEST_F(Tcp, ANodeThatDiesUnderAChainFailsItInBoundedTime) {
  Coordinator c(config());
  ASSERT_TRUE(c.add(1, 128, 5).ok());
  ASSERT_EQ(0, kill(nodes[1], SIGSTOP));
  Status status;
  bool ended = false;
  ASSERT_TRUE(c.worker.scheduler().spawn([&] {
    VerbArena arena(c.worker.pool());
    DoorbellBatch batch(c.worker.scheduler(), c.worker.counters());
    batch.read(GlobalAddress::make(1, 128), arena.allocate(8), 8);
    status = batch.execute();
    ended = true;
  }));
  for (int i = 0; i < 100; ++i) c.worker.scheduler().step();
  EXPECT_FALSE(ended);
  kill_child(nodes[1]);
  ASSERT_TRUE(c.until([&] { return ended; }));
  EXPECT_EQ(Code::kUnavailable, status.code());
}

TEST_F(Tcp, AStoppedNodeFailsChainsAndNothingOfThemHappensLater) {
  Coordinator c(config(), {.chain_us_max = 300'000, .dial_us_max = 300'000});
  ASSERT_TRUE(c.add(1, 128, 5).ok());
  ASSERT_EQ(0, kill(nodes[1], SIGSTOP));
  EXPECT_EQ(Code::kUnavailable, c.add(1, 128, 100).code());
  EXPECT_EQ(Code::kUnavailable, c.add(1, 128, 100).code());
  ASSERT_EQ(0, kill(nodes[1], SIGCONT));
  Status status;
  uint64_t seen = 0;
  for (int i = 0; i < 100; ++i) {
    status = c.add(1, 128, 0, &seen);
    if (status.ok()) break;
  }
  ASSERT_TRUE(status.ok()) << status.to_string();
  // The chain that failed had arrived there: it was carried out before this one, or never is.
  EXPECT_TRUE(seen == 5 || seen == 105) << seen;
  usleep(200'000);
  uint64_t later = 0;
  ASSERT_TRUE(c.add(1, 128, 0, &later).ok());
  EXPECT_EQ(seen, later);
}

TEST_F(Tcp, MembersOutliveARestartOfNode0) {
  Coordinator c(config());
  ASSERT_TRUE(c.add(0, 64, 3).ok());
  ASSERT_TRUE(c.add(1, 64, 4).ok());
  const uint32_t incarnation = c.worker.endpoint().incarnation();
  kill_child(nodes[0]);
  ASSERT_TRUE(c.until([&] { return c.worker.endpoint().incarnation_of(0) == 0; }));
  EXPECT_TRUE(c.add(1, 64, 1).ok());  // goes on meanwhile
  nodes[0] = start_node(0);
  ASSERT_TRUE(c.until([&] { return c.worker.endpoint().incarnation_of(0) == 2; }));
  EXPECT_EQ(incarnation, c.worker.endpoint().incarnation_of(c.worker.id()));
  EXPECT_EQ(1u, c.worker.endpoint().incarnation_of(1));
  uint64_t seen = 0;
  ASSERT_TRUE(c.add(0, 64, 1, &seen).ok());
  EXPECT_EQ(3u, seen);
  Coordinator other(config());
  EXPECT_NE(c.worker.id(), other.worker.id());
}

TEST_F(Tcp, OneNodeIsOneProcess) {
  const auto second = TcpFabric::open_as_node(config(), 1);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(Code::kUnavailable, second.status().code());
}

TEST_F(Tcp, UnacknowledgedWritesHappenAlsoWhenTheirWorkerLeaves) {
  {
    Coordinator c(config());
    VerbArena arena(c.worker.pool());
    auto* word = arena.allocate_array<uint64_t>(1);
    *word = 77;
    DoorbellBatch batch(c.worker.scheduler(), c.worker.counters());
    batch.write(GlobalAddress::make(1, 64), word, 8);
    batch.ring_unacknowledged();
  }
  Coordinator c(config());
  uint64_t seen = 0;
  ASSERT_TRUE(c.add(1, 64, 0, &seen).ok());
  EXPECT_EQ(77u, seen);
}

TEST_F(Tcp, UnacknowledgedWritesSurviveARestartOfTheirNode) {
  Coordinator c(config());
  ASSERT_TRUE(c.add(1, 64, 0).ok());
  ASSERT_EQ(0, kill(nodes[1], SIGSTOP));
  VerbArena arena(c.worker.pool());
  auto* word = arena.allocate_array<uint64_t>(1);
  *word = 78;
  DoorbellBatch batch(c.worker.scheduler(), c.worker.counters());
  batch.write(GlobalAddress::make(1, 64), word, 8);
  batch.ring_unacknowledged();
  for (int i = 0; i < 10; ++i) c.worker.scheduler().step();
  kill_child(nodes[1]);
  start_again({&c});
  uint64_t seen = 0;
  ASSERT_TRUE(c.add(1, 64, 0, &seen).ok());
  EXPECT_EQ(78u, seen);
}

// What an unacknowledged WRITE has unlocked may be another's when it is posted again.
TEST_F(Tcp, UnacknowledgedWritesHappenOnce) {
  Coordinator c(config()), other(config());
  ASSERT_TRUE(c.add(1, 64, 5).ok());
  VerbArena arena(c.worker.pool());
  auto* word = arena.allocate_array<uint64_t>(1);
  *word = 0;
  DoorbellBatch batch(c.worker.scheduler(), c.worker.counters());
  batch.write(GlobalAddress::make(1, 64), word, 8);
  batch.ring_unacknowledged();
  uint64_t seen = 5;
  for (int i = 0; i < 2000 && seen != 0; ++i) {
    c.worker.scheduler().step();
    ASSERT_TRUE(other.add(1, 64, 0, &seen).ok());
  }
  ASSERT_EQ(0u, seen);
  ASSERT_TRUE(other.add(1, 64, 9).ok());
  kill_child(nodes[1]);
  start_again({&c, &other});
  ASSERT_TRUE(c.add(1, 128, 0).ok());
  ASSERT_TRUE(other.add(1, 64, 0, &seen).ok());
  EXPECT_EQ(9u, seen);
}

TEST_F(Tcp, ASleeperWakesForAnswersAndSignals) {
  Coordinator c(config());
  ASSERT_TRUE(c.add(1, 64, 1).ok());
  // From another thread, as the only thing that one may do.
  std::atomic<bool> woken = false;
  std::thread waker([&] {
    usleep(20'000);
    woken = true;
    c.worker.endpoint().wake();
  });
  const uint64_t before_us = c.worker.endpoint().now_us();
  while (!woken) c.worker.endpoint().wait(before_us + 60'000'000);
  waker.join();
  EXPECT_LT(c.worker.endpoint().now_us() - before_us, 20'000'000u);
}

}  // namespace
}  // namespace rdmacc
