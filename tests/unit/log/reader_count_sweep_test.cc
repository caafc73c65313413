#include "engine/log/reader_count_sweep.h"

#include "tests/unit/log/log_cluster.h"

namespace rdmacc {
namespace {

constexpr uint64_t kDrainUs = 20'000;

// Live tuples on both nodes: slots_[0] and [2] on node 0, [1] and [3] on node 1.
class ReaderCountSweep : public testing::Test {
 protected:
  void SetUp() override {
    cluster_ = std::make_unique<LogCluster>(1, NodeId{2}, 2);
    LogUser& user = cluster_->user(0);
    ctts_ = (uint64_t{1000} << 16) | user.worker.id();
    slots_ = cluster_->allocate_slots(user, ctts_, {0, 1, 0, 1});
    for (const GlobalAddress slot : slots_) {
      header(slot).flags = kFlagLive;
      header(slot).wts = (uint64_t{500} << 16) | id(0);
      header(slot).lock = 0;
    }
    gate().word = GateWord{1, 0, 5}.pack();
    sweeper_ = std::make_unique<ReaderCountSweeper>(node(), cluster_->topology(), kDrainUs);
  }
  void TearDown() override { cluster_->node(0).worker.scheduler().unwind(); }

  Header& header(GlobalAddress slot) { return cluster_->header(slot); }
  Worker& node() { return cluster_->node(0).worker; }
  GateLine& gate() {
    return *reinterpret_cast<GateLine*>(cluster_->region(0) + cluster_->layout().control);
  }
  WorkerLine& line(WorkerId worker) {
    return *reinterpret_cast<WorkerLine*>(cluster_->region(0) +
                                          cluster_->layout().worker_line(worker));
  }
  WorkerId id(size_t user) { return cluster_->user(user).worker.id(); }
  void die() {
    dead_ = id(0);
    cluster_->kill(cluster_->user(0));
    cluster_->wait_departed();
  }
  Result<ResolveReport> resolve() {
    Result<ResolveReport> result = Status(Code::kCorrupt, "did not run");
    cluster_->run(node(), [&] {
      VerbCounters counters;
      result = resolve_worker(
          node(), cluster_->topology(), dead_,
          [](const LogRecord&, VerbCounters&) { return Status(); }, counters);
    });
    return result;
  }
  Result<bool> sweep(std::vector<WorkerId> ended = {}) {
    Result<bool> result = Status(Code::kCorrupt, "did not run");
    cluster_->run(node(), [&] {
      VerbCounters counters;
      result = sweeper_->sweep_if_needed(ended, counters);
    });
    return result;
  }
  bool swept(std::vector<WorkerId> ended = {}) {
    const Result<bool> result = sweep(std::move(ended));
    EXPECT_TRUE(result.ok()) << result.status().to_string();
    return result.ok() && result.value();
  }

  std::unique_ptr<LogCluster> cluster_;
  std::unique_ptr<ReaderCountSweeper> sweeper_;
  uint64_t ctts_ = 0;
  WorkerId dead_ = 0;
  std::vector<GlobalAddress> slots_;
};

TEST_F(ReaderCountSweep, ClearsCountsOnAllNodesAndNoOtherLock) {
  header(slots_[0]).lock = 3;
  header(slots_[1]).lock = kReadersMax;
  header(slots_[2]).lock = ctts_;
  cluster_->run(node(), [&] {
    VerbCounters counters;
    const Result<uint64_t> cleared = clear_reader_counts(node(), cluster_->topology(), counters);
    ASSERT_TRUE(cleared.ok());
    EXPECT_EQ(cleared.value(), 3 + kReadersMax);
  });
  EXPECT_EQ(header(slots_[0]).lock, 0u);
  EXPECT_EQ(header(slots_[1]).lock, 0u);
  EXPECT_EQ(header(slots_[2]).lock, ctts_);
}

TEST_F(ReaderCountSweep, IsNotMadeWithoutNeed) {
  header(slots_[0]).lock = 1;
  line(id(1)).shares = 1;
  line(id(1)).reader_counts_lost = 4;
  gate().sweeps = 4;
  EXPECT_FALSE(swept());
  EXPECT_EQ(header(slots_[0]).lock, 1u);
}

TEST_F(ReaderCountSweep, FollowsTheLossOfAShare) {
  header(slots_[1]).lock = 2;
  line(id(1)).reader_counts_lost = 1;
  EXPECT_TRUE(swept());
  EXPECT_EQ(header(slots_[1]).lock, 0u);
  EXPECT_EQ(gate().sweeps, 1u);
  EXPECT_FALSE(swept());
}

TEST_F(ReaderCountSweep, FollowsTheDeathOfOneThatSharesAndThenItsLineIsCleared) {
  const uint64_t incarnation = cluster_->user(0).worker.endpoint().incarnation();
  line(id(0)) = WorkerLine{1, 2, 999, 0, 0, incarnation, 1, 0};
  header(slots_[0]).lock = 2;
  header(slots_[1]).lock = ctts_;
  die();
  const Result<ResolveReport> report = resolve();
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report.value().left_reader_counts);
  EXPECT_EQ(header(slots_[1]).lock, 0u);
  EXPECT_EQ(header(slots_[0]).lock, 2u);
  EXPECT_EQ(line(dead_).inside, 1u);
  EXPECT_TRUE(swept({dead_}));
  EXPECT_EQ(header(slots_[0]).lock, 0u);
}

// A count may be the number of any worker; it is no worker's id.
TEST_F(ReaderCountSweep, CountsAreNoLocksOfTheDead) {
  die();
  header(slots_[0]).lock = dead_;
  header(slots_[0]).waiter = ctts_;
  const Result<ResolveReport> report = resolve();
  ASSERT_TRUE(report.ok());
  EXPECT_FALSE(report.value().left_reader_counts);
  EXPECT_EQ(header(slots_[0]).waiter, 0u);
  EXPECT_EQ(header(slots_[0]).lock, dead_);
}

TEST_F(ReaderCountSweep, CountsAreNoLocksOfARestartedNode) {
  const WorkerId thread = cluster_->node(1).worker.id();
  header(slots_[1]).lock = thread;
  header(slots_[1]).flags = 0;
  header(slots_[3]).lock = thread;
  cluster_->fabric().kill(thread);
  cluster_->fabric().attach(thread, nullptr);
  cluster_->start_node(1);
  EXPECT_EQ(header(slots_[1]).lock, thread);
  EXPECT_EQ(header(slots_[3]).lock, thread);
}

TEST_F(ReaderCountSweep, IsPutOffWhileATransactionStaysInside) {
  const uint64_t incarnation = cluster_->user(1).worker.endpoint().incarnation();
  line(id(1)) = WorkerLine{1, 2, 999, 0, 0, incarnation, 1, 1};
  header(slots_[0]).lock = 1;
  EXPECT_FALSE(swept());
  EXPECT_EQ(header(slots_[0]).lock, 1u);
  EXPECT_EQ(GateWord::unpack(gate().word).next, 0);
  line(id(1)).inside = 0;
  EXPECT_FALSE(swept());  // not so soon: others had to wait
  cluster_->run(
      node(), [&] { node().scheduler().sleep_for(ReaderCountSweeper::kPutOffFactor * kDrainUs); });
  EXPECT_TRUE(swept());
  EXPECT_EQ(header(slots_[0]).lock, 0u);
}

TEST_F(ReaderCountSweep, ANodeThatIsDownMeansTryAgainLater) {
  header(slots_[0]).lock = 1;
  line(id(1)).reader_counts_lost = 1;
  const WorkerId thread = cluster_->node(1).worker.id();
  cluster_->fabric().kill(thread);
  cluster_->fabric().attach(thread, nullptr);
  EXPECT_EQ(sweep().status().code(), Code::kUnavailable);
  EXPECT_EQ(GateWord::unpack(gate().word).next, 0);
  cluster_->start_node(1);
  EXPECT_TRUE(swept());
  EXPECT_EQ(header(slots_[0]).lock, 0u);
}

TEST_F(ReaderCountSweep, ASuccessorOfADeadNode0ClearsItsLine) {
  line(node().id()).inside = 1;
  line(node().id()).epoch = 2;
  gate().word = GateWord{1, 1, 5}.pack();
  EXPECT_FALSE(swept());
  EXPECT_EQ(line(node().id()).inside, 0u);
  EXPECT_EQ(line(node().id()).epoch, 0u);
}

TEST_F(ReaderCountSweep, RefusesARequestThatMakesNoSense) {
  cluster_->run(node(), [&] {
    VerbCounters counters;
    for (const size_t bytes : {0u, 1u, 2u}) {
      Rpc::Call call;
      call.to = cluster_->node(1).worker.id();
      call.method = kMethodClearReaderCounts;
      call.request.assign(bytes, std::byte{9});
      EXPECT_EQ(node().rpc().call_one(call, counters).code(), Code::kCorrupt);
    }
  });
}

}  // namespace
}  // namespace rdmacc
