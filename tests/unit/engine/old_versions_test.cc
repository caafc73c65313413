// Old versions of rows under MVCC: there when a reader needs them, and no memory for them else.
#include "engine/storage/layout/control_area.h"
#include "engine/storage/layout/overflow.h"
#include "engine/storage/owner/arena.h"
#include "tests/unit/engine/handed_out_blocks.h"
#include "tests/unit/engine/two_sessions.h"

namespace rdmacc {
namespace {

constexpr uint64_t kWhileUs = 3 * StorageService::kKeepVersionsUs;

class OldVersionsTest : public TwoSessions {
 protected:
  uint64_t used() {
    uint64_t bytes = 0;
    for (NodeId node = 0; node < 2; ++node) {
      bytes += engine_.node(node).storage()->statistics().used_bytes;
    }
    return bytes;
  }
  void other_writes(const char* key, const char* row) {
    as_other([&] {
      ASSERT_TRUE(other_.begin(options()).ok());
      ASSERT_TRUE(other_.put(table_, key, row).ok());
      ASSERT_TRUE(other_.commit().ok());
    });
  }
  void a_while_passes() {
    as_other([&] { there_.worker().scheduler().sleep_for(kWhileUs); });
  }
  std::string one_reads(const char* key) {
    std::string read;
    as_one([&] {
      RowView row;
      const Status status = one_.get(table_, key, row);
      read = status.ok() ? std::string(row.row) : status.to_string();
    });
    return read;
  }
  void one_begins() {
    as_one([&] { ASSERT_TRUE(one_.begin(options()).ok()); });
    EXPECT_EQ(one_reads("c"), "0");  // enters the gate
  }

  size_t blocks() { return handed_out_blocks(engine_, there_.topology()); }

  const uint64_t block_bytes_ = overflow_unit_bytes(versions_bytes(64, 3));
};

// The owner looks at a row, locks it, and finds it written meanwhile.
TEST_P(OldVersionsTest, ARowThatIsWrittenJustThenLosesThemLater) {
  const uint64_t start = used();
  other_writes("a", "1");
  bool written = false;
  engine_.fabric().set_rewriter([&](WorkerId, NodeId node, std::vector<Verb>& verbs) {
    for (const Verb& verb : verbs) {
      const bool locks = verb.opcode == Opcode::kCompareSwap && is_cleaning_lock(verb.operand);
      if (written || !locks) continue;
      std::byte* const region = engine_.node(node).worker().endpoint().local_region();
      reinterpret_cast<Header*>(region + verb.remote_offset - kOffsetOfLock)->wts++;
      written = true;
    }
  });
  a_while_passes();
  engine_.fabric().set_rewriter({});
  EXPECT_TRUE(written);
  a_while_passes();
  EXPECT_EQ(used(), start);
}

TEST_P(OldVersionsTest, RowsThatWereNotWrittenOverHaveNone) {
  const uint64_t start = used();
  other_writes("a", "1");
  EXPECT_EQ(used(), start + block_bytes_);
  for (const char* row : {"2", "3", "4", "5", "6"}) other_writes("a", row);
  EXPECT_EQ(used(), start + block_bytes_);
  other_writes("b", "1");
  EXPECT_EQ(used(), start + 2 * block_bytes_);
}

TEST_P(OldVersionsTest, StayWhileATransactionMayReadThem) {
  const uint64_t start = used();
  one_begins();
  other_writes("a", "1");
  other_writes("a", "2");
  a_while_passes();
  EXPECT_EQ(one_reads("a"), "0");
  as_one([&] { ASSERT_TRUE(one_.commit().ok()); });
  a_while_passes();
  EXPECT_EQ(used(), start) << "the block goes when no transaction reads it";
  // The row gets another block, which is known not to hold all versions that there have been.
  one_begins();
  other_writes("a", "3");
  EXPECT_EQ(used(), start + block_bytes_);
  EXPECT_EQ(one_reads("a"), "2");
  as_one([&] { one_.abort(); });
}

TEST_P(OldVersionsTest, AReaderThatTooManyWritesHavePassedIsTold) {
  for (const char* row : {"1", "2"}) other_writes("a", row);
  a_while_passes();
  one_begins();
  for (const char* row : {"3", "4", "5", "6", "7"}) other_writes("a", row);
  as_one([&] {
    RowView row;
    EXPECT_EQ(reason_of(one_.get(table_, "a", row)), AbortReason::kNoVersion);
    one_.abort();
  });
}

TEST_P(OldVersionsTest, GoWithTheirRow) {
  const uint64_t start = used();
  other_writes("a", "1");
  as_other([&] {
    ASSERT_TRUE(other_.begin(options()).ok());
    ASSERT_TRUE(other_.remove(table_, "a").ok());
    ASSERT_TRUE(other_.commit().ok());
  });
  a_while_passes();
  EXPECT_LT(used(), start);
}

TEST_P(OldVersionsTest, AWorkerThatEndsGivesBackWhatItKept) {
  for (const char* key : {"a", "b", "c"}) other_writes(key, "1");
  if (std::get<1>(GetParam()) == kRpc) return;  // the nodes keep them
  EXPECT_GT(blocks(), 3u);
  as_other([&] { there_.finish_background(1'000'000); });
  EXPECT_EQ(blocks(), 3u);
}

TEST_P(OldVersionsTest, WritesAtOnceAskOnce) {
  constexpr int kWriters = 12;
  as_one([&] {
    ASSERT_TRUE(one_.begin(options()).ok());
    for (int i = 0; i < kWriters; ++i) {
      ASSERT_TRUE(one_.insert(table_, "w" + std::to_string(i), "0").ok());
    }
    ASSERT_TRUE(one_.commit().ok());
  });
  int done = 0;
  std::vector<std::unique_ptr<Session>> sessions;
  for (int i = 0; i < kWriters; ++i) {
    Session& session = *sessions.emplace_back(std::make_unique<Session>(there_));
    ASSERT_TRUE(there_.worker().scheduler().spawn([&, i] {
      EXPECT_TRUE(session.begin(options()).ok());
      EXPECT_TRUE(session.put(table_, "w" + std::to_string(i), "1").ok());
      EXPECT_TRUE(session.commit().ok());
      ++done;
    }));
  }
  ASSERT_TRUE(engine_.run_until([&] { return done == kWriters; }));
  // Of each node 4, and 8 and then 16 more where these were not enough.
  EXPECT_LE(blocks(), 2 * (4u + 8u + 16u));
  one_begins();
  EXPECT_EQ(one_reads("w7"), "1");
}

// The thread that owns the memory asks itself for nothing.
TEST_P(OldVersionsTest, AStageAtTheOwnerTakesThemThere) {
  if (std::get<1>(GetParam()) != kRpc) return;
  const auto requests = [&] {
    return engine_.node(0).storage()->statistics().requests +
           engine_.node(1).storage()->statistics().requests;
  };
  as_other([&] {  // the logs are there from now on
    ASSERT_TRUE(other_.begin(options()).ok());
    for (const char* key : {"x", "y", "z"}) ASSERT_TRUE(other_.insert(table_, key, "0").ok());
    ASSERT_TRUE(other_.commit().ok());
  });
  const uint64_t before = requests();
  for (const char* key : {"a", "b", "c"}) other_writes(key, "1");
  EXPECT_EQ(requests(), before);
}

TEST_P(OldVersionsTest, WhatADeadWorkerKeptIsFreed) {
  if (std::get<1>(GetParam()) == kRpc) return;
  Coordinator& doomed = engine_.add_coordinator();
  auto session = std::make_unique<Session>(doomed);
  engine_.run(doomed, [&] {
    for (const char* key : {"a", "b", "c"}) {
      ASSERT_TRUE(session->begin(options()).ok());
      ASSERT_TRUE(session->put(table_, key, "1").ok());
      ASSERT_TRUE(session->commit().ok());
    }
  });
  EXPECT_GT(blocks(), 3u);
  session.reset();
  engine_.fabric().kill(doomed.worker().id());
  as_one([&] {
    RowView row;
    TxnOptions asks = options();
    asks.plan = StagePlan(kRpc);  // simulated nodes do nothing while they are asked nothing
    for (int i = 0; i < 20; ++i) {
      ASSERT_TRUE(one_.begin(asks).ok());
      for (const char* key : {"a", "b", "c"}) ASSERT_TRUE(one_.get(table_, key, row).ok());
      ASSERT_TRUE(one_.commit().ok());
      here_.worker().scheduler().sleep_for(300'000);
    }
  });
  EXPECT_EQ(blocks(), 3u);
}

INSTANTIATE_TEST_SUITE_P(Mvcc, OldVersionsTest,
                         testing::Combine(testing::Values(Protocol::kMvcc),
                                          testing::Values(kOneSided, kRpc)),
                         name_of);

}  // namespace
}  // namespace rdmacc
