// A node that is lost while a transaction logs, and is away for longer than the transaction waits:
// whatever resolution decides later, it decides for all of the transaction's rows.
#include <gtest/gtest.h>

#include "engine/storage/layout/key_hash.h"
#include "tests/unit/engine/sim_engine.h"

namespace rdmacc {
namespace {

constexpr NodeId kLost = 1;
constexpr size_t kKeys = 12;
constexpr uint64_t kEventsOfCommit = 100;
constexpr uint64_t kShortUs = 5'000'000, kLongUs = 100'000'000;  // a transaction waits for 60 s

class LostNodeCommit : public testing::Test {
 protected:
  static std::string key(int i) { return "key " + std::to_string(i); }
  // Of some on every node, or, with all of them on the node that is lost, of a transaction that
  // ends there in one request.
  std::vector<std::string> keys(TableId table, uint16_t nodes) const {
    std::vector<std::string> keys;
    const PartitionMap map(nodes, 0);
    for (int i = 0; keys.size() < kKeys; ++i) {
      if (!at_one_owner_ || map.primary_of(hash_key(table, key(i))) == kLost) {
        keys.push_back(key(i));
      }
    }
    return keys;
  }
  static TxnOptions options() {
    TxnOptions options;
    options.protocol = Protocol::kNowait;
    options.plan = StagePlan(0);  // by RPC, a node may have done what its answer does not tell
    return options;
  }

  // All rows are written by one transaction; node 1 dies `after` so many events of its commit.
  void run(uint64_t after, uint64_t away_us) {
    SimEngine engine(after + 1, /*replicas=*/0, /*nodes=*/3, 96ull << 20, /*one_by_one=*/false,
                     /*dead_node_unreachable=*/true);
    Coordinator& doomed = engine.add_coordinator();
    Coordinator& other = engine.add_coordinator();
    TableId table = kNoTable;
    auto session = std::make_unique<Session>(doomed);
    engine.run(doomed, [&] {
      TableSpec spec;
      spec.relfilenode = 1;
      spec.record_size = 64;
      table = session->create_table(spec)->id;
      keys_ = keys(table, 3);
      ASSERT_TRUE(session->begin(options()).ok());
      for (const std::string& each : keys_) {
        ASSERT_TRUE(session->insert(table, each, "old").ok());
      }
      ASSERT_TRUE(session->commit().ok());
    });
    bool ended = false, begun = false;
    Status status;
    ASSERT_TRUE(doomed.worker().scheduler().spawn([&] {
      ASSERT_TRUE(session->begin(options()).ok());
      for (const std::string& each : keys_) {
        ASSERT_TRUE(session->put(table, each, "new").ok());
      }
      begun = true;
      status = session->commit();
      ended = true;
    }));
    ASSERT_TRUE(engine.run_until([&] { return begun; }));
    uint64_t events = 0;
    ASSERT_TRUE(engine.run_until([&] { return ended || ++events > after; }));
    if (ended) return;
    engine.kill_node(kLost);
    const uint64_t back_ns = engine.fabric().now_ns() + away_us * 1000;
    static_cast<void>(engine.run_until([&] { return engine.fabric().now_ns() > back_ns; }));
    engine.start_node(kLost);
    ASSERT_TRUE(engine.run_until([&] { return ended; }));
    const bool unknown = session->commit_outcome_unknown();
    unknown_ += unknown ? 1 : 0;
    session.reset();
    engine.fabric().kill(doomed.worker().id());
    std::vector<std::string> rows;
    engine.run(other, [&] { read_all(other, table, rows); });
    ASSERT_EQ(rows.size(), kKeys);
    for (const std::string& row : rows) {
      EXPECT_EQ(row, rows.front()) << "after " << after;
    }
    if (status.ok() || !unknown) {
      EXPECT_EQ(rows.front(), status.ok() ? "new" : "old") << "after " << after;
    }
  }

  // Once the dead worker is resolved.
  void read_all(Coordinator& coordinator, TableId table, std::vector<std::string>& rows) {
    Session session(coordinator);
    Status status(Code::kAborted, "");
    for (int tries = 0; tries < 1000 && !status.ok(); ++tries) {
      rows.clear();
      status = session.begin(options());
      for (size_t i = 0; i < keys_.size() && status.ok(); ++i) {
        RowView row;
        status = session.get(table, keys_[i], row);
        rows.emplace_back(row.row);
      }
      if (status.ok()) status = session.commit();
      if (!status.ok()) {
        session.abort();
        session.scheduler().sleep_for(100'000);
      }
    }
    ASSERT_TRUE(status.ok()) << status.to_string();
  }

  bool at_one_owner_ = false;
  std::vector<std::string> keys_;
  int unknown_ = 0;
};

TEST_F(LostNodeCommit, IsWholeWhateverResolutionDecides) {
  for (uint64_t after = 0; after < kEventsOfCommit; ++after) run(after, kLongUs);
  EXPECT_GT(unknown_, 0) << "no run has lost the node while it logged";
}

TEST_F(LostNodeCommit, IsAbortedForSureWhenTheNodeComesBackSoon) {
  for (uint64_t after = 0; after < kEventsOfCommit; after += 4) run(after, kShortUs);
  EXPECT_EQ(unknown_, 0);
}

TEST_F(LostNodeCommit, IsWholeAtItsOnlyOwner) {
  at_one_owner_ = true;
  for (uint64_t after = 0; after < kEventsOfCommit; ++after) run(after, kLongUs);
  EXPECT_GT(unknown_, 0) << "no run has lost the node while it logged";
}

TEST_F(LostNodeCommit, IsCertainWhenItsOnlyOwnerComesBackSoon) {
  at_one_owner_ = true;
  for (uint64_t after = 0; after < kEventsOfCommit; ++after) run(after, kShortUs);
  EXPECT_EQ(unknown_, 0);
}

}  // namespace
}  // namespace rdmacc
