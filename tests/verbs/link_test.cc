#include <cstdlib>

#include "rdma/verbs/verbs_fabric.h"
#include "tests/fabric/fabric_harness.h"

// A wire that loses packets, and one that is cut. Only where the wire is ours: in the guest.

namespace rdmacc {
namespace {

constexpr MethodId kEcho = 1;

// Both ends of the veth pair, as scripts/verbs_guest.py makes it.
class Wire {
 public:
  ~Wire() {
    if (lossy_) run("tc qdisc del dev veth0 root; tc qdisc del dev veth1 root");
    if (cut_) mend();
  }
  void lose(const std::string& what) {
    run("for i in 0 1; do tc qdisc replace dev veth$i root netem " + what + " || exit 1; done");
    lossy_ = true;
  }
  void cut() {
    run("ip link set veth1 down");
    cut_ = true;
  }
  // An interface that was down has forgotten its neighbours.
  void mend() {
    run("ip link set veth1 up && ip neighbour replace 10.77.0.1 dev veth1 nud permanent "
        "lladdr 02:00:00:00:00:01 && ip neighbour replace 10.77.0.2 dev veth0 nud permanent "
        "lladdr 02:00:00:00:00:02");
    cut_ = false;
  }

 private:
  static void run(const std::string& command) { CHECK(std::system(command.c_str()) == 0); }
  bool lossy_ = false, cut_ = false;
};

class VerbsLink : public testing::Test {
 protected:
  void SetUp() override {
    if (getenv("RDMACC_GUEST") == nullptr) GTEST_SKIP() << "the wire is not ours";
    cluster.emplace(FabricKind::kVerbs);
    cluster->node(0).rpc().handle(
        kEcho, [](WorkerId, std::span<const std::byte> request, Rpc::Bytes& reply) {
          reply.assign(request.begin(), request.end());
          return Status();
        });
  }

  // The coordinator's device is rxe1, node 0's is rxe0.
  Status add(Worker& worker, uint64_t* seen) {
    DoorbellBatch batch(worker.scheduler(), worker.counters());
    batch.fetch_add(GlobalAddress::make(0, 64), 1, seen);
    return batch.execute();
  }

  std::optional<FabricHarness> cluster;
  Wire wire;
};

// The WRITE has a batch of its own: a responder of Linux's soft-RoCE (6.1) answers a WRITE that it
// gets twice with an ACK that covers the atomics it has carried out since, and the requester takes
// that for their answer, without an old value (docs/limitations.md).
TEST_F(VerbsLink, LossDoublesNothingAndLosesNothing) {
  constexpr int kRounds = 200;
  constexpr uint64_t kUnwritten = ~0ull;
  wire.lose("loss 5%");
  Worker& w = cluster->coordinator(0);
  cluster->run(w, [&] {
    VerbArena arena(w.pool());
    auto* words = arena.allocate_array<uint64_t>(3);
    DoorbellBatch batch(w.scheduler(), w.counters());
    for (uint64_t i = 0; i < kRounds; ++i) {
      words[0] = i;
      words[1] = words[2] = kUnwritten;
      batch.write(GlobalAddress::make(0, 128), &words[0], 8);
      ASSERT_TRUE(batch.execute().ok());
      batch.fetch_add(GlobalAddress::make(0, 64), 1, &words[1]);
      batch.read(GlobalAddress::make(0, 128), &words[2], 8);
      ASSERT_TRUE(batch.execute().ok());
      EXPECT_EQ(i, words[1]);
      EXPECT_EQ(i, words[2]);
    }
  });
  EXPECT_EQ(uint64_t{kRounds}, cluster->word_at(0, 64));
}

TEST_F(VerbsLink, RequestsSurviveLossDuplicatesAndReordering) {
  wire.lose("delay 1ms reorder 25% loss 5% duplicate 5%");
  Worker& w = cluster->coordinator(0);
  for (size_t i = 0; i < 50; ++i) {
    Rpc::Call call{.to = 0, .method = kEcho, .request = Rpc::Bytes(i * 100, std::byte(i))};
    Status status;
    cluster->run(w, [&] { status = w.rpc().call_one(call, w.counters()); });
    ASSERT_TRUE(status.ok()) << status.to_string();
    EXPECT_EQ(call.request, call.reply);
  }
}

TEST_F(VerbsLink, ACutWireEndsVerbsAndAMendedOneCarriesThemAgain) {
  Worker& w = cluster->coordinator(0);
  VerbArena arena(w.pool());
  auto* seen = arena.allocate_array<uint64_t>(1);
  Status status;
  cluster->run(w, [&] { status = add(w, seen); });
  ASSERT_TRUE(status.ok());
  wire.cut();
  cluster->run(w, [&] { status = add(w, seen); });
  EXPECT_EQ(Code::kUnavailable, status.code());
  EXPECT_EQ(1u, cluster->word_at(0, 64));
  wire.mend();
  // A worker that has failed tries again only after a while.
  cluster->run(w, [&] {
    for (int i = 0; i < 100 && !(status = add(w, seen)).ok(); ++i) w.scheduler().sleep_for(50'000);
  });
  ASSERT_TRUE(status.ok());
  EXPECT_EQ(1u, *seen);
  EXPECT_EQ(2u, cluster->word_at(0, 64));
}

}  // namespace
}  // namespace rdmacc
