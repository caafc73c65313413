// The engine over TCP: nodes as processes, coordinators here and in others, and either killed.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>

#include "engine/bench/runner.h"
#include "engine/check/checker.h"
#include "engine/check/history_file.h"
#include "engine/node/node.h"
#include "engine/protocols/registry.h"
#include "engine/storage/layout/region_layout.h"
#include "rdma/bootstrap/loopback_cluster.h"
#include "rdma/open/open_fabric.h"
#include "tests/fabric/child_processes.h"
#include "tests/unit/bench/bench_run.h"

namespace rdmacc {
namespace {

class OverTcp : public testing::TestWithParam<Protocol> {};

TEST_P(OverTcp, SmallBankIsSerializableAndKeepsItsInvariant) {
  const std::string file = testing::TempDir() + "tcp_test_" + std::to_string(getpid()) + ".jsonl";
  for (const char* stages : {"one_sided", "rpc", "lock=rpc,read=rpc,validate=rpc,renew=rpc"}) {
    const BenchOptions options =
        options_of({"smallbank", "--fabric=tcp", "-T", "0.3", "-c", "4", "--memory=256",
                    "--records=200", std::string("--protocol=") + protocol_name(GetParam()),
                    std::string("--stages=") + stages, "--history-file=" + file});
    const Result<RunResult> result = run_benchmark(options, kNotInterrupted);
    Result<std::vector<HistoryTransaction>> history = read_history(file);
    std::remove(file.c_str());
    ASSERT_TRUE(result.ok()) << stages << ": " << result.status().to_string();
    EXPECT_EQ(result.value().violation, "") << stages;
    EXPECT_GT(result.value().committed, 0u) << stages;
    ASSERT_TRUE(history.ok()) << stages << ": " << history.status().to_string();
    const CheckReport report = check_serializable(*history, CheckOptions{.preloaded = true});
    EXPECT_TRUE(report.serializable) << stages << ": " << report.problem;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, OverTcp, testing::ValuesIn(available_protocols().begin(), available_protocols().end()),
    [](const testing::TestParamInfo<Protocol>& protocol) { return protocol_name(protocol.param); });

// ---- Killed processes. Money moves between accounts of two nodes; none of it is ever lost.

constexpr uint64_t kAccounts = 40, kEach = 100;
constexpr auto kPatience = std::chrono::seconds(40);

class KilledOverTcp : public testing::TestWithParam<Protocol> {
 protected:
  void SetUp() override {
    // As the programs do: a peer that is killed closes its connections while nodes write to them.
    signal(SIGPIPE, SIG_IGN);
    Topology topology{.nodes = 2, .threads_per_node = 1, .workers_max = 8, .region_bytes = 0};
    topology.region_bytes = region_bytes_min(topology) + (64ull << 20);
    loopback_ = std::move(*LoopbackCluster::make("killed-" + std::to_string(getpid()), topology));
    choice_ = FabricChoice::remote(FabricKind::kTcp, loopback_->config());
    for (NodeId node = 0; node < 2; ++node) nodes_[node] = start_node(node);
    with_coordinator([&](Session& session) {
      TableSpec spec;
      spec.relfilenode = 1;
      spec.record_size = 64;
      Result<TableMeta> table = session.create_table(spec);
      if (!table.ok()) return table.status();
      table_ = table->id;
      RDMACC_RETURN_IF_ERROR(session.begin(options()));
      for (uint64_t i = 0; i < kAccounts; ++i) {
        RDMACC_RETURN_IF_ERROR(session.insert(table_, key(i), row(kEach)));
      }
      return session.commit();
    });
  }
  void TearDown() override {
    children_.kill_all();
    destroy_cluster(choice_);
  }

  TxnOptions options() const {
    TxnOptions options;
    options.protocol = GetParam();
    options.gate_timeout_us = 5'000'000;
    return options;
  }
  static std::string key(uint64_t account) { return "account " + std::to_string(account); }
  static std::string row(uint64_t amount) {
    std::string bytes(8, '\0');
    std::memcpy(bytes.data(), &amount, 8);
    return bytes;
  }
  static uint64_t amount(const RowView& row) {
    uint64_t value = 0;
    if (row.row.size() == 8) std::memcpy(&value, row.row.data(), 8);
    return value;
  }

  pid_t start_node(NodeId node) {
    return children_.start(120, [this, node] {
      auto fabric = open_fabric_as_node(choice_, node);
      if (!fabric.ok()) _exit(2);
      auto opened = Node::open(**fabric, node, NodeOptions());
      if (!opened.ok()) _exit(3);
      const std::atomic<bool> stop = false;
      _exit((*opened)->run(stop, 0).ok() ? 0 : 4);
    });
  }
  void kill_child(pid_t child) { children_.kill_child(child); }

  // `task` as a coroutine of a coordinator of its own, again and again until it succeeds.
  void with_coordinator(const std::function<Status(Session&)>& task) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    Status status;
    do {
      status = try_with_coordinator(task);
    } while (!status.ok() && std::chrono::steady_clock::now() < end);
    ASSERT_TRUE(status.ok()) << status.to_string();
  }
  Status try_with_coordinator(const std::function<Status(Session&)>& task) {
    auto fabric = open_fabric(choice_);
    if (!fabric.ok()) return fabric.status();
    Result<std::unique_ptr<Endpoint>> endpoint = (*fabric)->join();
    if (!endpoint.ok()) return endpoint.status();
    Coordinator coordinator(std::move(*endpoint), (*fabric)->topology(), EngineOptions());
    Status status;
    bool ended = false;
    CHECK(coordinator.worker().scheduler().spawn([&] {
      Session session(coordinator);
      status = task(session);
      if (session.active()) session.abort();
      ended = true;
    }));
    coordinator.worker().scheduler().run_until([&] { return ended; }, 0);
    return status;
  }

  Status transfer(Session& session, Random& random) {
    const uint64_t from = random.below(kAccounts), to = random.below(kAccounts);
    if (from == to) return Status();
    RDMACC_RETURN_IF_ERROR(session.begin(options()));
    RowView source, target;
    RDMACC_RETURN_IF_ERROR(session.get(table_, key(from), source));
    const uint64_t has = amount(source);
    RDMACC_RETURN_IF_ERROR(session.get(table_, key(to), target));
    const uint64_t gets = amount(target);
    if (has > 0) {
      RDMACC_RETURN_IF_ERROR(session.put(table_, key(from), row(has - 1)));
      RDMACC_RETURN_IF_ERROR(session.put(table_, key(to), row(gets + 1)));
    }
    return session.commit();
  }
  // A process that moves money until it is killed; a byte for every transfer goes to `fd`.
  pid_t start_mover(uint64_t seed, int fd) {
    return children_.start(120, [this, seed, fd] {
      Random random(seed);
      while (true) {
        (void)try_with_coordinator([&](Session& session) -> Status {
          while (true) {
            const Status status = transfer(session, random);
            if (status.ok() && write(fd, "x", 1) != 1) _exit(0);
            if (status.ok()) continue;
            if (session.active()) session.abort();
            // A node is away, or this worker was taken for dead: with another endpoint, then.
            if (status.code() != Code::kAborted) return status;
            session.scheduler().sleep_for(random.below(200));
          }
        });
      }
    });
  }
  static void await_transfers(int fd, size_t count) {
    std::string bytes(count, '\0');
    for (size_t have = 0; have < count;) {
      const ssize_t got = read(fd, bytes.data(), count - have);
      ASSERT_GT(got, 0);
      have += static_cast<size_t>(got);
    }
  }
  // Reads and writes every account: no lock is left anywhere, and no money lost.
  void check_money() {
    uint64_t sum = 0;
    with_coordinator([&](Session& session) {
      sum = 0;
      RDMACC_RETURN_IF_ERROR(session.begin(options()));
      for (uint64_t i = 0; i < kAccounts; ++i) {
        RowView seen;
        RDMACC_RETURN_IF_ERROR(session.get(table_, key(i), seen));
        sum += amount(seen);
        RDMACC_RETURN_IF_ERROR(session.put(table_, key(i), row(amount(seen))));
      }
      return session.commit();
    });
    EXPECT_EQ(kAccounts * kEach, sum);
  }

  std::unique_ptr<LoopbackCluster> loopback_;
  FabricChoice choice_;
  pid_t nodes_[2] = {};
  ChildProcesses children_;
  TableId table_{};
};

TEST_P(KilledOverTcp, CoordinatorsLeaveNoLockAndLoseNoMoney) {
  Random random(7);
  for (uint64_t round = 0; round < 3; ++round) {
    int fds[2];
    ASSERT_EQ(0, pipe(fds));
    const pid_t movers[2] = {start_mover(2 * round, fds[1]), start_mover(2 * round + 1, fds[1])};
    close(fds[1]);
    await_transfers(fds[0], 50 + random.below(50));
    for (const pid_t mover : movers) kill_child(mover);
    close(fds[0]);
    check_money();
  }
}

TEST_P(KilledOverTcp, NodesComeBackAndLoseNoMoney) {
  int fds[2];
  ASSERT_EQ(0, pipe(fds));
  const pid_t mover = start_mover(11, fds[1]);
  close(fds[1]);
  for (const NodeId node : {NodeId{1}, NodeId{0}}) {
    await_transfers(fds[0], 50);
    kill_child(nodes_[node]);
    usleep(100'000);
    nodes_[node] = start_node(node);
    await_transfers(fds[0], 200);  // more than the pipe may hold from before
  }
  kill_child(mover);
  close(fds[0]);
  check_money();
}

INSTANTIATE_TEST_SUITE_P(All, KilledOverTcp,
                         testing::Values(Protocol::kNowait, Protocol::kOcc, Protocol::kSundial),
                         [](const testing::TestParamInfo<Protocol>& protocol) {
                           return protocol_name(protocol.param);
                         });

}  // namespace
}  // namespace rdmacc
