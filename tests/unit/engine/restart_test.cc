// What is kept of attempts that lost: the rule itself, and what it means to sessions.
#include "engine/txn/transaction/restart.h"

#include <gtest/gtest.h>

#include "engine/check/history_file.h"
#include "engine/protocols/registry.h"
#include "engine/txn/rule/rule.h"
#include "tests/unit/engine/sim_engine.h"

namespace rdmacc {
namespace {

constexpr uint64_t kAccess = 3, kOther = 5;

// One attempt whose first access is `access`; whether it asked for exclusive gate mode.
bool attempt(Restart& restart, uint64_t access, const AttemptEnd& end) {
  restart.begin(access);
  const bool asked = restart.wants_exclusive();
  restart.end(end);
  return asked;
}

constexpr AttemptEnd kLostScan{.lost = true, .scanned = true, .missed = true};
constexpr AttemptEnd kLostMiss{.lost = true, .missed = true};

TEST(Restart, KeepsTheAgeOfTheSameTransactionOnly) {
  Restart restart;
  attempt(restart, kAccess, {.lost = true, .age = 17});
  restart.begin(kAccess);
  EXPECT_EQ(restart.age(), 17u);
  restart.end({.lost = true, .age = 17});
  restart.begin(kOther);
  EXPECT_EQ(restart.age(), 0u);
  restart.end({.lost = true, .age = 30});
  restart.begin(kAccess);
  EXPECT_EQ(restart.age(), 0u) << "the other one has ended its story";
}

TEST(Restart, EndsWithWhateverIsNoConflict) {
  Restart restart;
  attempt(restart, kAccess, {.lost = true, .age = 17});
  attempt(restart, kAccess, {});
  restart.begin(kAccess);
  EXPECT_EQ(restart.age(), 0u);
}

TEST(Restart, AsksToBeAloneAfterLostScans) {
  Restart restart;
  for (uint32_t i = 0; i < Restart::kScanLossesMax; ++i) {
    EXPECT_FALSE(attempt(restart, kAccess, kLostScan));
  }
  restart.begin(kAccess);
  EXPECT_TRUE(restart.wants_exclusive());
  restart.begin(kOther);
  EXPECT_FALSE(restart.wants_exclusive());
}

TEST(Restart, AsksToBeAloneAfterManyLostMisses) {
  Restart restart;
  for (uint32_t i = 0; i < Restart::kMissLossesMax; ++i) {
    EXPECT_FALSE(attempt(restart, kAccess, kLostMiss));
  }
  EXPECT_TRUE(attempt(restart, kAccess, kLostMiss));
}

TEST(Restart, NeverAsksForTransactionsOfKnownKeys) {
  Restart restart;
  for (int i = 0; i < 1'000; ++i) EXPECT_FALSE(attempt(restart, kAccess, {.lost = true}));
}

TEST(Restart, AsksLessAndLessOftenForWhatItDoesNotGet) {
  Restart restart;
  uint32_t asked = 0;
  for (int i = 0; i < 1'024; ++i) asked += attempt(restart, kAccess, kLostScan) ? 1 : 0;
  EXPECT_GE(asked, 7u);
  EXPECT_LE(asked, 9u);
  // And again at once when it got it, and lost all the same.
  Restart granted;
  AttemptEnd exclusive = kLostScan;
  exclusive.exclusive = true;
  for (uint32_t i = 0; i < Restart::kScanLossesMax; ++i) attempt(granted, kAccess, kLostScan);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(attempt(granted, kAccess, exclusive));
}

TxnOptions options_of(Protocol protocol) {
  TxnOptions options;
  options.protocol = protocol;
  return options;
}

TableId table_with(Session& session, const std::vector<std::string>& keys) {
  TableSpec spec;
  spec.relfilenode = 7;
  auto table = session.create_table(spec);
  CHECK(table.ok());
  CHECK(session.begin(options_of(Protocol::kWaitdie)).ok());
  for (const std::string& key : keys) CHECK(session.insert(table->id, key, "0").ok());
  CHECK(session.commit().ok());
  return table->id;
}

// docs/protocols.md §3.2: a restarted transaction keeps its age. The next transaction of the
// session does not have it, or the session would be older than all others for ever.
TEST(RestartedSession, KeepsItsAgeUntilAnotherTransactionBegins) {
  SimEngine engine(3);
  Coordinator &first = engine.add_coordinator(), &second = engine.add_coordinator();
  HistoryMemory history;
  TableId table = kNoTable;
  engine.run(first, [&] {
    Session session(first);
    table = table_with(session, {"k", "j"});
  });
  const TxnOptions options = options_of(Protocol::kWaitdie);
  Session holder(first);
  engine.run(first, [&] {
    ASSERT_TRUE(holder.begin(options).ok());
    ASSERT_TRUE(holder.put(table, "k", "1").ok());
  });
  second.set_history(&history);
  engine.run(second, [&] {
    Session session(second);
    RowView row;
    const auto read = [&](const char* key) {
      EXPECT_TRUE(session.begin(options).ok());
      const Status status = session.get(table, key, row);
      if (!status.ok()) {
        EXPECT_EQ(reason_of(status), AbortReason::kDied);
        session.abort();
        return;
      }
      EXPECT_TRUE(session.commit().ok());
    };
    read("k");  // dies: the holder is older
    read("k");  // another attempt of the same
    read("j");  // another transaction: commits
    read("k");  // the first again, or one like it: unknown; it is new
    EXPECT_TRUE(session.begin(options).ok());
    session.abort();  // has not done anything
    read("k");
  });
  engine.run(first, [&] { ASSERT_TRUE(holder.commit().ok()); });
  const std::vector<HistoryTransaction>& seen = history.transactions();
  ASSERT_EQ(seen.size(), 5u);
  EXPECT_EQ(seen[1].ctts, seen[0].ctts);
  EXPECT_EQ(seen[2].outcome, HistoryOutcome::kCommitted);
  EXPECT_GT(seen[2].ctts, seen[1].ctts);
  EXPECT_GT(seen[3].ctts, seen[2].ctts);
  EXPECT_EQ(seen[4].ctts, seen[3].ctts);
}

class ScanUnderLoad : public testing::TestWithParam<Protocol> {};

// Reads all rows and writes one of them, while others write rows without end.
TEST_P(ScanUnderLoad, CommitsWithinABoundedNumberOfAttempts) {
  constexpr int kRows = 40, kWriters = 4, kScans = 3;
  SimEngine engine(11);
  std::vector<std::string> keys;
  for (int i = 0; i < kRows; ++i) keys.push_back("key" + std::to_string(i));
  Coordinator& scanning = engine.add_coordinator();
  TableId table = kNoTable;
  engine.run(scanning, [&] {
    Session session(scanning);
    table = table_with(session, keys);
  });
  const TxnOptions options = options_of(GetParam());
  bool stop = false;
  int running = kWriters;
  uint64_t written = 0;
  for (int w = 0; w < kWriters; ++w) {
    Coordinator& writing = engine.add_coordinator();
    CHECK(writing.worker().scheduler().spawn([&, w] {
      Random random(static_cast<uint64_t>(w) + 1);
      Session session(writing);
      while (!stop) {
        const std::string& key = keys[random.below(keys.size())];
        ASSERT_TRUE(session.begin(options).ok());
        Status status = session.put(table, key, "1");
        if (status.ok()) {
          status = session.commit();
        } else {
          session.abort();
        }
        ASSERT_TRUE(status.ok() || status.code() == Code::kAborted) << status.to_string();
        written += status.ok() ? 1 : 0;
      }
      --running;
    }));
  }
  uint64_t exclusive_before_end = 0;
  engine.run(scanning, [&] {
    Session session(scanning);
    scanning.worker().scheduler().sleep_for(500);
    for (int scan = 0; scan < kScans; ++scan) {
      const uint64_t written_before = written;
      uint32_t attempts = 0;
      Status status(Code::kAborted);
      while (!status.ok()) {
        ASSERT_LE(++attempts, Restart::kScanLossesMax + 1);
        ASSERT_TRUE(session.begin(options).ok());
        int rows = 0;
        auto cursor = session.scan(table);
        status = cursor.status();
        std::vector<RowView> batch;
        do {
          if (status.ok()) status = session.scan_next(**cursor, batch);
          rows += static_cast<int>(batch.size());
        } while (status.ok() && !batch.empty());
        if (status.ok()) {
          EXPECT_EQ(rows, kRows);
          status = session.put(table, keys[0], "2");
        }
        if (status.ok()) {
          status = session.commit();
        } else {
          session.abort();
        }
        ASSERT_TRUE(status.ok() || status.code() == Code::kAborted) << status.to_string();
      }
      scanning.worker().scheduler().sleep_for(2'000);
      EXPECT_GT(written, written_before) << "others go on";
    }
    exclusive_before_end = scanning.stats().exclusive;
    GateLine gate;
    ASSERT_TRUE(session.gate_state(&gate, nullptr).ok());
    EXPECT_GE(gate.exclusive_entries, exclusive_before_end);
  });
  // Whose age counts gets through by it, too.
  if (!rules_of(GetParam())->keeps_age) {
    EXPECT_GT(exclusive_before_end, 0u) << "it got through without: nothing was tested";
  }
  stop = true;
  ASSERT_TRUE(engine.run_until([&] { return running == 0; }));
}

INSTANTIATE_TEST_SUITE_P(Protocols, ScanUnderLoad,
                         testing::ValuesIn(available_protocols().begin(),
                                           available_protocols().end()),
                         [](const auto& of) { return std::string(protocol_name(of.param)); });

}  // namespace
}  // namespace rdmacc
