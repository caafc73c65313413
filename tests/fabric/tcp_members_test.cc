// Members of a tcp cluster: what they are to each other when processes die, or memory is lost.
#include "rdma/bootstrap/claim_table.h"
#include "tests/fabric/tcp_processes.h"

namespace rdmacc {
namespace {

class TcpMembers : public TcpProcesses {
 protected:
  void lose_all_memory() {
    for (NodeId node = 0; node < kTopology.nodes; ++node) {
      kill_child(nodes[node]);
      TcpFabric::destroy_node(config(), node);
    }
    for (NodeId node = 0; node < kTopology.nodes; ++node) nodes[node] = start_node(node);
  }
};

// Which memory node 0 has; 0: it has not answered for 20 s.
uint64_t memory_of_node_0(Membership& membership) {
  const uint64_t end_ns = monotonic_now_ns() + 20'000'000'000;
  uint64_t memory = 0;
  while (memory == 0 && monotonic_now_ns() < end_ns) {
    const auto heard = std::make_shared<std::optional<uint64_t>>();
    membership.ping(0, [heard](const Result<uint64_t>& id) { *heard = id.ok() ? id.value() : 0; });
    while (!*heard && monotonic_now_ns() < end_ns) membership.poll();
    memory = heard->value_or(0);
  }
  return memory;
}

TEST_F(TcpMembers, AKilledCoordinatorDepartsAndItsIdIsUsedAgain) {
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

TEST_F(TcpMembers, MembersOutliveARestartOfNode0) {
  Coordinator c(config());
  ASSERT_TRUE(c.add(0, 64, 3).ok());
  ASSERT_TRUE(c.add(1, 64, 4).ok());
  Endpoint& endpoint = c.worker.endpoint();
  const uint32_t incarnation = endpoint.incarnation();
  const uint32_t of_node_0 = endpoint.incarnation_of(0), of_node_1 = endpoint.incarnation_of(1);
  kill_child(nodes[0]);
  ASSERT_TRUE(c.until([&] { return endpoint.incarnation_of(0) == 0; }));
  EXPECT_TRUE(c.add(1, 64, 1).ok());  // goes on meanwhile
  nodes[0] = start_node(0);
  ASSERT_TRUE(c.until([&] { return endpoint.incarnation_of(0) == of_node_0 + 1; }));
  EXPECT_EQ(incarnation, endpoint.incarnation_of(c.worker.id()));
  EXPECT_FALSE(endpoint.taken_for_dead());
  EXPECT_EQ(of_node_1, endpoint.incarnation_of(1));
  uint64_t seen = 0;
  ASSERT_TRUE(c.add(0, 64, 1, &seen).ok());
  EXPECT_EQ(3u, seen);
  Coordinator other(config());
  EXPECT_NE(c.worker.id(), other.worker.id());
}

// Another worker has its id then, of a table that knows nothing of earlier ones.
TEST_F(TcpMembers, AMemberOfALostMemoryStaysDead) {
  Coordinator c(config());
  Endpoint& endpoint = c.worker.endpoint();
  ASSERT_TRUE(c.add(1, 64, 1).ok());
  const uint64_t now_us = endpoint.now_us();
  const uint64_t then_ns = monotonic_now_ns();
  lose_all_memory();
  std::unique_ptr<Coordinator> heir;
  int claims = 0;  // of that id
  for (int i = 0; i < 50 && claims < 3; ++i) {
    heir.reset();
    heir = std::make_unique<Coordinator>(config());
    ASSERT_TRUE(heir->until([&] { return heir->worker.endpoint().incarnation_of(1) != 0; }));
    if (heir->worker.id() != c.worker.id()) continue;
    ++claims;
    EXPECT_NE(heir->worker.endpoint().incarnation(), endpoint.incarnation());
  }
  ASSERT_EQ(3, claims);
  ASSERT_TRUE(heir->add(1, 64, 5).ok());
  ASSERT_TRUE(c.until([&] { return endpoint.taken_for_dead(); }));
  EXPECT_EQ(0u, endpoint.incarnation_of(c.worker.id()));
  // Deadlines that it has set come when they would have.
  const uint64_t elapsed_us = (monotonic_now_ns() - then_ns) / 1000;
  EXPECT_GE(endpoint.now_us(), now_us + elapsed_us);
  const auto joined = c.fabric->join();
  ASSERT_FALSE(joined.ok());
  EXPECT_EQ(Code::kUnavailable, joined.status().code());
  EXPECT_EQ(Code::kUnavailable, c.add(1, 64, 1).code());
  const Status called = c.run([&] {
    Rpc::Call call;
    call.to = kTopology.worker_of(1);
    call.method = kEcho;
    call.request.resize(8);
    return c.worker.rpc().call_one(call, c.worker.counters());
  });
  EXPECT_EQ(Code::kUnavailable, called.code());
  uint64_t seen = 0;
  ASSERT_TRUE(heir->add(1, 64, 0, &seen).ok());
  EXPECT_EQ(5u, seen);
}

// It has heard of one, and its clock has counted for that.
TEST_F(TcpMembers, AProcessThatHasJoinedNothingJoinsTheNextMemory) {
  const auto membership = std::move(*Membership::open(config()));
  const uint64_t first = memory_of_node_0(*membership);
  ASSERT_NE(0u, first);
  const uint64_t age_ns = membership->now_ns();
  const uint64_t then_ns = monotonic_now_ns();
  lose_all_memory();
  const uint64_t second = memory_of_node_0(*membership);
  ASSERT_NE(0u, second);
  EXPECT_NE(first, second);
  Result<Membership::Claim> claim = membership->claim();
  ASSERT_TRUE(claim.ok()) << claim.status().to_string();
  EXPECT_EQ(claim->incarnation, membership->incarnation_of(claim->worker));
  EXPECT_LT(membership->now_ns(), age_ns + monotonic_now_ns() - then_ns);
  membership->leave(*claim);
}

TEST_F(TcpMembers, OneNodeIsOneProcess) {
  const auto second = TcpFabric::open_as_node(config(), 1);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(Code::kUnavailable, second.status().code());
}

}  // namespace
}  // namespace rdmacc
