#include "engine/check/checker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rdma/base/random.h"

namespace rdmacc {
namespace {

using testing::HasSubstr;

constexpr TableId kTable = 1;

HistoryEvent op(char letter, std::string key, uint64_t version) {
  return {.op = static_cast<HistoryOp>(letter),
          .table = kTable,
          .key = std::move(key),
          .version = version,
          .groups = {}};
}

// All keys of two nodes at depth 0, as of `stamp`.
HistoryEvent scan(uint64_t stamp) {
  return {.op = HistoryOp::kScan,
          .table = kTable,
          .key = {},
          .version = 0,
          .groups = {{0, 0, 0, stamp}, {1, 0, 0, stamp}}};
}

HistoryTransaction txn(WorkerId worker, std::vector<HistoryEvent> events,
                       HistoryOutcome outcome = HistoryOutcome::kCommitted) {
  HistoryTransaction transaction;
  transaction.worker = worker;
  transaction.outcome = outcome;
  transaction.events = std::move(events);
  return transaction;
}

CheckReport check(const std::vector<HistoryTransaction>& history, bool preloaded = false) {
  return check_serializable(history, {.preloaded = preloaded});
}

const HistoryTransaction kLoad = txn(0, {op('i', "x", 1), op('i', "y", 1)});

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

TEST(Checker, FindsWriteSkew) {
  const CheckReport report = check({kLoad, txn(1, {op('r', "x", 1), op('w', "y", 2)}),
                                    txn(2, {op('r', "y", 1), op('w', "x", 3)})});
  EXPECT_FALSE(report.serializable);
  EXPECT_THAT(report.problem, HasSubstr("cycle of 2"));
  EXPECT_THAT(report.problem, HasSubstr("T2 (worker 1) read t1/x version 1 -> T3 (worker 2) made"));
  EXPECT_THAT(report.problem, HasSubstr("(rw)"));
}

TEST(Checker, FindsALostUpdate) {
  const CheckReport report = check({kLoad, txn(1, {op('r', "x", 1), op('w', "x", 2)}),
                                    txn(2, {op('r', "x", 1), op('w', "x", 3)})});
  EXPECT_FALSE(report.serializable);
  EXPECT_THAT(report.problem, HasSubstr("(ww)"));
  EXPECT_THAT(report.problem, HasSubstr("(rw)"));
}

TEST(Checker, FindsALongFork) {
  EXPECT_THAT(check({kLoad, txn(1, {op('w', "x", 2)}), txn(2, {op('w', "y", 3)}),
                     txn(3, {op('r', "x", 2), op('r', "y", 1)}),
                     txn(4, {op('r', "x", 1), op('r', "y", 3)})})
                  .problem,
              HasSubstr("cycle of 4"));
}

TEST(Checker, FindsTheReadOnlyAnomaly) {
  // Fekete, O'Neil, O'Neil: without the reader the history is serializable.
  std::vector<HistoryTransaction> history{
      kLoad, txn(1, {op('r', "x", 1), op('r', "y", 1), op('w', "x", 3)}),
      txn(2, {op('r', "y", 1), op('w', "y", 2)})};
  EXPECT_TRUE(check(history).serializable);
  history.push_back(txn(3, {op('r', "x", 1), op('r', "y", 2)}));
  EXPECT_THAT(check(history).problem, HasSubstr("cycle of 3"));
}

TEST(Checker, FindsANonRepeatableRead) {
  EXPECT_FALSE(check({kLoad, txn(1, {op('w', "x", 2)}), txn(2, {op('r', "x", 1), op('r', "x", 2)})})
                   .serializable);
}

TEST(Checker, FindsAPhantomInsert) {
  // Each counts the rows and inserts one: neither saw the other's.
  EXPECT_THAT(check({kLoad, txn(1, {scan(1), op('r', "x", 1), op('r', "y", 1), op('i', "p", 2)}),
                     txn(2, {scan(1), op('r', "x", 1), op('r', "y", 1), op('i', "q", 3)})})
                  .problem,
              HasSubstr("missed"));
  // The same with absent keys looked up one by one.
  EXPECT_FALSE(check({txn(1, {op('m', "p", 1), op('i', "q", 2)}),
                      txn(2, {op('m', "q", 1), op('i', "p", 3)})})
                   .serializable);
}

TEST(Checker, FindsAPhantomDelete) {
  EXPECT_THAT(check({kLoad, txn(1, {op('d', "x", 2), op('w', "y", 2)}),
                     txn(2, {op('m', "x", 2), op('r', "y", 1)})})
                  .problem,
              HasSubstr("deleted t1/x at 2"));
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

TEST(Checker, CountsUnknownOutcomesOnlyWhenSomebodyNeedsThem) {
  const HistoryTransaction unknown =
      txn(1, {op('r', "y", 1), op('w', "x", 2)}, HistoryOutcome::kUnknown);
  EXPECT_EQ(check({kLoad, unknown, txn(2, {op('r', "x", 1)})}).committed, 2u);
  EXPECT_EQ(check({kLoad, unknown, txn(2, {op('r', "x", 2)})}).committed, 3u);
  // Counted, its own reads matter.
  EXPECT_FALSE(check({kLoad, unknown, txn(2, {op('r', "x", 2), op('r', "y", 1)}),
                      txn(3, {op('w', "y", 3), op('r', "x", 1)})})
                   .serializable);
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

TEST(Checker, ChecksALongHistoryInOneGo) {
  // A serial execution over 1,000 keys, and the same with one lost update in it.
  Random random(7);
  std::vector<HistoryTransaction> history;
  std::vector<uint64_t> version(1000, 1);
  HistoryTransaction load = txn(0, {});
  for (int k = 0; k < 1000; ++k) load.events.push_back(op('i', "k" + std::to_string(k), 1));
  history.push_back(std::move(load));
  for (uint64_t t = 2; t < 12'500; ++t) {
    HistoryTransaction transaction = txn(static_cast<WorkerId>(t % 8), {});
    for (int i = 0; i < 4; ++i) {
      const uint64_t k = random.below(250) * 4 + static_cast<uint64_t>(i);
      transaction.events.push_back(op('r', "k" + std::to_string(k), version[k]));
      transaction.events.push_back(op('w', "k" + std::to_string(k), t));
      version[k] = t;
    }
    history.push_back(std::move(transaction));
  }
  EXPECT_TRUE(check(history).serializable);
  history.push_back(txn(9, {op('r', "k0", 1), op('w', "k0", 200'000)}));
  EXPECT_FALSE(check(history).serializable);
}

}  // namespace
}  // namespace rdmacc
