#include "rdma/rpc/rpc.h"

#include <cstring>
#include <map>
#include <numeric>

#include "rdma/rpc/rpc_wire.h"
#include "tests/fabric/fabric_harness.h"

namespace rdmacc {
namespace {

constexpr MethodId kEcho = 1, kFail = 2, kCount = 3, kSlow = 4;

Rpc::Bytes pattern(size_t bytes, uint64_t seed = 1) {
  Rpc::Bytes result(bytes);
  Random random(seed);
  for (std::byte& b : result) b = static_cast<std::byte>(random.next());
  return result;
}

Status echo(WorkerId, std::span<const std::byte> request, Rpc::Bytes& reply) {
  reply.assign(request.begin(), request.end());
  return Status();
}

class RpcOn : public testing::TestWithParam<FabricKind> {
 protected:
  RpcOn() {
    for (NodeId n = 0; n < 2; ++n) install(cluster.node(n));
  }
  void install(Worker& node) {
    node.rpc().handle(kEcho, echo);
    node.rpc().handle(kFail, [](WorkerId, std::span<const std::byte>, Rpc::Bytes& reply) {
      reply.resize(10);
      return Status(Code::kAborted, "lock is held", 77);
    });
  }
  Status call(Worker& from, Rpc::Call& call) {
    Status status;
    cluster.run(from, [&] { status = from.rpc().call_one(call, from.counters()); });
    return status;
  }

  FabricHarness cluster{GetParam()};
  Worker& caller = cluster.coordinator(0);
};

INSTANTIATE_TEST_SUITE_P(Fabrics, RpcOn, testing::ValuesIn(every_fabric()), fabric_kind_name);

TEST_P(RpcOn, EchoesMessagesOfEverySize) {
  const size_t payload = fragment_payload_bytes(4096);
  for (size_t bytes : {size_t{0}, size_t{8}, size_t{4000}, payload - 1, payload, payload + 1,
                       2 * payload, size_t{100'001}, kMaxMessageBytes}) {
    Rpc::Call echoed{.to = 1, .method = kEcho, .request = pattern(bytes)};
    ASSERT_TRUE(call(caller, echoed).ok()) << bytes;
    EXPECT_EQ(echoed.request, echoed.reply) << bytes;
  }
  EXPECT_EQ(0u, cluster.node(1).rpc().malformed_datagrams());
}

TEST_P(RpcOn, ANodeCallsAnotherAndItself) {
  for (WorkerId to : {WorkerId{0}, WorkerId{1}}) {
    Rpc::Call echoed{.to = to, .method = kEcho, .request = pattern(50'000)};
    ASSERT_TRUE(call(cluster.node(0), echoed).ok());
    EXPECT_EQ(echoed.request, echoed.reply);
  }
}

TEST_P(RpcOn, CallAllIsOneRoundTrip) {
  std::vector<Rpc::Call> calls(200);  // more than a peer has slots
  for (size_t i = 0; i < calls.size(); ++i) {
    calls[i].to = static_cast<WorkerId>(i % 2);
    calls[i].method = kEcho;
    calls[i].request = pattern(i, i);
  }
  VerbCounters counters;
  cluster.run(caller, [&] { caller.rpc().call_all(calls, counters); });
  for (const Rpc::Call& c : calls) {
    EXPECT_TRUE(c.status.ok());
    EXPECT_EQ(c.request, c.reply);
  }
  EXPECT_EQ(1u, counters.round_trips);
  EXPECT_EQ(200u, counters.messages);
}

TEST_P(RpcOn, PatientCallsAreAnsweredToo) {
  for (size_t bytes : {size_t{8}, size_t{50'000}}) {
    Rpc::Call patient{.to = 1, .method = kEcho, .patient = true, .request = pattern(bytes)};
    ASSERT_TRUE(call(caller, patient).ok()) << bytes;
    EXPECT_EQ(patient.request, patient.reply) << bytes;
  }
}

TEST_P(RpcOn, ErrorsOfHandlersTravel) {
  Rpc::Call failing{.to = 1, .method = kFail, .request = pattern(8)};
  const Status status = call(caller, failing);
  EXPECT_EQ(Code::kAborted, status.code());
  EXPECT_EQ(77, status.detail());
  EXPECT_EQ("lock is held", status.message());
  EXPECT_TRUE(failing.reply.empty());
}

TEST_P(RpcOn, UnknownMethodIsRefused) {
  Rpc::Call unknown{.to = 1, .method = 999};
  EXPECT_EQ(Code::kInvalidArgument, call(caller, unknown).code());
}

TEST_P(RpcOn, OversizedMessagesAreRefused) {
  Rpc::Call large{.to = 1, .method = kEcho, .request = pattern(kMaxMessageBytes + 1)};
  EXPECT_EQ(Code::kTooLarge, call(caller, large).code());
  cluster.node(0).rpc().handle(kSlow, [](WorkerId, std::span<const std::byte>, Rpc::Bytes& r) {
    r.resize(kMaxMessageBytes + 1);
    return Status();
  });
  Rpc::Call reply{.to = 0, .method = kSlow};
  EXPECT_EQ(Code::kTooLarge, call(caller, reply).code());
}

// The handler is told; the call ends with what it returns.
TEST_P(RpcOn, ACancelledCallEndsEarly) {
  Worker& node = cluster.node(1);
  node.rpc().handle(kSlow, [&](WorkerId, std::span<const std::byte>, Rpc::Bytes& reply) {
    const bool* const cancelled = node.rpc().call_cancelled();
    reply.resize(3);
    for (int i = 0; i < 100'000; ++i) {
      if (*cancelled) return Status(Code::kCancelled);
      node.scheduler().sleep_for(100);
    }
    return Status();
  });
  bool wanted_no_more = false;
  Rpc::Call slow{.to = 1, .method = kSlow, .cancelled = &wanted_no_more};
  Rpc::Call wanted{.to = 1, .method = kEcho, .cancelled = &wanted_no_more};
  bool ended = false;
  cluster.run(caller, [&] {
    CHECK(caller.scheduler().spawn([&] {
      EXPECT_EQ(Code::kCancelled, caller.rpc().call_one(slow, caller.counters()).code());
      ended = true;
    }));
    EXPECT_TRUE(caller.rpc().call_one(wanted, caller.counters()).ok());
    caller.scheduler().sleep_for(2'000);
    EXPECT_FALSE(ended);
    wanted_no_more = true;
    for (int i = 0; i < 1'000 && !ended; ++i) caller.scheduler().sleep_for(1'000);
    EXPECT_TRUE(ended);
  });
  // The slot's next call knows nothing of it.
  wanted_no_more = false;
  EXPECT_TRUE(call(caller, wanted).ok());
  EXPECT_EQ(0u, node.rpc().malformed_datagrams());
}

TEST_P(RpcOn, HandlersMayYieldSleepAndUseVerbs) {
  Worker& node = cluster.node(1);
  node.rpc().handle(kSlow, [&](WorkerId from, std::span<const std::byte>, Rpc::Bytes& reply) {
    EXPECT_EQ(caller.id(), from);
    VerbArena arena(node.pool());
    auto* seen = arena.allocate_array<uint64_t>(1);
    DoorbellBatch batch(node.scheduler(), node.counters());
    batch.fetch_add(GlobalAddress::make(1, 64), 1, seen);
    const Status status = batch.execute();
    node.scheduler().sleep_for(60'000);  // longer than the first retransmissions
    reply.resize(8);
    std::memcpy(reply.data(), seen, 8);
    return status;
  });
  std::vector<Rpc::Call> calls(5);
  for (Rpc::Call& c : calls) {
    c.to = 1;
    c.method = kSlow;
    c.request = pattern(20'000);
  }
  cluster.run(caller, [&] { caller.rpc().call_all(calls, caller.counters()); });
  for (const Rpc::Call& c : calls) EXPECT_TRUE(c.status.ok());
  EXPECT_EQ(5u, cluster.word_at(1, 64));  // each handler ran once
  EXPECT_GT(caller.rpc().retransmissions(), 0u);
}

TEST_P(RpcOn, ACallToAnAbsentWorkerIsUnavailable) {
  Rpc::Call absent{.to = 9, .method = kEcho};
  EXPECT_EQ(Code::kUnavailable, call(caller, absent).code());
}

TEST_P(RpcOn, ARestartedCalleeEndsItsCalls) {
  cluster.node(1).rpc().handle(kSlow, [&](WorkerId, std::span<const std::byte>, Rpc::Bytes&) {
    cluster.node(1).scheduler().sleep_for(1u << 30);
    return Status();
  });
  std::vector<Rpc::Call> calls(100);  // some wait for a slot
  for (Rpc::Call& c : calls) {
    c.to = 1;
    c.method = kSlow;
  }
  bool ended = false;
  ASSERT_TRUE(caller.scheduler().spawn([&] {
    caller.rpc().call_all(calls, caller.counters());
    ended = true;
  }));
  ASSERT_TRUE(cluster.run_until(
      [&] { return cluster.node(1).scheduler().busy_coroutines() == Rpc::kCallsPerPeer; }));
  const uint64_t before_us = caller.endpoint().now_us();
  cluster.stop(cluster.node(1));
  install(cluster.start_node(1));
  ASSERT_TRUE(cluster.run_until([&] { return ended; }));
  for (const Rpc::Call& c : calls) EXPECT_EQ(Code::kUnavailable, c.status.code());
  EXPECT_LT(caller.endpoint().now_us() - before_us, 2'000'000u);
  Rpc::Call again{.to = 1, .method = kEcho, .request = pattern(8)};
  EXPECT_TRUE(call(caller, again).ok());
}

TEST_P(RpcOn, RequestsWaitWhenNoCoroutineIsFree) {
  HarnessOptions options;
  options.scheduler.coroutines_max = 4;
  FabricHarness narrow(GetParam(), options);
  Worker& node = narrow.node(0);
  size_t together = 0;
  node.rpc().handle(kSlow, [&](WorkerId, std::span<const std::byte>, Rpc::Bytes&) {
    together = std::max(together, node.scheduler().busy_coroutines());
    node.scheduler().sleep_for(50);
    return Status();
  });
  std::vector<Rpc::Call> calls(64);
  for (Rpc::Call& c : calls) {
    c.to = 0;
    c.method = kSlow;
  }
  Worker& from = narrow.coordinator(0);
  narrow.run(from, [&] { from.rpc().call_all(calls, from.counters()); });
  for (const Rpc::Call& c : calls) EXPECT_TRUE(c.status.ok());
  EXPECT_EQ(4u, together);
}

// Bytes of every kind: garbage, and well-formed datagrams with a few bytes changed.
TEST_P(RpcOn, MalformedDatagramsAreDroppedAndCounted) {
  Worker& sender = cluster.coordinator(1);
  Worker& node = cluster.node(0);
  Random random(11);
  // Some fabrics lose what finds no room, so the node looks now and then.
  const auto step = [&] {
    (void)cluster.run_until([&, first = true]() mutable { return !std::exchange(first, false); });
  };
  const auto deliver = [&](const Rpc::Bytes& datagram) {
    while (!sender.endpoint().send(node.id(), datagram)) step();
  };
  uint64_t steps = 0;
  for (int i = 0; i < 3000; ++i) {
    Rpc::Bytes datagram = pattern(1 + random.below(300), random.next());
    if (i % 2 == 0) {
      const RpcDatagramHeader header{kRpcMagic, sender.endpoint().incarnation(),
                                     node.endpoint().incarnation(), 0};
      RpcFragmentHeader fragment{.sequence = static_cast<uint32_t>(random.below(4)),
                                 .total_bytes = 100,
                                 .offset = 0,
                                 .bytes = 100,
                                 .method = kEcho,
                                 .kind = RpcKind::kRequest,
                                 .slot = static_cast<uint8_t>(random.below(64)),
                                 .code = Code::kOk,
                                 .reserved = 0};
      datagram.assign(sizeof(header) + sizeof(fragment) + 100, std::byte{0});
      std::memcpy(datagram.data(), &header, sizeof(header));
      std::memcpy(datagram.data() + sizeof(header), &fragment, sizeof(fragment));
      for (uint64_t n = random.below(4); n > 0; --n) {
        datagram[random.below(48)] = static_cast<std::byte>(random.next());
      }
    }
    deliver(datagram);
    if (i % 16 == 0) step();
    steps += node.scheduler().busy_coroutines();
  }
  // It still works, for others and for the sender.
  for (Worker* from : {&caller, &sender}) {
    Rpc::Call echoed{.to = 0, .method = kEcho, .request = pattern(9'000)};
    if (from == &sender) echoed.to = 1;
    ASSERT_TRUE(call(*from, echoed).ok());
    EXPECT_EQ(echoed.request, echoed.reply);
  }
  EXPECT_GT(node.rpc().malformed_datagrams(), 1000u);
  EXPECT_GT(node.rpc().refused_datagrams(), 0u);
}

struct FaultCase {
  uint32_t loss_percent;
  uint32_t duplicate_percent;
};

// The heart of the matter: whatever the network does, each handler runs exactly once.
TEST(RpcUnderFaults, EveryCallRunsExactlyOnce) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    HarnessOptions options;
    options.sim.seed = seed;
    options.sim.loss_percent = 20;
    options.sim.duplicate_percent = 20;
    FabricHarness cluster(FabricKind::kSim, options);
    std::map<uint64_t, int> ran;
    for (NodeId n = 0; n < 2; ++n) {
      Worker& node = cluster.node(n);
      node.rpc().handle(
          kCount, [&ran, &node](WorkerId, std::span<const std::byte> request, Rpc::Bytes& reply) {
            uint64_t number;
            CHECK(request.size() >= 8);
            std::memcpy(&number, request.data(), 8);
            ++ran[number];
            if (number % 3 == 0) node.scheduler().yield();
            reply.assign(request.begin(), request.end());
            return Status();
          });
    }
    constexpr uint64_t kCoroutines = 10, kCalls = 100;
    std::vector<std::pair<Worker*, std::function<void()>>> tasks;
    for (uint64_t c = 0; c < kCoroutines; ++c) {
      Worker* from = &cluster.coordinator(c % 2);
      tasks.emplace_back(from, [from, c] {
        for (uint64_t i = 0; i < kCalls; ++i) {
          const uint64_t number = c * kCalls + i;
          Rpc::Call call{.to = static_cast<WorkerId>(number % 2), .method = kCount};
          call.request = pattern(number % 10 == 0 ? 10'000 : 16, number);
          std::memcpy(call.request.data(), &number, 8);
          CHECK(from->rpc().call_one(call, from->counters()).ok());
          CHECK(call.reply == call.request);
        }
      });
    }
    cluster.run(std::move(tasks));
    ASSERT_EQ(kCoroutines * kCalls, ran.size()) << "seed " << seed;
    for (const auto& [number, times] : ran) ASSERT_EQ(1, times) << number << " seed " << seed;
  }
}

TEST(RpcUnderFaults, LargeMessagesArriveWhole) {
  HarnessOptions options;
  options.sim.loss_percent = 20;
  options.sim.duplicate_percent = 20;
  FabricHarness cluster(FabricKind::kSim, options);
  cluster.node(0).rpc().handle(kEcho, echo);
  Worker& from = cluster.coordinator(0);
  Rpc::Call call{.to = 0, .method = kEcho, .request = pattern(kMaxMessageBytes)};
  cluster.run(from, [&] { CHECK(from.rpc().call_one(call, from.counters()).ok()); });
  EXPECT_EQ(call.request, call.reply);
}

TEST(RpcUnderFaults, AKilledCalleeEndsItsCallsInBoundedTime) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    HarnessOptions options;
    options.sim.seed = seed;
    FabricHarness cluster(FabricKind::kSim, options);
    Worker& node = cluster.node(1);
    node.rpc().handle(kSlow, [&](WorkerId, std::span<const std::byte>, Rpc::Bytes&) {
      node.scheduler().sleep_for(500);
      return Status();
    });
    Worker& from = cluster.coordinator(0);
    bool ended = false;
    Status status;
    CHECK(from.scheduler().spawn([&] {
      for (;;) {
        Rpc::Call call{.to = 1, .method = kSlow, .request = pattern(8)};
        status = from.rpc().call_one(call, from.counters());
        if (!status.ok()) break;
      }
      ended = true;
    }));
    const uint64_t kill_at = 200 + seed * 7;
    uint64_t killed_us = 0;
    cluster.sim().set_observer([&](uint64_t event) {
      if (event != kill_at) return;
      cluster.sim().kill(1);
      killed_us = from.endpoint().now_us();
    });
    ASSERT_TRUE(cluster.run_until([&] { return ended; }));
    cluster.sim().set_observer(nullptr);
    EXPECT_EQ(Code::kUnavailable, status.code());
    EXPECT_LT(from.endpoint().now_us() - killed_us, 500'000u);
  }
}

}  // namespace
}  // namespace rdmacc
