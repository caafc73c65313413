// The order of CALVIN: procedures on several nodes, replay of a log, restarts, and that no
// epoch begins without work.
#include <gtest/gtest.h>

#include "tests/unit/calvin/order_cluster.h"

namespace rdmacc {
namespace {

constexpr uint16_t kCodes[] = {0, 128, 256, 384};

// Clients submit random requests from several coordinators at once; returns how many ended.
uint64_t run_random_log(OrderCluster& cluster, uint64_t seed, uint32_t requests_each) {
  uint64_t ended = 0, running = 0;
  for (uint32_t c = 0; c < 3; c++) {
    Coordinator& coordinator = cluster.add_coordinator();
    if (c == 0) cluster.create_table(coordinator);
    for (uint32_t i = 0; i < 2; i++) {
      running++;
      CHECK(coordinator.worker().scheduler().spawn([&, seed, c, i] {
        Random random(seed * 100 + c * 10 + i);
        for (uint32_t n = 0; n < requests_each; n++) {
          OrderedOutcome outcome;
          bool unknown = false;
          const auto request =
              random_request(cluster, random, 6, kCodes[random.below(std::size(kCodes))]);
          const Status status = cluster.submit(coordinator, request, outcome, unknown);
          EXPECT_TRUE(status.ok() || unknown) << status.to_string();
          ended += status.ok() ? 1 : 0;
        }
        running--;
      }));
    }
  }
  EXPECT_TRUE(cluster.run_until([&] { return running == 0; })) << "seed " << seed;
  return ended;
}

TEST(Order, ProceduresComeToWhatOneAfterTheOtherComesTo) {
  for (uint64_t seed = 1; seed <= 10; seed++) {
    OrderCluster cluster(seed, static_cast<NodeId>(2 + seed % 2));
    EXPECT_EQ(run_random_log(cluster, seed, 15), 90u);
    EXPECT_EQ(cluster.log().size(), 90u);
    const OrderCluster::Rows rows = cluster.rows(cluster.add_coordinator());
    EXPECT_FALSE(rows.empty());
    EXPECT_EQ(rows, cluster.model()) << "seed " << seed;
  }
}

// Rows and their stamps, after other message delays, lost and doubled datagrams.
TEST(Order, OneLogIsOneState) {
  for (uint64_t seed = 1; seed <= 5; seed++) {
    OrderCluster first(seed, 3);
    run_random_log(first, seed, 12);
    const OrderCluster::Rows rows = first.rows(first.add_coordinator());
    for (uint64_t timing = 1; timing <= 3; timing++) {
      SimOptions options;
      options.loss_percent = static_cast<uint32_t>(5 * (timing - 1));
      options.duplicate_percent = static_cast<uint32_t>(5 * (timing - 1));
      OrderCluster again(1000 * seed + timing, 3, options);
      Coordinator& coordinator = again.add_coordinator();
      again.create_table(coordinator);
      ASSERT_EQ(again.table(), first.table());
      again.replay(coordinator, first.log());
      EXPECT_EQ(again.rows(coordinator), rows) << "seed " << seed << " timing " << timing;
    }
  }
}

TEST(Order, RestartedNodesGoOnWhereTheyWere) {
  uint64_t restarts = 0;
  for (uint64_t seed = 1; seed <= 60; seed++) {
    OrderCluster cluster(seed, static_cast<NodeId>(2 + seed % 2));
    Random random(seed);
    uint64_t running = 0;
    Coordinator& coordinator = cluster.add_coordinator();
    cluster.create_table(coordinator);
    for (uint32_t i = 0; i < 4; i++) {
      running++;
      CHECK(coordinator.worker().scheduler().spawn([&, i] {
        Random own(seed * 10 + i);
        for (uint32_t n = 0; n < 12; n++) {
          OrderedOutcome outcome;
          bool unknown = false;
          const auto request =
              random_request(cluster, own, 6, kCodes[own.below(std::size(kCodes))]);
          const Status status = cluster.submit(coordinator, request, outcome, unknown);
          EXPECT_TRUE(status.ok() || unknown) << status.to_string();
        }
        running--;
      }));
    }
    for (uint32_t fault = 0; fault < 3 && running > 0; fault++) {
      const uint64_t at = cluster.fabric().events() + 50 + random.below(2500);
      static_cast<void>(
          cluster.run_until([&] { return running == 0 || cluster.fabric().events() >= at; }));
      if (running == 0) break;
      cluster.restart_node(static_cast<NodeId>(random.below(cluster.topology().nodes)),
                           random.below(300'000));
      restarts++;
    }
    ASSERT_TRUE(cluster.run_until([&] { return running == 0; })) << "seed " << seed;
    EXPECT_EQ(cluster.rows(cluster.add_coordinator()), cluster.model()) << "seed " << seed;
  }
  EXPECT_GT(restarts, 40u);
}

TEST(Order, RollbackIsTheSameEverywhereAndToldWithItsReads) {
  OrderCluster cluster(1, 2);
  Coordinator& coordinator = cluster.add_coordinator();
  cluster.create_table(coordinator);
  ASSERT_TRUE(cluster.run(coordinator, [&] {
    OrderedOutcome outcome;
    bool unknown = false;
    for (const char* key : {"a", "b", "c", "d"}) {
      auto put = cluster.request(OrderCluster::kPut, {key}, {key}, "100", StagePlan());
      ASSERT_TRUE(cluster.submit(coordinator, put, outcome, unknown).ok());
      EXPECT_EQ(outcome.writes.size(), 1u);
    }
    auto move =
        cluster.request(OrderCluster::kTransfer, {"a", "b"}, {"a", "b"}, "101", StagePlan());
    ASSERT_TRUE(cluster.submit(coordinator, move, outcome, unknown).ok());
    EXPECT_TRUE(outcome.rolled_back);
    EXPECT_EQ(outcome.output, "100");
    EXPECT_TRUE(outcome.writes.empty());
    move.inputs = "100";
    ASSERT_TRUE(cluster.submit(coordinator, move, outcome, unknown).ok());
    EXPECT_FALSE(outcome.rolled_back);
    EXPECT_EQ(outcome.reads.at(1).row, "100");
  }));
  const OrderCluster::Rows rows = cluster.rows(coordinator);
  EXPECT_EQ(rows.at("a").first, "0");
  EXPECT_EQ(rows.at("b").first, "200");
  EXPECT_EQ(rows.at("a").second, rows.at("b").second);
}

TEST(Order, RowsUnderDerivedKeysAreStoredWhereTheyBelong) {
  OrderCluster cluster(1, 3);
  Coordinator& coordinator = cluster.add_coordinator();
  cluster.create_table(coordinator);
  ASSERT_TRUE(cluster.run(coordinator, [&] {
    OrderedOutcome outcome;
    bool unknown = false;
    auto next = cluster.request(OrderCluster::kNumber, {"n"}, {"n"}, "", StagePlan());
    EXPECT_EQ(cluster.submit(coordinator, next, outcome, unknown).code(), Code::kInvalidArgument);
    next.derived_inserts = true;
    for (int i = 0; i < 20; i++) {
      ASSERT_TRUE(cluster.submit(coordinator, next, outcome, unknown).ok());
      EXPECT_EQ(outcome.writes.size(), 2u);
    }
  }));
  const OrderCluster::Rows rows = cluster.rows(coordinator);
  EXPECT_EQ(rows.size(), 21u);
  EXPECT_EQ(rows.at("n").first, "20");
  for (int i = 1; i <= 20; i++) {
    EXPECT_EQ(rows.at("no" + std::to_string(i)).first, std::to_string(i));
  }
}

TEST(Order, AProcedureThatEndsInAnErrorHasNoEffect) {
  OrderCluster cluster(1, 2);
  Coordinator& coordinator = cluster.add_coordinator();
  cluster.create_table(coordinator);
  ASSERT_TRUE(cluster.run(coordinator, [&] {
    OrderedOutcome outcome;
    bool unknown = false;
    auto stale = cluster.request(OrderCluster::kStale, {"a"}, {"a"}, "1", StagePlan());
    const Status status = cluster.submit(coordinator, stale, outcome, unknown);
    EXPECT_EQ(reason_of(status), AbortReason::kReconnaissanceStale);
    EXPECT_FALSE(unknown);
  }));
  EXPECT_TRUE(cluster.rows(coordinator).empty());
}

TEST(Order, UnknownProceduresAndUndeclaredKeysHaveNoEffect) {
  OrderCluster cluster(1, 2);
  Coordinator& coordinator = cluster.add_coordinator();
  cluster.create_table(coordinator);
  ASSERT_TRUE(cluster.run(coordinator, [&] {
    OrderedOutcome outcome;
    bool unknown = false;
    auto unheard = cluster.request(77, {"a"}, {"a"}, "1", StagePlan());
    EXPECT_EQ(cluster.submit(coordinator, unheard, outcome, unknown).code(),
              Code::kInvalidArgument);
    auto other = cluster.request(OrderCluster::kPut, {"a"}, {"b"}, "1", StagePlan());
    EXPECT_EQ(cluster.submit(coordinator, other, outcome, unknown).code(), Code::kInvalidArgument);
    auto twice = cluster.request(OrderCluster::kPut, {"a"}, {"a", "a"}, "1", StagePlan());
    EXPECT_EQ(cluster.submit(coordinator, twice, outcome, unknown).code(), Code::kCorrupt);
  }));
  EXPECT_TRUE(cluster.rows(coordinator).empty());
}

TEST(Order, NoEpochBeginsWithoutRequests) {
  OrderCluster cluster(1, 3);
  Coordinator& coordinator = cluster.add_coordinator();
  cluster.create_table(coordinator);
  OrderedOutcome outcome;
  bool unknown = false;
  ASSERT_TRUE(cluster.run(coordinator, [&] {
    auto put = cluster.request(OrderCluster::kPut, {"a"}, {"a"}, "1", StagePlan());
    ASSERT_TRUE(cluster.submit(coordinator, put, outcome, unknown).ok());
    coordinator.worker().scheduler().sleep_for(20'000);
  }));
  const uint64_t epoch = cluster.area(0).progress().epoch;
  uint64_t messages = 0, writes = 0;
  for (NodeId node = 0; node < 3; node++) {
    messages += cluster.node_worker(node).counters().messages;
    writes += cluster.node_worker(node).counters().writes;
  }
  ASSERT_TRUE(
      cluster.run(coordinator, [&] { coordinator.worker().scheduler().sleep_for(5'000'000); }));
  for (NodeId node = 0; node < 3; node++) {
    EXPECT_EQ(cluster.area(node).progress().epoch, epoch);
    messages -= cluster.node_worker(node).counters().messages;
    writes -= cluster.node_worker(node).counters().writes;
  }
  EXPECT_EQ(messages, 0u);
  EXPECT_EQ(writes, 0u);
}

}  // namespace
}  // namespace rdmacc
