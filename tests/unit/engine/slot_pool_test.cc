// Slots that a worker keeps in advance for its inserts: they come with use, become rows by verbs
// alone, and are the node's again when the transaction aborts, the table goes, the worker leaves or
// dies.
#include "engine/coordinator_impl.h"
#include "tests/unit/engine/sim_engine.h"
#include "tests/unit/engine/two_sessions.h"

namespace rdmacc {
namespace {

class SlotPoolTest : public testing::TestWithParam<Protocol> {
 protected:
  SlotPoolTest() : engine_(3, 0, 1) {}

  TxnOptions options() const {
    TxnOptions options;
    options.protocol = GetParam();
    return options;
  }
  TableId make_table(Session& session) {
    TableSpec spec;
    spec.relfilenode = ++tables_;
    spec.record_size = 64;
    spec.history = 3;
    auto table = session.create_table(spec);
    CHECK(table.ok());
    return table->id;
  }
  // Until some are kept; gives the number of rows.
  uint64_t insert_until_kept(Coordinator& coordinator, Session& session, TableId table) {
    for (uint64_t rows = 0; rows < kRowsMax; ++rows) {
      if (kept(coordinator, table) > 0) return rows;
      insert(session, table, "key " + std::to_string(rows));
      session.scheduler().sleep_for(100);
    }
    ADD_FAILURE() << "none are kept";
    return 0;
  }
  void insert(Session& session, TableId table, const std::string& key) {
    ASSERT_TRUE(session.begin(options()).ok());
    ASSERT_TRUE(session.insert(table, key, "row").ok());
    ASSERT_TRUE(session.commit().ok());
  }
  static size_t kept(Coordinator& coordinator, TableId table) {
    return coordinator.impl().state.slots.kept(0, table);
  }
  static uint64_t messages(Coordinator& coordinator) {
    return coordinator.stats().allocation_verbs.messages;
  }
  NodeStatistics statistics(Session& session) { return *session.node_statistics(0); }

  static constexpr uint64_t kRowsMax = 100;
  SimEngine engine_;
  uint32_t tables_ = 0;
};

// Addresses of an era that has ended may be anything: they are not used, even when there is no
// coroutine that could take them back.
TEST_P(SlotPoolTest, NoneOutlastsItsEra) {
  Coordinator& coordinator = engine_.add_coordinator();
  engine_.run(coordinator, [&] {
    Session session(coordinator);
    const TableId table = make_table(session);
    insert_until_kept(coordinator, session, table);
    bool ended = false;
    const auto wait = [&] {
      while (!ended) session.scheduler().sleep_for(100);
    };
    for (int i = 0; i < 10'000 && session.scheduler().spawn(wait);) ++i;
    ASSERT_FALSE(session.scheduler().spawn(wait));
    SlotPool& slots = coordinator.impl().state.slots;
    ASSERT_GT(kept(coordinator, table), 0u);
    slots.renew();
    EXPECT_EQ(kept(coordinator, table), 0u);
    ended = true;
    session.scheduler().sleep_for(1'000);
    slots.renew();
    session.scheduler().sleep_for(1'000);
    insert(session, table, "of the new era");
  });
}

TEST_P(SlotPoolTest, InsertsAskNoNodeAndRowsAreCounted) {
  Coordinator& coordinator = engine_.add_coordinator();
  engine_.run(coordinator, [&] {
    Session session(coordinator);
    const TableId table = make_table(session);
    uint64_t rows = insert_until_kept(coordinator, session, table);
    EXPECT_EQ(rows, statistics(session).rows) << "what is kept is no row";
    const uint64_t before = messages(coordinator);
    for (int i = 0; i < 4; i++) insert(session, table, "key " + std::to_string(rows++));
    EXPECT_EQ(before, messages(coordinator));
    EXPECT_EQ(rows, statistics(session).rows);
    session.scheduler().sleep_for(10'000);  // the node may be splitting a group
    auto locked = session.locked_headers(0, 0);
    ASSERT_TRUE(locked.ok());
    EXPECT_TRUE(locked->headers.empty()) << "no transaction holds what is kept";
    RowView row;
    ASSERT_TRUE(session.begin(options()).ok());
    for (uint64_t i = 0; i < rows; i++) {
      ASSERT_TRUE(session.get(table, "key " + std::to_string(i), row).ok());
      EXPECT_TRUE(row.found);
    }
    ASSERT_TRUE(session.commit().ok());
  });
}

TEST_P(SlotPoolTest, FewInsertsKeepNone) {
  Coordinator& coordinator = engine_.add_coordinator();
  engine_.run(coordinator, [&] {
    Session session(coordinator);
    const TableId table = make_table(session);
    for (int i = 0; i < 5; i++) {
      insert(session, table, "key " + std::to_string(i));
      session.scheduler().sleep_for(1'000'000);
      EXPECT_EQ(0u, kept(coordinator, table));
    }
  });
}

TEST_P(SlotPoolTest, AnAbortGivesThemBack) {
  Coordinator& coordinator = engine_.add_coordinator();
  engine_.run(coordinator, [&] {
    Session session(coordinator);
    const TableId table = make_table(session);
    uint64_t rows = insert_until_kept(coordinator, session, table);
    const size_t before = kept(coordinator, table);
    // Prepared, it has its slots; what it does not commit is kept again.
    ASSERT_TRUE(session.begin(options()).ok());
    ASSERT_TRUE(session.insert(table, "key aborted", "row").ok());
    ASSERT_TRUE(session.prepare(Gtid{1, 2}).ok());
    EXPECT_EQ(before - 1, kept(coordinator, table));
    session.abort();
    EXPECT_EQ(before, kept(coordinator, table));
    EXPECT_EQ(rows, statistics(session).rows);
    insert(session, table, "key " + std::to_string(rows));
  });
}

TEST_P(SlotPoolTest, ADropTakesThemBack) {
  Coordinator& coordinator = engine_.add_coordinator();
  engine_.run(coordinator, [&] {
    Session session(coordinator);
    const uint64_t used = statistics(session).used_bytes;
    const TableId table = make_table(session);
    insert_until_kept(coordinator, session, table);
    ASSERT_TRUE(session.drop_table(table).ok());
    session.scheduler().sleep_for(3'000'000);
    EXPECT_EQ(used, statistics(session).used_bytes);
    // What is still noted here is not ours any more.
    EXPECT_GT(kept(coordinator, table), 0u);
    coordinator.finish_background(1'000'000);
    EXPECT_EQ(used, statistics(session).used_bytes);
  });
}

TEST_P(SlotPoolTest, ANewEraRenewsThem) {
  Coordinator& coordinator = engine_.add_coordinator();
  engine_.run(coordinator, [&] {
    Session session(coordinator);
    const TableId table = make_table(session);
    uint64_t rows = insert_until_kept(coordinator, session, table);
    const uint64_t used = statistics(session).used_bytes;
    EngineContext& engine = coordinator.impl().state.engine;
    engine.enter_era(engine.era);
    EXPECT_GT(kept(coordinator, table), 0u);
    engine.enter_era(engine.era + 1);
    EXPECT_EQ(0u, kept(coordinator, table));
    session.scheduler().sleep_for(1'000'000);
    EXPECT_LT(statistics(session).used_bytes, used);
    insert(session, table, "key " + std::to_string(rows));
  });
}

TEST_P(SlotPoolTest, AWorkerThatLeavesGivesThemBack) {
  Coordinator& coordinator = engine_.add_coordinator();
  engine_.run(coordinator, [&] {
    Session session(coordinator);
    const TableId table = make_table(session);
    const uint64_t rows = insert_until_kept(coordinator, session, table);
    const NodeStatistics before = statistics(session);
    coordinator.finish_background(1'000'000);
    EXPECT_EQ(0u, kept(coordinator, table));
    session.scheduler().sleep_for(1'000'000);
    const NodeStatistics after = statistics(session);
    EXPECT_EQ(rows, after.rows);
    EXPECT_LT(after.used_bytes, before.used_bytes);
  });
}

TEST_P(SlotPoolTest, ThoseOfADeadWorkerAreFound) {
  Coordinator& dying = engine_.add_coordinator();
  Coordinator& other = engine_.add_coordinator();
  TableId table = kNoTable;
  uint64_t rows = 0, used = 0;
  engine_.run(dying, [&] {
    Session session(dying);
    table = make_table(session);
    rows = insert_until_kept(dying, session, table);
    used = statistics(session).used_bytes;
  });
  engine_.fabric().kill(dying.worker().id());
  engine_.run(other, [&] {
    Session session(other);
    session.scheduler().sleep_for(5'000'000);
    const NodeStatistics after = statistics(session);
    EXPECT_EQ(rows, after.rows);
    EXPECT_LT(after.used_bytes, used);
  });
}

INSTANTIATE_TEST_SUITE_P(Protocols, SlotPoolTest, testing::ValuesIn(protocols_without_order()),
                         [](const testing::TestParamInfo<Protocol>& each) {
                           return std::string(protocol_name(each.param));
                         });

}  // namespace
}  // namespace rdmacc
