#include "engine/check/checker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/check/made_history.h"

namespace rdmacc {
namespace {

using testing::HasSubstr;

TEST(Checker, PassesAnEmptyAndACleanHistory) {
  EXPECT_TRUE(check({}).serializable);
  const CheckReport report =
      check({kLoad, txn(1, {op('r', "x", 1), op('w', "x", 2)}),
             txn(2, {op('r', "x", 2), op('r', "y", 1), op('w', "y", 3)}), txn(3, {op('d', "x", 4)}),
             txn(3, {op('m', "x", 4), op('r', "y", 3)}), txn(4, {op('m', "x", 4), op('i', "x", 6)}),
             txn(4, {scan(6), op('r', "x", 6), op('r', "y", 3)})});
  EXPECT_TRUE(report.serializable) << report.problem;
  EXPECT_EQ(report.transactions, 7u);
  EXPECT_EQ(report.committed, 7u);
  EXPECT_EQ(report.operations, 15u);
  EXPECT_GT(report.edges, 6u);
}

TEST(Checker, FindsAnAbsentReadWhileLive) {
  EXPECT_THAT(check({kLoad, txn(1, {op('m', "x", 5)})}).problem,
              HasSubstr("read absent while live"));
  EXPECT_THAT(check({kLoad, txn(1, {scan(5), op('r', "y", 1)})}).problem,
              HasSubstr("missed t1/x as of 5"));
  EXPECT_TRUE(check({kLoad, txn(1, {op('m', "x", 0)})}).serializable);
}

TEST(Checker, ExcludesOwnWritesFromScans) {
  const CheckReport report =
      check({kLoad, txn(1, {op('d', "x", 2), op('w', "y", 2), op('i', "z", 2), scan(1)})});
  EXPECT_TRUE(report.serializable) << report.problem;
}

TEST(Checker, CoversOnlyTheGroupsThatWereScanned) {
  const uint64_t hash = hash_key(kTable, "x");
  const auto node = static_cast<NodeId>(partition_of(hash) % 2);
  HistoryEvent event = scan(1);
  event.groups = {{node, group_bits_of(hash, 1), 1, 5},
                  {static_cast<NodeId>(1 - node), group_bits_of(hash, 1), 1, 5}};
  const std::vector<HistoryTransaction> load{txn(0, {op('i', "x", 1)})};
  EXPECT_FALSE(check({load[0], txn(1, {event})}).serializable);
  for (ScannedGroup& group : event.groups) group.bits ^= 1;
  EXPECT_TRUE(check({load[0], txn(1, {event})}).serializable);
}

TEST(Checker, FindsDirtyReads) {
  EXPECT_THAT(
      check({kLoad, txn(1, {op('w', "x", 2)}, HistoryOutcome::kAborted), txn(2, {op('r', "x", 2)})})
          .problem,
      HasSubstr("T3 (worker 2) read t1/x version 2, which T2 (worker 1), which did not "
                "commit, wrote (dirty read, G1a)"));
  EXPECT_THAT(check({kLoad, txn(2, {op('r', "x", 7)})}).problem, HasSubstr("dirty read"));
  EXPECT_THAT(check({kLoad, txn(1, {op('d', "x", 2)}), txn(2, {op('r', "x", 2)})}).problem,
              HasSubstr("which is the delete by T2"));
}

TEST(Checker, FindsTwoWritersOfOneVersion) {
  EXPECT_THAT(check({kLoad, txn(1, {op('w', "x", 2)}), txn(2, {op('w', "x", 2)})}).problem,
              HasSubstr("both made t1/x version 2"));
}

TEST(Checker, FindsInsertsOfLiveAndWritesOfAbsentKeys) {
  EXPECT_THAT(check({kLoad, txn(1, {op('i', "x", 2)})}).problem,
              HasSubstr("inserted t1/x while live"));
  EXPECT_THAT(check({kLoad, txn(1, {op('w', "z", 2)})}).problem,
              HasSubstr("wrote or deleted t1/z while absent"));
  EXPECT_THAT(check({kLoad, txn(1, {op('d', "x", 2)}), txn(2, {op('d', "x", 3)})}).problem,
              HasSubstr("while absent"));
}

TEST(Checker, TakesSeveralWritesOfOneTransactionAsOne) {
  EXPECT_TRUE(
      check({kLoad, txn(1, {op('d', "x", 2), op('i', "x", 2), op('i', "t", 2), op('d', "t", 2)}),
             txn(2, {op('r', "x", 2), op('m', "t", 1)})})
          .serializable);
}

TEST(Checker, TakesWhatWasLoadedBeforeAsGiven) {
  const std::vector<HistoryTransaction> history{txn(1, {op('r', "x", 5), op('w', "x", 9)}),
                                                txn(2, {op('w', "y", 8), op('r', "x", 9)})};
  EXPECT_FALSE(check(history).serializable);
  EXPECT_TRUE(check(history, true).serializable);
  // But one version per key, older than all that the history made.
  EXPECT_FALSE(check({txn(1, {op('r', "x", 5)}), txn(2, {op('r', "x", 6)})}, true).serializable);
  EXPECT_FALSE(check({txn(1, {op('w', "x", 5)}), txn(2, {op('r', "x", 6)})}, true).serializable);
  EXPECT_FALSE(check({txn(1, {op('i', "x", 5)}), txn(2, {op('r', "x", 4)})}, true).serializable);
  EXPECT_FALSE(check({txn(1, {op('r', "x", 5)}), txn(2, {op('m', "x", 6)})}, true).serializable);
}

TEST(Checker, CountsUnknownOutcomesOnlyWhenTheyAreNeeded) {
  const HistoryTransaction unknown =
      txn(1, {op('r', "y", 1), op('w', "x", 2)}, HistoryOutcome::kUnknown);
  EXPECT_EQ(check({kLoad, unknown, txn(2, {op('r', "x", 1)})}).committed, 2u);
  EXPECT_EQ(check({kLoad, unknown, txn(2, {op('r', "x", 2)})}).committed, 3u);
  // Counted, its own reads matter.
  EXPECT_FALSE(check({kLoad, unknown, txn(2, {op('r', "x", 2), op('r', "y", 1)}),
                      txn(3, {op('w', "y", 3), op('r', "x", 1)})})
                   .serializable);
  // Under timestamp ordering an absence has the time of its reader, which is no stamp that was
  // seen.
  HistoryTransaction reader = txn(2, {scan(2), op('m', "z", 2), op('r', "x", 1), op('w', "x", 3)});
  EXPECT_EQ(check({kLoad, unknown, reader}).committed, 3u);
  reader.protocol = Protocol::kMvcc;
  EXPECT_EQ(check({kLoad, unknown, reader}).committed, 2u);
  // A delete that a later insert or miss needs, an insert that a later write needs.
  const HistoryTransaction deleted = txn(1, {op('d', "x", 2)}, HistoryOutcome::kUnknown);
  EXPECT_TRUE(check({kLoad, deleted, txn(2, {op('i', "x", 3)})}).serializable);
  EXPECT_TRUE(check({kLoad, deleted, txn(2, {op('m', "x", 3)})}).serializable);
  EXPECT_TRUE(check({kLoad, deleted, txn(2, {scan(2), op('r', "y", 1)})}).serializable);
  EXPECT_TRUE(check({kLoad, deleted, txn(2, {op('w', "x", 3)})}).serializable);
  const HistoryTransaction inserted = txn(1, {op('i', "z", 2)}, HistoryOutcome::kUnknown);
  EXPECT_TRUE(check({kLoad, inserted, txn(2, {op('w', "z", 3)})}).serializable);
  EXPECT_TRUE(check({kLoad, inserted, txn(2, {op('i', "z", 3)})}).serializable);
}

}  // namespace
}  // namespace rdmacc
