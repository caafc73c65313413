// Calls whose caller does not wait for a callee that gives no sign of life.
#include "rdma/rpc/rpc.h"
#include "tests/fabric/fabric_harness.h"

namespace rdmacc {
namespace {

constexpr MethodId kEcho = 1, kSlow = 4;

class SilentCallee : public testing::TestWithParam<FabricKind> {
 protected:
  SilentCallee() {
    cluster.node(1).rpc().handle(
        kEcho, [](WorkerId, std::span<const std::byte> request, Rpc::Bytes& reply) {
          reply.assign(request.begin(), request.end());
          return Status();
        });
  }
  Status call(Rpc::Call& call) {
    Status status;
    cluster.run(caller, [&] { status = caller.rpc().call_one(call, caller.counters()); });
    return status;
  }

  FabricHarness cluster{GetParam()};
  Worker& caller = cluster.coordinator(0);
};

// A node that stands still; in virtual time none does.
INSTANTIATE_TEST_SUITE_P(Fabrics, SilentCallee, testing::Values(FabricKind::kShm, FabricKind::kTcp),
                         fabric_kind_name);

TEST_P(SilentCallee, IsNotWaitedFor) {
  Worker& node = cluster.node(1);
  size_t ran = 0;
  node.rpc().handle(kSlow, [&](WorkerId, std::span<const std::byte>, Rpc::Bytes& reply) {
    ++ran;
    reply.resize(3);
    return Status();
  });
  const auto call_alone = [&](Rpc::Call& call) {
    bool ended = false;
    CHECK(caller.scheduler().spawn([&] {
      static_cast<void>(caller.rpc().call_one(call, caller.counters()));
      ended = true;
    }));
    const uint64_t begin_us = caller.endpoint().now_us();
    while (!ended && caller.endpoint().now_us() - begin_us < 20'000'000) caller.scheduler().step();
    CHECK(ended);  // or the coroutine would refer to this frame
    return call.status.code();
  };
  const bool wanted_no_more = true;
  Rpc::Call cancelled{
      .to = 1, .method = kSlow, .cancelled = &wanted_no_more, .silence_us_max = 1'000'000'000};
  EXPECT_EQ(Code::kCancelled, call_alone(cancelled));
  for (int i = 0; i < 10; ++i) {
    Rpc::Call silent{
        .to = 1, .method = kSlow, .silence_us_max = 30'000, .request = Rpc::Bytes(9'000)};
    EXPECT_EQ(Code::kTimeout, call_alone(silent)) << i;
  }
  // What it was asked before runs late, once, and is not heard.
  ASSERT_TRUE(cluster.run_until([&] { return ran == 4; }));
  Rpc::Call echoed{.to = 1, .method = kEcho, .request = Rpc::Bytes(20'000, std::byte{7})};
  EXPECT_TRUE(call(echoed).ok());
  EXPECT_EQ(echoed.request, echoed.reply);
  Rpc::Call answered{.to = 1, .method = kSlow, .silence_us_max = 20'000'000};
  EXPECT_TRUE(call(answered).ok());
  EXPECT_EQ(3u, answered.reply.size());
  EXPECT_EQ(5u, ran);
  EXPECT_EQ(0u, node.rpc().malformed_datagrams());
}

TEST(WorkingCallee, IsWaitedFor) {
  FabricHarness cluster(FabricKind::kSim);
  Worker& caller = cluster.coordinator(0);
  cluster.node(1).rpc().handle(kSlow, [&](WorkerId, std::span<const std::byte>, Rpc::Bytes& reply) {
    cluster.node(1).scheduler().sleep_for(5'000'000);
    reply.resize(3);
    return Status();
  });
  Rpc::Call slow{.to = 1, .method = kSlow, .silence_us_max = 500'000};
  cluster.run(caller, [&] { EXPECT_TRUE(caller.rpc().call_one(slow, caller.counters()).ok()); });
  EXPECT_EQ(3u, slow.reply.size());
}

}  // namespace
}  // namespace rdmacc
