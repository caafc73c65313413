// What a multi-version protocol's histories hold: old versions that are read, misses as of the
// reader's own timestamp, versions at the writer's timestamp, deletes that leave the gap alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/check/made_history.h"

namespace rdmacc {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(MultiVersion, MayMissAndInsertAtOneStamp) {
  const CheckReport report = check(
      {kLoad, txn(1, {op('m', "z", 7), op('i', "z", 7)}),
       txn(2, {op('r', "z", 7), op('d', "z", 9)}),
       txn(3, {scan(12), op('r', "x", 1), op('r', "y", 1), op('m', "z", 12), op('i', "z", 12)})});
  EXPECT_TRUE(report.serializable) << report.problem;
  // What others made at or before that stamp was seen.
  EXPECT_THAT(
      check({kLoad, txn(2, {op('i', "z", 5)}), txn(1, {op('m', "z", 7), op('d', "z", 7)})}).problem,
      HasSubstr("read absent while live: T3 (worker 1) missed t1/z as of 7, version 5"));
}

TEST(MultiVersion, MayReadOneVersionAndMakeALaterOne) {
  EXPECT_TRUE(check({kLoad, txn(1, {op('r', "x", 1), op('w', "x", 9)}), txn(2, {op('r', "x", 9)})})
                  .serializable);
  // Unless another one lies between.
  EXPECT_THAT(
      check({kLoad, txn(2, {op('w', "x", 5)}), txn(1, {op('r', "x", 1), op('w', "x", 9)})}).problem,
      StartsWith("lost update"));
  EXPECT_THAT(check({kLoad, txn(1, {op('m', "z", 9), op('i', "z", 9)}),
                     txn(2, {op('i', "z", 5), op('d', "z", 6), op('r', "y", 1), op('w', "y", 5)}),
                     txn(3, {op('r', "y", 5), op('m', "z", 4)})})
                  .problem,
              "");
}

TEST(MultiVersion, AnOldVersionComesBeforeTheNextOne) {
  // A reader as of 3 among writers at 2, 5 and 8: as if it had run between the first two.
  std::vector<HistoryTransaction> history{
      kLoad, txn(1, {op('w', "x", 2), op('w', "y", 2)}), txn(2, {op('w', "x", 5), op('w', "y", 5)}),
      txn(3, {op('d', "x", 8)}), txn(4, {op('r', "x", 2), op('r', "y", 2), op('m', "z", 3)})};
  EXPECT_TRUE(check(history).serializable);
  history.back().events[1].version = 5;
  EXPECT_THAT(check(history).problem, StartsWith("read skew"));
  history.back().events[1].version = 1;
  EXPECT_THAT(check(history).problem, StartsWith("read skew"));
}

TEST(MultiVersion, AnOldMissComesBeforeTheInsert) {
  const std::vector<HistoryTransaction> writers{kLoad, txn(1, {op('i', "z", 5), op('w', "y", 5)})};
  std::vector<HistoryTransaction> history = writers;
  history.push_back(txn(2, {op('m', "z", 4), op('r', "y", 1)}));
  EXPECT_TRUE(check(history).serializable);
  history.back().events[1].version = 5;
  EXPECT_FALSE(check(history).serializable);
  history.back().events[0].version = 6;
  EXPECT_THAT(check(history).problem, HasSubstr("read absent while live"));
}

// The delete at 4 did not raise the gap's stamp, which is still 2: the scan says how it knows.
TEST(MultiVersion, AnOwnMissSaysMoreThanTheScan) {
  const std::vector<HistoryTransaction> writers{kLoad, txn(1, {op('i', "z", 2)}),
                                                txn(2, {op('d', "z", 4), op('w', "y", 4)})};
  std::vector<HistoryTransaction> history = writers;
  history.push_back(txn(3, {scan(2), op('r', "x", 1), op('r', "y", 4)}));
  EXPECT_THAT(check(history).problem, HasSubstr("missed t1/z as of 2, version 2"));
  history.back().events.push_back(op('m', "z", 4));
  EXPECT_TRUE(check(history).serializable) << check(history).problem;
  history.back().events[2].version = 1;  // y as it was before that delete
  EXPECT_THAT(check(history).problem, StartsWith("read skew, cycle of 2"));
}

// The gap's stamp 9 is another insert's; the row came back at 7, over its tombstone, after the
// scan had passed it.
TEST(MultiVersion, AnOwnMissHoldsUnderAYoungerGap) {
  const CheckReport report =
      check({kLoad, txn(1, {op('d', "x", 4)}), txn(1, {op('i', "w", 9)}),
             txn(2, {op('m', "x", 4), op('i', "x", 7)}),
             txn(3, {scan(9), op('m', "x", 4), op('r', "y", 1), op('r', "w", 9)})});
  EXPECT_TRUE(report.serializable) << report.problem;
}

// Legal: what a reader as of an old stamp sees was overwritten before it began.
TEST(MultiVersion, ReadersOfThePastAreCountedNotFailed) {
  const CheckReport report = check(
      {kLoad, timed(10, 20, {op('w', "x", 5)}), timed(30, 40, {op('r', "x", 1), op('r', "y", 1)})});
  EXPECT_TRUE(report.serializable);
  EXPECT_FALSE(report.strictly_serializable);
  EXPECT_EQ(report.real_time_violations, 1u);
}

}  // namespace
}  // namespace rdmacc
