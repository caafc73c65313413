#include "engine/log/resolve.h"

#include "engine/cluster/gate.h"
#include "engine/storage/layout/sundial_word.h"
#include "tests/unit/log/log_cluster.h"

namespace rdmacc {
namespace {

// A coordinator that dies with a transaction on both nodes under way: live tuples that it has
// locked, and fresh slots of inserts.
class Resolution : public testing::Test {
 protected:
  void SetUp() override { prepare(1); }

  void prepare(uint64_t seed) {
    placements_.clear();
    cluster_ = std::make_unique<LogCluster>(seed, NodeId{2});
    LogUser& user = cluster_->user(0);
    dead_ = user.worker.id();
    ctts_ = (uint64_t{1000} << 16) | dead_;
    const auto slots = cluster_->allocate_slots(user, ctts_, {0, 1, 0, 1});
    live_.assign(slots.begin(), slots.begin() + 2);
    fresh_.assign(slots.begin() + 2, slots.end());
    for (const GlobalAddress slot : live_) {
      cluster_->header(slot).flags = kFlagLive;
      cluster_->header(slot).wts = kOldStamp;
    }
  }

  Payload payload() const {
    LogRecord record;
    record.lock_ctts = ctts_;
    record.stamp = kNewStamp;
    const std::string bytes = std::string(4, '\0') + std::string(80, 'r');
    for (const auto* slots : {&live_, &fresh_}) {
      for (const GlobalAddress slot : *slots) {
        Write write;
        write.header = slot;
        write.kind = slots == &live_ ? WriteKind::kUpdate : WriteKind::kInsert;
        write.record = bytes;
        record.writes.push_back(write);
      }
    }
    Payload encoded;
    encode(record, encoded);
    return encoded;
  }

  // The entry reaches `arrived` of the nodes whole, and the other without its last cache line.
  void log_to(std::vector<NodeId> nodes, const std::vector<NodeId>& arrived) {
    LogUser& user = cluster_->user(0);
    arena_ = std::make_unique<VerbArena>(user.worker.pool());
    cluster_->run(user.worker, [&] {
      VerbCounters counters;
      ASSERT_TRUE(
          user.log
              .place(LoggedBytes(payload()), ctts_, nodes, *arena_, nullptr, counters, placements_)
              .ok());
      DoorbellBatch batch(user.worker.scheduler(), counters);
      const RegionLayout layout = cluster_->layout();
      for (LogPlacement& placement : placements_) {
        const bool whole =
            std::find(arrived.begin(), arrived.end(), placement.node) != arrived.end();
        if (!whole) placement.entry = placement.entry.first(placement.entry.size() - 64);
        ASSERT_TRUE(add_log_writes(layout, placement, *arena_, batch));
      }
      ASSERT_TRUE(batch.execute().ok());
    });
  }

  void die() {
    arena_.reset();
    cluster_->kill(cluster_->user(0));
    cluster_->wait_departed();
  }

  Status install(const LogRecord& record, VerbCounters& counters) {
    ++installs_;
    Worker& by = cluster_->node(0).worker;
    VerbArena arena(by.pool());
    for (const Write& write : record.writes) {
      auto* words = arena.allocate_array<uint64_t>(4);
      DoorbellBatch batch(by.scheduler(), counters);
      batch.read(write.header.plus(kOffsetOfLock), words, 8);
      RDMACC_RETURN_IF_ERROR(batch.execute());
      if (words[0] != record.lock_ctts) continue;
      words[1] = record.stamp;
      words[2] = pack_words(static_cast<uint32_t>(write.record.size()), kFlagLive);
      words[3] = 0;
      batch.write(write.header.plus(kOffsetOfWts), words + 1, 8);
      batch.write(write.header.plus(kOffsetOfLength), words + 2, 8);
      batch.write(write.header.plus(kOffsetOfLock), words + 3, 8);
      RDMACC_RETURN_IF_ERROR(batch.execute());
    }
    return Status::ok_status();
  }

  Result<ResolveReport> resolve() {
    Result<ResolveReport> result = Status(Code::kCorrupt, "did not run");
    cluster_->run(cluster_->node(0).worker, [&] { result = resolve_once(); });
    return result;
  }
  Result<ResolveReport> resolve_once() {
    VerbCounters counters;
    return resolve_worker(
        cluster_->node(0).worker, cluster_->topology(), dead_,
        [this](const LogRecord& record, VerbCounters& c) { return install(record, c); }, counters);
  }

  void expect_committed() {
    for (const auto* slots : {&live_, &fresh_}) {
      for (const GlobalAddress slot : *slots) {
        EXPECT_EQ(cluster_->header(slot).lock, 0u);
        EXPECT_EQ(cluster_->header(slot).wts, kNewStamp);
        EXPECT_EQ(cluster_->header(slot).flags, kFlagLive);
      }
    }
  }
  void expect_aborted() {
    for (const GlobalAddress slot : live_) {
      EXPECT_EQ(cluster_->header(slot).lock, 0u);
      EXPECT_EQ(cluster_->header(slot).wts, kOldStamp);
    }
    for (const GlobalAddress slot : fresh_) {
      EXPECT_EQ(cluster_->header(slot).lock, 0u);
      EXPECT_EQ(cluster_->header(slot).flags, 0u);
    }
  }

  static constexpr uint64_t kOldStamp = 5, kNewStamp = 6;
  std::unique_ptr<LogCluster> cluster_;
  std::unique_ptr<VerbArena> arena_;
  std::vector<LogPlacement> placements_;
  std::vector<GlobalAddress> live_, fresh_;
  WorkerId dead_ = 0;
  uint64_t ctts_ = 0;
  int installs_ = 0;
};

TEST_F(Resolution, ATransactionThatNeverLoggedIsAborted) {
  die();
  const auto report = resolve();
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_EQ(report.value().committed, 0u);
  EXPECT_EQ(report.value().locks_released, 2u);
  EXPECT_EQ(report.value().slots_discarded, 2u);
  expect_aborted();
}

TEST_F(Resolution, OneCompleteEntryCommitsEverywhere) {
  log_to({0, 1}, {1});
  die();
  const auto report = resolve();
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_EQ(report.value().committed, 1u);
  EXPECT_EQ(report.value().writes_installed, 4u);
  EXPECT_EQ(report.value().slots_discarded, 0u);
  EXPECT_EQ(installs_, 1);
  expect_committed();
}

TEST_F(Resolution, CopiesOfOneEntryAreInstalledOnce) {
  log_to({0, 1}, {0, 1});
  die();
  ASSERT_TRUE(resolve().ok());
  EXPECT_EQ(installs_, 1);
  expect_committed();
}

TEST_F(Resolution, APartialEntryIsNone) {
  log_to({0, 1}, {});
  die();
  const auto report = resolve();
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report.value().committed, 0u);
  expect_aborted();
}

TEST_F(Resolution, DoneAgainItChangesNothing) {
  log_to({0, 1}, {0});
  die();
  ASSERT_TRUE(resolve().ok());
  cluster_->header(live_[0]).lock = 12'345;  // another transaction's by now
  const auto again = resolve();
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again.value().committed, 0u);
  EXPECT_EQ(again.value().locks_released, 0u);
  EXPECT_EQ(cluster_->header(live_[0]).lock, 12'345u);
  cluster_->header(live_[0]).lock = 0;
  expect_committed();
}

TEST_F(Resolution, ALiveWorkerIsRefused) {
  EXPECT_EQ(resolve().status().code(), Code::kInvalidArgument);
  EXPECT_NE(cluster_->header(live_[0]).lock, 0u);
  dead_ = 0;  // a node thread
  EXPECT_EQ(resolve().status().code(), Code::kInvalidArgument);
  dead_ = 5'000;
  EXPECT_EQ(resolve().status().code(), Code::kInvalidArgument);
}

TEST_F(Resolution, ANewOwnerOfTheSlotIsRefused) {
  die();
  ASSERT_TRUE(resolve().ok());
  cluster_->fabric().release(dead_);
  ASSERT_EQ(cluster_->add_user().worker.id(), dead_);
  EXPECT_EQ(resolve().status().code(), Code::kInvalidArgument);
}

TEST_F(Resolution, OtherWordsOfTheDeadWorkerAreClearedWithItsLocks) {
  Header& header = cluster_->header(live_[0]);
  header.waiter = ctts_;
  header.sundial = sundial_locked_word(77, dead_);
  die();
  ASSERT_TRUE(resolve().ok());
  EXPECT_EQ(header.waiter, 0u);
  EXPECT_EQ(header.sundial, sundial_unlocked_word(77, kSundialDeltaMax));
}

TEST_F(Resolution, ClearsTheWorkersLineInTheGateButNotItsLastTimestamp) {
  auto* line =
      reinterpret_cast<WorkerLine*>(cluster_->region(0) + cluster_->layout().worker_line(dead_));
  *line = WorkerLine{1, 7, 999, 2, 5, 1, 0, 0};
  die();
  ASSERT_TRUE(resolve().ok());
  EXPECT_EQ(line->inside, 0u);
  EXPECT_EQ(line->epoch, 0u);
  EXPECT_EQ(line->waiting_for, 0u);
  EXPECT_EQ(line->last_ctts, 999u);
}

TEST_F(Resolution, ANodeThatIsDownMeansTryAgainLater) {
  log_to({1}, {1});
  die();
  cluster_->fabric().kill(cluster_->node(1).worker.id());
  EXPECT_EQ(resolve().status().code(), Code::kUnavailable);
  cluster_->start_node(1);
  ASSERT_TRUE(resolve().ok());
  expect_committed();
}

// Node 0 dies at any event of the resolution, is started again and resolves again: the outcome
// is the same, and never a mixture.
TEST_F(Resolution, AResolverThatDiesIsFollowedByAnother) {
  int interrupted = 0;
  Random random(17);
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    prepare(seed);
    const bool commits = seed % 2 == 0;
    log_to({0, 1}, commits ? std::vector<NodeId>{1} : std::vector<NodeId>{});
    die();
    bool done = false;
    CHECK(cluster_->node(0).worker.scheduler().spawn([&] { done = resolve_once().ok(); }));
    const uint64_t kill_after = random.below(76'000);
    uint64_t events = 0;
    cluster_->fabric().run_until([&] { return done || ++events == kill_after; }, 1'000'000);
    interrupted += done ? 0 : 1;
    cluster_->fabric().kill(cluster_->node(0).worker.id());
    cluster_->start_node(0);
    const auto report = resolve();
    ASSERT_TRUE(report.ok()) << "seed " << seed << " " << report.status().to_string();
    if (commits) {
      expect_committed();
    } else {
      expect_aborted();
    }
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(interrupted, 10);
}

TEST_F(Resolution, EntriesAreInstalledInTheOrderOfTheirStamps) {
  LogUser& user = cluster_->user(0);
  std::vector<uint64_t> installed;
  cluster_->run(user.worker, [&] {
    const std::vector<std::pair<uint64_t, NodeId>> stamps{{30, 0}, {10, 1}, {20, 0}, {5, 1}};
    for (const auto& [stamp, node] : stamps) {
      LogRecord record;
      record.lock_ctts = (stamp << 16) | dead_;
      record.stamp = stamp;
      Payload encoded;
      encode(record, encoded);
      VerbArena arena(user.worker.pool());
      std::vector<LogPlacement> placements;
      ASSERT_TRUE(append(*cluster_, user, encoded, record.lock_ctts, std::vector<NodeId>{node},
                         arena, placements)
                      .ok());
    }
  });
  die();
  cluster_->run(cluster_->node(0).worker, [&] {
    VerbCounters counters;
    const auto note = [&](const LogRecord& record, VerbCounters&) {
      installed.push_back(record.stamp);
      return Status::ok_status();
    };
    ASSERT_TRUE(
        resolve_worker(cluster_->node(0).worker, cluster_->topology(), dead_, note, counters).ok());
  });
  EXPECT_EQ(installed, (std::vector<uint64_t>{5, 10, 20, 30}));
}

TEST_F(Resolution, AFailedInstallReleasesNothing) {
  log_to({0, 1}, {0, 1});
  die();
  cluster_->run(cluster_->node(0).worker, [&] {
    VerbCounters counters;
    const auto fail = [](const LogRecord&, VerbCounters&) { return Status(Code::kUnavailable); };
    EXPECT_EQ(resolve_worker(cluster_->node(0).worker, cluster_->topology(), dead_, fail, counters)
                  .status()
                  .code(),
              Code::kUnavailable);
  });
  EXPECT_EQ(cluster_->header(live_[0]).lock, ctts_);
  ASSERT_TRUE(resolve().ok());
  expect_committed();
}

// A request of the dead coordinator that a node is still carrying out must not complete an entry
// after the rings were read: here it does so at its end, and the transaction counts as committed.
TEST_F(Resolution, WaitsForRequestsOfTheDeadThatAreUnderWay) {
  constexpr MethodId kSlowLog = 900;
  LogNode& node = cluster_->node(1);
  LogUser& user = cluster_->user(0);
  VerbArena node_arena(node.worker.pool());
  bool started = false, ended = false;
  node.worker.rpc().handle(
      kSlowLog, node.fence.guard(
                    [&](WorkerId from, std::span<const std::byte> request, Rpc::Bytes&) -> Status {
                      MessageReader in(request);
                      auto placement = decode_placement(in, from, 1, node_arena);
                      if (!placement.ok()) return placement.status();
                      started = true;
                      node.worker.scheduler().sleep_for(5'000);
                      DoorbellBatch batch(node.worker.scheduler(), node.worker.counters());
                      CHECK(add_log_writes(cluster_->layout(), *placement, node_arena, batch));
                      RDMACC_RETURN_IF_ERROR(batch.execute());
                      ended = true;
                      return Status::ok_status();
                    }));
  arena_ = std::make_unique<VerbArena>(user.worker.pool());
  CHECK(user.worker.scheduler().spawn([&] {
    VerbCounters counters;
    CHECK(user.log
              .place(LoggedBytes(payload()), ctts_, std::vector<NodeId>{1}, *arena_, nullptr,
                     counters, placements_)
              .ok());
    Rpc::Call call;
    call.to = node.worker.id();
    call.method = kSlowLog;
    MessageWriter writer(call.request);
    encode_placement(placements_[0], writer);
    static_cast<void>(user.worker.rpc().call_one(call, counters).ok());
  }));
  ASSERT_TRUE(cluster_->fabric().run_until([&] { return started; }, 1'000'000));
  die();
  EXPECT_FALSE(ended);
  ASSERT_TRUE(resolve().ok());
  EXPECT_TRUE(ended);
  expect_committed();
}

}  // namespace
}  // namespace rdmacc
