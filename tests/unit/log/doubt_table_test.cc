#include "engine/log/in_doubt.h"

#include "tests/unit/log/log_cluster.h"

namespace rdmacc {
namespace {

constexpr WorkerId kDead = 5;
constexpr Gtid kGtid{7, 70};

// Node 0's list, and one transaction of a dead worker on it.
class Doubts : public testing::Test {
 protected:
  Doubts() : cluster(1), table(cluster.node(0).worker, cluster.topology()) {
    table.serve([] { return size_t{0}; });
    doubt.gtid = kGtid;
    doubt.worker = kDead;
    doubt.lock_ctts = uint64_t{1000} << 16 | kDead;
    doubt.entries = cluster.allocate_slots(cluster.user(0), uint64_t{1} << 16, {0, 1});
    table.end_pass(kDead, {doubt});
  }

  Code decide(bool commit) {
    Status status;
    LogUser& user = cluster.user(0);
    cluster.run(user.worker, [&] {
      VerbCounters counters;
      status = decide_in_doubt(user.worker, cluster.topology(), kGtid, commit, counters);
    });
    return status.code();
  }

  LogCluster cluster;
  DoubtTable table;
  InDoubt doubt;
};

TEST_F(Doubts, ADecisionOutlivesAPassThatHasLookedBefore) {
  EXPECT_TRUE(table.waits(kDead));
  table.begin_pass(kDead);
  EXPECT_EQ(Code::kOk, decide(true));
  table.end_pass(kDead, {doubt});  // as it was found
  EXPECT_FALSE(table.waits(kDead));
  EXPECT_EQ(Code::kNotFound, decide(false));
}

// Others see that a transaction is aborted as soon as a pass has released its locks.
TEST_F(Doubts, NoPassGoesOnBeforeADecisionIsOnDisk) {
  int logged = 0;
  Status log = Status(Code::kUnavailable, "a node is away");
  table.log_decisions([&](uint64_t lock_ctts, bool commit) {
    EXPECT_EQ(doubt.lock_ctts, lock_ctts);
    EXPECT_FALSE(commit);
    EXPECT_TRUE(table.waits(kDead));
    ++logged;
    return log;
  });
  EXPECT_EQ(Code::kUnavailable, decide(false));
  EXPECT_TRUE(table.waits(kDead));
  EXPECT_EQ(Code::kUnavailable, decide(true));  // some copies may be void
  table.begin_pass(kDead);
  table.end_pass(kDead, {doubt});
  EXPECT_EQ(Code::kUnavailable, decide(true));  // still
  log = Status();
  EXPECT_EQ(Code::kOk, decide(false));
  EXPECT_FALSE(table.waits(kDead));
  EXPECT_EQ(2, logged);
}

}  // namespace
}  // namespace rdmacc
