// Every anomaly is found, named, and told edge by edge.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/check/made_history.h"

namespace rdmacc {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string problem_of(const std::vector<HistoryTransaction>& history) {
  const CheckReport report = check(history);
  EXPECT_EQ(report.serializable, report.problem.empty());
  EXPECT_TRUE(report.serializable || !report.strictly_serializable);
  return report.problem;
}

TEST(Anomaly, WriteSkew) {
  EXPECT_EQ(problem_of({kLoad, txn(1, {op('r', "x", 1), op('w', "y", 2)}),
                        txn(2, {op('r', "y", 1), op('w', "x", 3)})}),
            "write skew, cycle of 2: T2 (worker 1) read t1/x version 1 -> T3 (worker 2) made its "
            "next version 3 (rw); T3 (worker 2) read t1/y version 1 -> T2 (worker 1) made its "
            "next version 2 (rw)");
}

TEST(Anomaly, LostUpdate) {
  // Another key that both write does not hide the name.
  for (const char* other : {"a", "z"}) {
    const std::string problem =
        problem_of({txn(0, {op('i', "x", 1), op('i', other, 1)}),
                    txn(1, {op('r', "x", 1), op('w', "x", 2), op('w', other, 2)}),
                    txn(2, {op('r', "x", 1), op('w', "x", 3), op('w', other, 3)})});
    EXPECT_THAT(problem, StartsWith("lost update, cycle of 2: "));
    EXPECT_THAT(problem, HasSubstr("T2 (worker 1) wrote t1/x version 2 -> T3 (worker 2) made its "
                                   "next version 3 (ww)"));
    EXPECT_THAT(problem, HasSubstr("T3 (worker 2) read t1/x version 1 -> T2 (worker 1) made its "
                                   "next version 2 (rw)"));
  }
}

TEST(Anomaly, LostUpdateOfManyVersions) {
  std::vector<HistoryTransaction> history{kLoad};
  for (uint64_t v = 2; v < 50; ++v) history.push_back(txn(1, {op('w', "x", v)}));
  history.push_back(txn(2, {op('r', "x", 10), op('w', "x", 50)}));
  EXPECT_EQ(problem_of(history),
            "lost update, cycle of 2: T50 (worker 2) read t1/x version 10 -> T11 (worker 1) made "
            "its next version 11 (rw); T11 (worker 1) wrote t1/x version 11 -> T50 (worker 2) made "
            "the later version 50 (ww)");
}

TEST(Anomaly, DirtyWrite) {
  EXPECT_THAT(problem_of({kLoad, txn(1, {op('w', "x", 2), op('w', "y", 3)}),
                          txn(2, {op('w', "x", 3), op('w', "y", 2)})}),
              StartsWith("dirty write (G0), cycle of 2: "));
}

TEST(Anomaly, CircularInformationFlow) {
  EXPECT_THAT(problem_of({kLoad, txn(1, {op('w', "x", 2), op('r', "y", 3)}),
                          txn(2, {op('w', "y", 3), op('r', "x", 2)})}),
              StartsWith("circular information flow (G1c), cycle of 2: "));
}

TEST(Anomaly, ReadSkew) {
  EXPECT_THAT(problem_of({kLoad, txn(1, {op('w', "x", 2), op('w', "y", 2)}),
                          txn(2, {op('r', "x", 1), op('r', "y", 2)})}),
              StartsWith("read skew, cycle of 2: "));
}

TEST(Anomaly, NonRepeatableRead) {
  EXPECT_THAT(
      problem_of({kLoad, txn(1, {op('w', "x", 2)}), txn(2, {op('r', "x", 1), op('r', "x", 2)})}),
      StartsWith("non-repeatable read, cycle of 2: "));
}

TEST(Anomaly, LongFork) {
  EXPECT_THAT(problem_of({kLoad, txn(1, {op('w', "x", 2)}), txn(2, {op('w', "y", 3)}),
                          txn(3, {op('r', "x", 2), op('r', "y", 1)}),
                          txn(4, {op('r', "x", 1), op('r', "y", 3)})}),
              StartsWith("long fork, cycle of 4: "));
}

TEST(Anomaly, ReadOnlyAnomaly) {
  // Fekete, O'Neil, O'Neil: without the reader the history is serializable.
  std::vector<HistoryTransaction> history{
      kLoad, txn(1, {op('r', "x", 1), op('r', "y", 1), op('w', "x", 3)}),
      txn(2, {op('r', "y", 1), op('w', "y", 2)})};
  EXPECT_EQ(problem_of(history), "");
  history.push_back(txn(3, {op('r', "x", 1), op('r', "y", 2)}));
  EXPECT_THAT(problem_of(history), StartsWith("read-only anomaly, cycle of 3: "));
}

TEST(Anomaly, PhantomInsert) {
  // Each counts the rows and inserts one: neither saw the other's.
  const std::string problem =
      problem_of({kLoad, txn(1, {scan(1), op('r', "x", 1), op('r', "y", 1), op('i', "p", 2)}),
                  txn(2, {scan(1), op('r', "x", 1), op('r', "y", 1), op('i', "q", 3)})});
  EXPECT_THAT(problem, StartsWith("phantom, cycle of 2: "));
  EXPECT_THAT(problem, HasSubstr("T2 (worker 1) scanned and missed t1/q as of 1 -> T3 (worker 2) "
                                 "inserted version 3 (rw)"));
  // The same with absent keys looked up one by one.
  EXPECT_THAT(problem_of({txn(1, {op('m', "p", 1), op('i', "q", 2)}),
                          txn(2, {op('m', "q", 1), op('i', "p", 3)})}),
              StartsWith("write skew, cycle of 2: "));
}

TEST(Anomaly, PhantomDelete) {
  const HistoryTransaction deletes = txn(1, {op('d', "x", 2), op('w', "y", 2)});
  EXPECT_THAT(problem_of({kLoad, deletes, txn(2, {op('m', "x", 2), op('r', "y", 1)})}),
              HasSubstr("T2 (worker 1) deleted t1/x at 2 -> T3 (worker 2) missed it as of 2 (wr)"));
  EXPECT_THAT(problem_of({kLoad, deletes, txn(2, {scan(2), op('r', "y", 1)})}),
              StartsWith("phantom, cycle of 2: "));
}

TEST(Anomaly, DirtyAndIntermediateReads) {
  EXPECT_THAT(problem_of({kLoad, txn(1, {op('w', "x", 2)}, HistoryOutcome::kAborted),
                          txn(2, {op('r', "x", 2)})}),
              HasSubstr("(dirty read, G1a)"));
  EXPECT_EQ(
      problem_of({kLoad, txn(1, {op('w', "x", 2), op('w', "x", 3)}), txn(2, {op('r', "x", 2)})}),
      "T3 (worker 2) read t1/x version 2, which T2 (worker 1) itself wrote over (intermediate "
      "read, G1b)");
}

TEST(Anomaly, TheShortestCycleOfTheSmallestComponentIsTold) {
  // A ring of six readers and writers, with a chord that cuts it to a cycle of three; and beside
  // it a larger ring.
  std::vector<HistoryTransaction> history{txn(0, {})};
  const auto ring = [&history](const std::string& name, int size) {
    const size_t first = history.size();
    for (int i = 0; i < size; ++i) {
      const std::string own = name + std::to_string(i);
      const std::string next = name + std::to_string((i + 1) % size);
      history[0].events.push_back(op('i', own, 1));
      history.push_back(txn(1, {op('w', own, 2), op('r', next, 1)}));
    }
    return first;
  };
  const size_t small = ring("s", 6);
  ring("l", 40);
  EXPECT_THAT(problem_of(history), StartsWith("anti-dependency cycle (G2), cycle of 6: "));
  history[small + 2].events.push_back(op('r', "s0", 1));
  EXPECT_THAT(problem_of(history), StartsWith("anti-dependency cycle (G2), cycle of 3: "));
}

}  // namespace
}  // namespace rdmacc
