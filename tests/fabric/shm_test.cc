#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "rdma/shm/shm_control.h"
#include "tests/fabric/child_processes.h"
#include "tests/fabric/fabric_harness.h"

// What only the shm fabric has: objects, modes, rings, futex sleep, and processes that die.

namespace rdmacc {
namespace {

constexpr MethodId kEcho = 1;
const Topology kTopology{
    .nodes = 2, .threads_per_node = 1, .workers_max = 8, .region_bytes = 4 << 20};

class Shm : public testing::Test {
 protected:
  void SetUp() override { fabric = std::move(*ShmFabric::create(name, kTopology)); }
  void TearDown() override {
    children.kill_all();
    fabric.reset();
    ShmFabric::destroy(name);
    EXPECT_FALSE(ShmFabric::exists(name));
  }

  // Runs `body` in another process, which attaches for itself.
  pid_t start_child(const std::function<void(ShmFabric&)>& body) {
    return children.start(20, [this, &body] {
      auto attached = ShmFabric::attach(name);
      if (!attached.ok()) _exit(2);
      body(**attached);
    });
  }
  void kill_child(pid_t child) { children.kill_child(child); }

  const std::string name = unique_cluster();
  std::unique_ptr<ShmFabric> fabric;
  ChildProcesses children;
};

Status echo(WorkerId, std::span<const std::byte> request, Rpc::Bytes& reply) {
  reply.assign(request.begin(), request.end());
  return Status();
}

// A node's life in a child process: serves until it is killed.
void serve(ShmFabric& fabric, NodeId node) {
  Worker worker(std::move(*fabric.join_as_node(node, 0)));
  worker.rpc().handle(kEcho, echo);
  worker.scheduler().run_until([] { return false; });
}

bool wait_for(const std::function<bool()>& done) {
  for (int i = 0; i < 10'000; ++i) {
    if (done()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

void run_in(Worker& worker, std::function<void()> task) {
  bool ended = false;
  CHECK(worker.scheduler().spawn([&] {
    task();
    ended = true;
  }));
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  worker.scheduler().run_until([&] { return ended || std::chrono::steady_clock::now() > until; });
  CHECK(ended);
}

TEST_F(Shm, ObjectsBelongToTheUserAlone) {
  auto node = fabric->join_as_node(0, 0);
  ASSERT_TRUE(node.ok());
  for (const std::string& object : {shm_control_name(name), shm_region_name(name, 0)}) {
    struct stat attributes;
    ASSERT_EQ(0, stat(("/dev/shm" + object).c_str(), &attributes));
    EXPECT_EQ(0600u, attributes.st_mode & 07777);
    EXPECT_EQ(geteuid(), attributes.st_uid);
  }
  ASSERT_EQ(0, chmod(("/dev/shm" + shm_control_name(name)).c_str(), 0644));
  const auto refused = ShmFabric::attach(name);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(Code::kInvalidArgument, refused.status().code());
  ASSERT_EQ(0, chmod(("/dev/shm" + shm_control_name(name)).c_str(), 0600));
  EXPECT_TRUE(ShmFabric::attach(name).ok());
}

TEST_F(Shm, NamesAndTopologiesAreChecked) {
  for (const std::string& bad : {std::string(), std::string("a/b"), std::string("../x"),
                                 std::string("a.b"), std::string("a b"), std::string(65, 'a')}) {
    EXPECT_EQ(Code::kInvalidArgument, ShmFabric::create(bad, kTopology).status().code()) << bad;
    EXPECT_EQ(Code::kInvalidArgument, ShmFabric::attach(bad).status().code()) << bad;
    EXPECT_FALSE(ShmFabric::exists(bad));
  }
  EXPECT_EQ(Code::kInvalidArgument, ShmFabric::create(name, kTopology).status().code());
  EXPECT_EQ(Code::kNotFound, ShmFabric::attach(name + "x").status().code());
  EXPECT_TRUE(ShmFabric::exists(name));
  EXPECT_EQ(kTopology.workers_max, (*ShmFabric::attach(name))->topology().workers_max);
  EXPECT_EQ(kTopology.region_bytes, (*ShmFabric::attach(name))->topology().region_bytes);
  Topology topology = kTopology;
  topology.workers_max = 1;
  EXPECT_EQ(Code::kInvalidArgument, ShmFabric::create(name + "y", topology).status().code());
  EXPECT_FALSE(ShmFabric::exists(name + "y"));
}

TEST_F(Shm, AHalfMadeOrForeignControlObjectIsRefused) {
  const std::string object = "/rdmacc." + name + "-bad.ctl";
  const int fd = shm_open(object.c_str(), O_CREAT | O_EXCL | O_RDWR, 0600);
  ASSERT_GE(fd, 0);
  EXPECT_EQ(Code::kNotFound, ShmFabric::attach(name + "-bad").status().code());
  ASSERT_EQ(0, ftruncate(fd, 4096));
  EXPECT_EQ(Code::kNotFound, ShmFabric::attach(name + "-bad").status().code());
  ShmHeader header{};
  header.ready = kShmReady;
  header.layout_version = kShmLayoutVersion + 1;
  ASSERT_EQ(ssize_t{sizeof(header)}, pwrite(fd, &header, sizeof(header), 0));
  EXPECT_EQ(Code::kInvalidArgument, ShmFabric::attach(name + "-bad").status().code());
  header.layout_version = kShmLayoutVersion;  // and a topology that cannot be
  ASSERT_EQ(ssize_t{sizeof(header)}, pwrite(fd, &header, sizeof(header), 0));
  EXPECT_EQ(Code::kCorrupt, ShmFabric::attach(name + "-bad").status().code());
  close(fd);
  ShmFabric::destroy(name + "-bad");
}

TEST_F(Shm, TwoProcessesExchangeCallsAndVerbs) {
  const pid_t child = start_child([](ShmFabric& own) { serve(own, 0); });
  Worker worker(std::move(*fabric->join()));
  ASSERT_TRUE(wait_for([&] { return worker.endpoint().incarnation_of(0) != 0; }));
  run_in(worker, [&] {
    VerbArena arena(worker.pool());
    auto* words = arena.allocate_array<uint64_t>(2);
    words[0] = 41;
    DoorbellBatch batch(worker.scheduler(), worker.counters());
    batch.write(GlobalAddress::make(0, 128), &words[0], 8);
    batch.fetch_add(GlobalAddress::make(0, 128), 1, &words[1]);
    batch.read(GlobalAddress::make(0, 128), &words[0], 8);
    CHECK(batch.execute().ok());
    EXPECT_EQ(42u, words[0]);
    for (size_t bytes : {size_t{0}, size_t{8}, size_t{5'000}, kMaxMessageBytes}) {
      Rpc::Call call{.to = 0, .method = kEcho, .request = Rpc::Bytes(bytes, std::byte{7})};
      CHECK(worker.rpc().call_one(call, worker.counters()).ok());
      EXPECT_EQ(call.request, call.reply);
    }
  });
  kill_child(child);
  // The rows outlive the process, and a call to it ends.
  run_in(worker, [&] {
    VerbArena arena(worker.pool());
    auto* word = arena.allocate_array<uint64_t>(1);
    DoorbellBatch batch(worker.scheduler(), worker.counters());
    batch.read(GlobalAddress::make(0, 128), word, 8);
    CHECK(batch.execute().ok());
    EXPECT_EQ(42u, *word);
    Rpc::Call call{.to = 0, .method = kEcho};
    EXPECT_EQ(Code::kUnavailable, worker.rpc().call_one(call, worker.counters()).code());
  });
  EXPECT_TRUE(fabric->departed().empty());  // a node's thread
  start_child([](ShmFabric& own) { serve(own, 0); });
  ASSERT_TRUE(wait_for([&] { return worker.endpoint().incarnation_of(0) == 2; }));
  run_in(worker, [&] {
    Rpc::Call call{.to = 0, .method = kEcho, .request = Rpc::Bytes(100)};
    EXPECT_TRUE(worker.rpc().call_one(call, worker.counters()).ok());
  });
}

TEST_F(Shm, AKilledCoordinatorIsDepartedUntilReleased) {
  Worker node(std::move(*fabric->join_as_node(0, 0)));
  const pid_t child = start_child([](ShmFabric& own) {
    auto endpoint = own.join();
    if (!endpoint.ok()) _exit(3);
    for (;;) pause();
  });
  const WorkerId id = kTopology.node_workers();
  ASSERT_TRUE(wait_for([&] { return node.endpoint().incarnation_of(id) == 1; }));
  EXPECT_TRUE(fabric->departed().empty());
  kill_child(child);
  EXPECT_EQ(std::vector<WorkerId>{id}, fabric->departed());
  ASSERT_TRUE(wait_for([&] { return node.endpoint().incarnation_of(id) == 0; }));
  auto other = fabric->join();
  ASSERT_TRUE(other.ok());
  EXPECT_EQ(id + 1, (*other)->worker());  // not the dead one's
  fabric->release((*other)->worker());    // a living owner keeps its slot
  EXPECT_NE(0u, node.endpoint().incarnation_of((*other)->worker()));
  fabric->release(id);
  EXPECT_TRUE(fabric->departed().empty());
  auto next = fabric->join();
  ASSERT_TRUE(next.ok());
  EXPECT_EQ(id, (*next)->worker());
  EXPECT_EQ(2u, (*next)->incarnation());
}

TEST_F(Shm, AZombieIsDead) {
  const pid_t child = start_child([](ShmFabric& own) {
    auto endpoint = own.join();
    raise(SIGKILL);
  });
  siginfo_t info;
  ASSERT_EQ(0, waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT));
  EXPECT_EQ(1u, fabric->departed().size());
}

TEST_F(Shm, AForkedChildLeavesItsParentsSlotAlone) {
  auto endpoint = fabric->join();
  auto watcher = fabric->join_as_node(0, 0);
  ASSERT_TRUE(endpoint.ok() && watcher.ok());
  const WorkerId id = (*endpoint)->worker();
  const pid_t child = fork();
  if (child == 0) {
    endpoint->reset();
    _exit(0);
  }
  ASSERT_EQ(child, waitpid(child, nullptr, 0));
  EXPECT_EQ(1u, (*watcher)->incarnation_of(id));
}

TEST_F(Shm, AFullRingRefuses) {
  auto receiver = std::move(*fabric->join_as_node(0, 0));
  auto sender = std::move(*fabric->join());
  const std::vector<std::byte> datagram(4096, std::byte{3});
  size_t sent = 0;
  while (sent < 1000 && sender->send(0, datagram)) ++sent;
  EXPECT_GT(sent, 10u);
  EXPECT_LT(sent, 17u);
  size_t received = 0;
  receiver->set_datagram_handler([&](WorkerId, std::span<const std::byte>) { ++received; });
  while (receiver->poll()) continue;
  EXPECT_EQ(sent, received);
  EXPECT_TRUE(sender->send(0, datagram));
}

// A receiver stops looking at the rings of senders that are silent, and at all before it sleeps: a
// datagram that is sent just then is found all the same, without another behind it.
TEST_F(Shm, ADatagramIsFoundWhateverTheReceiverDoes) {
  constexpr uint32_t kDatagrams = 400;
  constexpr uint64_t kPollsMax = 400'000'000;
  std::unique_ptr<Endpoint> receiver = std::move(*fabric->join_as_node(0, 0));
  std::unique_ptr<Endpoint> sender = std::move(*fabric->join());
  std::atomic<uint32_t> received = 0;
  receiver->set_datagram_handler(
      [&](WorkerId, std::span<const std::byte>) { received.fetch_add(1); });
  std::thread sending([&] {
    Random random(3);
    const std::byte datagram[16] = {};
    for (uint32_t i = 0; i < kDatagrams; ++i) {
      while (!sender->send(0, datagram)) pause_processor();
      while (received.load() <= i) pause_processor();
      if (i % 4 == 0) {
        std::this_thread::sleep_for(std::chrono::microseconds(random.below(400)));
      }
    }
  });
  // Some rounds with polls alone, which forgets it after some thousand, some with sleeps.
  for (uint64_t poll = 0; poll < kPollsMax && received.load() < kDatagrams; ++poll) {
    receiver->poll();
    if (received.load() % 2 == 1) receiver->wait(receiver->now_us() + 10'000'000);
  }
  sending.join();
  EXPECT_EQ(kDatagrams, received.load());
}

TEST_F(Shm, DatagramsOfFormerOwnersAreDropped) {
  auto node = std::move(*fabric->join_as_node(0, 0));
  const std::vector<std::byte> datagram(4096, std::byte{3});
  size_t received = 0;
  WorkerId id;
  {
    auto first = std::move(*fabric->join());
    id = first->worker();
    while (first->send(0, datagram)) continue;  // from a former owner,
    while (node->send(id, datagram)) continue;  // and to it
  }
  auto second = std::move(*fabric->join());
  ASSERT_EQ(id, second->worker());
  const auto count = [&](WorkerId, std::span<const std::byte> bytes) {
    EXPECT_EQ(8u, bytes.size());
    ++received;
  };
  node->set_datagram_handler(count);
  second->set_datagram_handler(count);
  while (node->poll() || second->poll()) continue;
  EXPECT_EQ(0u, received);
  EXPECT_TRUE(second->send(0, {datagram.data(), 8}));
  EXPECT_TRUE(node->send(id, {datagram.data(), 8}));
  while (node->poll() || second->poll()) continue;
  EXPECT_EQ(2u, received);
}

TEST_F(Shm, AtomicsOfProcessesCountExactly) {
  Worker node(std::move(*fabric->join_as_node(0, 0)));
  constexpr uint64_t kRounds = 20'000;
  const auto count = [](Worker& worker) {
    run_in(worker, [&worker] {
      VerbArena arena(worker.pool());
      auto* seen = arena.allocate_array<uint64_t>(1);
      DoorbellBatch batch(worker.scheduler(), worker.counters());
      for (uint64_t i = 0; i < kRounds; ++i) {
        batch.fetch_add(GlobalAddress::make(0, 64), 1, seen);
        CHECK(batch.execute().ok());
      }
    });
  };
  const pid_t child = start_child([&](ShmFabric& own) {
    Worker worker(std::move(*own.join()));
    count(worker);
  });
  auto* word = reinterpret_cast<uint64_t*>(node.endpoint().local_region() + 64);
  // The owner's CPU takes part as well (F3).
  for (uint64_t i = 0; i < kRounds; ++i) __atomic_fetch_add(word, 1, __ATOMIC_SEQ_CST);
  count(node);
  EXPECT_EQ(0, children.wait_for(child));
  EXPECT_EQ(3 * kRounds, __atomic_load_n(word, __ATOMIC_SEQ_CST));
}

TEST_F(Shm, UnacknowledgedWritesHappenAlsoWhenTheirWorkerLeaves) {
  Worker node(std::move(*fabric->join_as_node(0, 0)));
  {
    Worker worker(std::move(*fabric->join()));
    VerbArena arena(worker.pool());
    auto* word = arena.allocate_array<uint64_t>(1);
    *word = 77;
    DoorbellBatch batch(worker.scheduler(), worker.counters());
    batch.write(GlobalAddress::make(0, 64), word, 8);
    batch.ring_unacknowledged();
  }
  uint64_t seen;
  std::memcpy(&seen, node.endpoint().local_region() + 64, 8);
  EXPECT_EQ(77u, seen);
}

}  // namespace
}  // namespace rdmacc
