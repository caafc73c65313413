#pragma once
#include <chrono>
#include <cstring>
#include <map>

#include "rdma/tcp/tcp_fabric.h"
#include "tests/fabric/child_processes.h"
#include "tests/fabric/fabric_harness.h"

// Nodes of a tcp cluster as processes, and coordinators in the test's own one.

namespace rdmacc {

inline constexpr MethodId kEcho = 1;
inline const Topology kTopology{
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

class TcpProcesses : public testing::Test {
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
    children.kill_all();
    TcpFabric::destroy(config());
  }
  const ClusterConfig& config() const { return loopback->config(); }

  pid_t start_child(const std::function<void()>& body) { return children.start(60, body); }
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
  void kill_child(pid_t child) { children.kill_child(child); }

  // Node 1 has died: starts it again, until `each` knows the new one.
  void start_again(std::initializer_list<Coordinator*> each) {
    std::map<Coordinator*, uint32_t> before;
    for (Coordinator* c : each) before[c] = c->worker.endpoint().incarnation_of(1);
    nodes[1] = start_node(1);
    for (const auto& [c, old] : before) {
      const auto known = [&endpoint = c->worker.endpoint(), was = old] {
        const uint32_t now = endpoint.incarnation_of(1);
        return now != 0 && now != was;
      };
      ASSERT_TRUE(c->until(known));
    }
  }

  std::unique_ptr<LoopbackCluster> loopback;
  pid_t nodes[2] = {};
  ChildProcesses children;
};

}  // namespace rdmacc
