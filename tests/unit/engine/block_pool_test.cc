// Rows that do not fit their slot: their blocks are kept by the workers that write them, so that
// no node is asked, and are the node's again when an update replaces them, the worker leaves or
// dies.
#include "engine/coordinator_impl.h"
#include "tests/unit/engine/handed_out_blocks.h"
#include "tests/unit/engine/two_sessions.h"

namespace rdmacc {
namespace {

class BlockPoolTest : public TwoSessions {
 protected:
  static std::string long_row(int version) {
    return "version " + std::to_string(version) + std::string(200, ' ');
  }
  void write(Session& session, const std::string& key, int version) {
    ASSERT_TRUE(session.begin(options()).ok());
    Status status = session.put(table_, key, long_row(version));
    if (status.code() == Code::kNotFound) {
      status = session.insert(table_, key, long_row(version));
    }
    ASSERT_TRUE(status.ok());
    ASSERT_TRUE(session.commit().ok());
  }
  std::string read(Session& session, const std::string& key) {
    RowView row;
    EXPECT_TRUE(session.begin(options()).ok());
    EXPECT_TRUE(session.get(table_, key, row).ok());
    const std::string bytes(row.row);
    EXPECT_TRUE(session.commit().ok());
    return bytes;
  }
  size_t blocks() { return handed_out_blocks(engine_, there_.topology()); }
  // One a row; with old versions those of its three old versions, the block that these are in, and
  // the few that the nodes' own threads keep for stages by RPC.
  size_t blocks_of_rows_max(size_t rows) const {
    return rules_of(protocol())->keeps_versions() ? 5 * rows + 8 : rows;
  }
  static uint64_t messages(Coordinator& coordinator) {
    return coordinator.stats().allocation_verbs.messages;
  }
  // Time for blocks that were given back to become free; simulated nodes do nothing while they are
  // asked nothing.
  void let_nodes_free(Session& session) {
    TxnOptions asks = options();
    asks.plan = StagePlan(kRpc);
    RowView row;
    for (int i = 0; i < 20; ++i) {
      ASSERT_TRUE(session.begin(asks).ok());
      for (const char* key : {"a", "b", "c"}) ASSERT_TRUE(session.get(table_, key, row).ok());
      ASSERT_TRUE(session.commit().ok());
      session.scheduler().sleep_for(300'000);
    }
  }
};

TEST_P(BlockPoolTest, UpdatesAskNoNodeInTheLongRun) {
  as_other([&] {
    int version = 0;
    for (; version < 20; ++version) write(other_, "a", version);
    const uint64_t before = messages(there_);
    for (; version < 60; ++version) write(other_, "a", version);
    // A stock doubles each time it is used up.
    EXPECT_LE(messages(there_), before + 2);
    EXPECT_EQ(read(other_, "a"), long_row(version - 1));
  });
}

// No transaction waits for them: the worker asks for itself.
TEST_P(BlockPoolTest, MoreAreAskedForBeforeTheyAreUsedUp) {
  constexpr int kFirst = 60, kAll = 400;
  as_other([&] {
    int version = 0;
    for (; version < kFirst; ++version) write(other_, "a", version);
    const uint64_t before = messages(there_);
    const uint64_t by_worker = there_.worker().counters().messages;
    for (; version < kAll; ++version) {
      write(other_, "a", version);
      other_.scheduler().sleep_for(100);
    }
    EXPECT_EQ(messages(there_), before);
    EXPECT_GT(there_.worker().counters().messages, by_worker);
    EXPECT_EQ(read(other_, "a"), long_row(kAll - 1));
  });
}

TEST_P(BlockPoolTest, InsertsOfLongRowsAskNoNodeInTheLongRun) {
  as_other([&] {
    const auto key = [](int i) { return "key " + std::to_string(i); };
    int i = 0;
    for (; i < 40; ++i) write(other_, key(i), i);
    other_.scheduler().sleep_for(100'000);
    const uint64_t before = messages(there_);
    for (; i < 60; ++i) write(other_, key(i), i);
    EXPECT_LT(messages(there_), before + 10);
    for (int k = 0; k < i; ++k) EXPECT_EQ(read(other_, key(k)), long_row(k));
  });
}

// It loses in its validation, when it has its block.
TEST_P(BlockPoolTest, AnAbortedCommitLeavesItsBlockToTheNext) {
  if (protocol() != Protocol::kOcc) return;
  as_other([&] { write(other_, "a", 1); });
  const auto lose = [&](int version) {
    as_other([&] {
      RowView row;
      ASSERT_TRUE(other_.begin(options()).ok());
      ASSERT_TRUE(other_.get(table_, "b", row).ok());
      ASSERT_TRUE(other_.put(table_, "a", long_row(version)).ok());
    });
    as_one([&] {
      ASSERT_TRUE(one_.begin(options()).ok());
      ASSERT_TRUE(one_.put(table_, "b", std::to_string(version)).ok());
      ASSERT_TRUE(one_.commit().ok());
    });
    as_other([&] { EXPECT_EQ(other_.commit().code(), Code::kAborted); });
  };
  lose(2);
  const uint64_t before = messages(there_);
  const size_t blocks_before = blocks();
  for (int version = 3; version < 50; ++version) lose(version);
  EXPECT_EQ(messages(there_), before);
  EXPECT_EQ(blocks(), blocks_before);
  as_other([&] { EXPECT_EQ(read(other_, "a"), long_row(1)); });
}

// Of many rows the worker keeps no more than it would ask for: others want the rest.
TEST_P(BlockPoolTest, AnAbortedCommitOfManyLeavesAFew) {
  if (protocol() != Protocol::kOcc) return;
  constexpr int kRows = 6'000;
  constexpr size_t kKeptMax = 256;  // of one size and node
  as_one([&] { write(one_, "b", 0); });
  as_other([&] {
    RowView row;
    ASSERT_TRUE(other_.begin(options()).ok());
    ASSERT_TRUE(other_.get(table_, "b", row).ok());
    for (int i = 0; i < kRows; ++i) {
      ASSERT_TRUE(other_.insert(table_, "key " + std::to_string(i), long_row(i)).ok());
    }
  });
  as_one([&] { write(one_, "b", 1); });
  as_other([&] { EXPECT_EQ(other_.commit().code(), Code::kAborted); });
  as_one([&] { let_nodes_free(one_); });
  constexpr size_t kOfOther = 8;  // "b", and what its session keeps
  EXPECT_LE(blocks(), there_.topology().nodes * kKeptMax + kOfOther);
  as_other([&] { write(other_, "key 1", 2); });
  as_one([&] { EXPECT_EQ(read(one_, "key 1"), long_row(2)); });
}

TEST_P(BlockPoolTest, WhatIsReplacedIsFreed) {
  as_other([&] {
    for (int version = 0; version < 200; ++version) write(other_, "a", version);
    there_.finish_background(1'000'000);
  });
  as_one([&] {
    let_nodes_free(one_);
    EXPECT_EQ(read(one_, "a"), long_row(199));
  });
  EXPECT_LE(blocks(), blocks_of_rows_max(1));
}

TEST_P(BlockPoolTest, WhatADeadWorkerKeptIsFreedAndItsRowsStay) {
  Coordinator& doomed = engine_.add_coordinator();
  auto session = std::make_unique<Session>(doomed);
  engine_.run(doomed, [&] {
    for (const char* key : {"a", "b", "c"}) write(*session, key, 1);
    doomed.worker().scheduler().sleep_for(10'000);
  });
  session.reset();
  engine_.fabric().kill(doomed.worker().id());
  as_one([&] {
    let_nodes_free(one_);
    for (const char* key : {"a", "b", "c"}) EXPECT_EQ(read(one_, key), long_row(1));
  });
  EXPECT_LE(blocks(), blocks_of_rows_max(3));
}

INSTANTIATE_TEST_SUITE_P(AllProtocols, BlockPoolTest, every_protocol_without_order(), name_of);

}  // namespace
}  // namespace rdmacc
