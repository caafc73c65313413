// What others can see of a session's transactions: measurements, locks, its place at the gate.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "engine/protocols/registry.h"
#include "engine/session.h"
#include "engine/txn/rule/rule.h"
#include "engine/txn/transaction/txn_observer.h"
#include "tests/unit/engine/sim_engine.h"

namespace rdmacc {
namespace {

struct Recorded : TxnObserver {
  explicit Recorded(const TxnOptions& options) : protocol(options.protocol), plan(options.plan) {}
  void stage_begins(Stage stage) override { begun.push_back(stage); }
  void stage_done(Protocol of, Stage stage, Primitive primitive, uint64_t) override {
    EXPECT_EQ(of, protocol);
    begun_before[stage] = begun;
    EXPECT_EQ(primitive, plan.of(stage));
    ++stages[stage];
  }
  void transaction_done(const TxnEnd& end) override { ends.push_back(end); }

  const Protocol protocol;
  const StagePlan plan;
  std::map<Stage, int> stages;
  std::vector<Stage> begun;
  std::map<Stage, std::vector<Stage>> begun_before;  // its end
  std::vector<TxnEnd> ends;
};

class MonitoringTest : public testing::TestWithParam<Protocol> {
 protected:
  // Runs `body` in a coroutine of a coordinator with a table of one row.
  void with_table(const std::function<void(Coordinator&, Session&, TableId)>& body) {
    Coordinator& coordinator = engine_.add_coordinator();
    engine_.run(coordinator, [&] {
      Session session(coordinator);
      TableSpec spec;
      spec.database = 5;
      spec.relfilenode = 77;
      auto table = session.create_table(spec);
      ASSERT_TRUE(table.ok()) << table.status().to_string();
      ASSERT_TRUE(session.begin(options_).ok());
      ASSERT_TRUE(session.insert(table->id, "key", "0").ok());
      ASSERT_TRUE(session.commit().ok());
      body(coordinator, session, table->id);
    });
  }
  std::vector<LockedHeader> locked(Session& session) {
    std::vector<LockedHeader> all;
    for (NodeId node = 0; node < 2; ++node) {
      auto of_node = session.locked_headers(node, 0);
      EXPECT_TRUE(of_node.ok() && of_node->next == 0);
      if (!of_node.ok()) continue;
      all.insert(all.end(), of_node->headers.begin(), of_node->headers.end());
    }
    return all;
  }

  SimEngine engine_{1, 1};
  TxnOptions options_{.protocol = GetParam(), .plan = StagePlan(kStageCodeMax - 4)};
};

TEST_P(MonitoringTest, ObserverIsToldStagesAndEnds) {
  with_table([&](Coordinator& coordinator, Session& session, TableId table) {
    Recorded recorded(options_);
    coordinator.set_observer(&recorded);
    ASSERT_TRUE(session.begin(options_).ok());
    ASSERT_TRUE(session.put(table, "key", "1").ok());
    EXPECT_TRUE(recorded.ends.empty());
    ASSERT_TRUE(session.commit().ok());
    ASSERT_TRUE(session.begin(options_).ok());
    session.abort();  // was never let in
    ASSERT_TRUE(session.begin(options_).ok());
    ASSERT_TRUE(session.put(table, "key", "2").ok());
    session.abort();
    coordinator.set_observer(nullptr);

    if (rules_of(GetParam())->commits_in_order) {
      EXPECT_EQ(recorded.stages[Stage::kBroadcast], 1) << "the one that was handed over";
    } else {
      EXPECT_GT(recorded.stages[Stage::kLock], 0);
      EXPECT_EQ(recorded.stages[Stage::kLog], 1);
      EXPECT_EQ(recorded.stages[Stage::kCommit], 1);
    }
    ASSERT_EQ(recorded.ends.size(), 2u);
    EXPECT_TRUE(recorded.ends[0].committed);
    EXPECT_FALSE(recorded.ends[1].committed);
    EXPECT_EQ(recorded.ends[1].reason, AbortReason::kNone);
    const uint16_t stages = stages_of(GetParam());
    EXPECT_EQ(recorded.ends[0].plan.code(), options_.plan.code() & stages);
    EXPECT_EQ(recorded.ends[0].nodes, 1u);
    const VerbCounters& verbs = recorded.ends[0].verbs;
    EXPECT_GT(verbs.reads + verbs.writes + verbs.atomics + verbs.messages, 0u);
    EXPECT_GT(verbs.round_trips, 0u);
  });
}

TEST_P(MonitoringTest, OneRoundCommitsAndReleasesWhatWasReadUnderALock) {
  if (!rules_of(GetParam())->locks_what_it_reads()) return;
  with_table([&](Coordinator& coordinator, Session& session, TableId table) {
    Recorded recorded(options_);
    coordinator.set_observer(&recorded);
    ASSERT_TRUE(session.begin(options_).ok());
    RowView row;
    ASSERT_TRUE(session.get(table, "absent", row).ok());
    ASSERT_TRUE(session.put(table, "key", "1").ok());
    EXPECT_FALSE(locked(session).empty());
    ASSERT_TRUE(session.commit().ok());
    coordinator.set_observer(nullptr);
    const std::vector<Stage>& begun = recorded.begun_before[Stage::kCommit];
    EXPECT_EQ(1, std::count(begun.begin(), begun.end(), Stage::kCommit));
    EXPECT_EQ(1, std::count(begun.begin(), begun.end(), Stage::kRelease));
    EXPECT_TRUE(locked(session).empty());
  });
}

TEST_P(MonitoringTest, LocksAndTheGateShowTheSession) {
  with_table([&](Coordinator& coordinator, Session& session, TableId table) {
    EXPECT_TRUE(locked(session).empty());
    ASSERT_TRUE(session.begin(options_).ok());
    RowView row;
    ASSERT_TRUE(session.get(table, "key", row).ok());
    if (rules_of(GetParam())->locks_what_it_reads()) {
      const std::vector<LockedHeader> headers = locked(session);
      ASSERT_EQ(headers.size(), 1u);
      EXPECT_EQ(headers[0].relfilenode, 77u);
      EXPECT_EQ(headers[0].table, table);
      const std::vector<LockHold> holds = holds_of(headers[0]);
      ASSERT_EQ(holds.size(), 1u);
      EXPECT_EQ(holds[0].worker, coordinator.worker().id());
      EXPECT_LE(holds[0].since_us, coordinator.worker().endpoint().now_us());
    }
    GateLine gate;
    std::vector<WorkerLine> lines;
    ASSERT_TRUE(session.gate_state(&gate, &lines).ok());
    EXPECT_EQ(GateWord::unpack(gate.word).open, static_cast<uint8_t>(GetParam()) + 1);
    ASSERT_GT(lines.size(), coordinator.worker().id());
    EXPECT_EQ(lines[coordinator.worker().id()].inside, static_cast<uint8_t>(GetParam()) + 1u);
    ASSERT_TRUE(session.commit().ok());
    EXPECT_TRUE(locked(session).empty());
  });
}

INSTANTIATE_TEST_SUITE_P(Protocols, MonitoringTest,
                         testing::ValuesIn(available_protocols().begin(),
                                           available_protocols().end()),
                         [](const auto& of) { return std::string(protocol_name(of.param)); });

}  // namespace
}  // namespace rdmacc
