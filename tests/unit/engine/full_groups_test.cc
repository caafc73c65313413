// Groups that a worker's inserts fill are split before inserts need room, and the worker's own scan
// does not lose to that.
#include "engine/coordinator_impl.h"
#include "tests/unit/engine/two_sessions.h"

namespace rdmacc {
namespace {

constexpr int kRows = 4'000;

class FullGroupsTest : public TwoSessions {
 protected:
  // In transactions of one row each, which rely on no absence or on their own key's: those do not
  // lose to the splits that they have caused, the others may.
  void load(bool check_absent) {
    int lost = 0;
    for (int i = 0; i < kRows; i++) {
      ASSERT_TRUE(one_.begin(options()).ok());
      const std::string key = "row " + std::to_string(i);
      Status status = check_absent ? one_.insert(table_, key, "row")
                                   : one_.insert_unchecked(table_, key, "row");
      if (status.ok()) {
        status = one_.commit();
      } else {
        one_.abort();
      }
      if (!status.ok()) {
        ASSERT_LE(++lost, check_absent ? 0 : kRows) << status.to_string();
        --i;
      }
      // The others' owners are told in the background, which gets its time here.
      if (!check_absent) here_.worker().scheduler().sleep_for(20);
    }
  }
  void expect_few_requests(bool check_absent) {
    const uint64_t before = splits(), messages = here_.stats().allocation_verbs.messages;
    load(check_absent);
    EXPECT_GT(splits(), before + kRows / 56);
    // Neither slots nor room are asked for with locks held, but for the first and a few.
    EXPECT_LT(here_.stats().allocation_verbs.messages, messages + kRows / 40);
  }
  void scan_after_load(bool check_absent, bool reads_before) {
    load(check_absent);
    ASSERT_TRUE(one_.begin(options()).ok());
    RowView row;
    if (reads_before) {
      for (const char* key : {"a", "none"}) ASSERT_TRUE(one_.get(table_, key, row).ok());
    }
    auto cursor = one_.scan(table_);
    ASSERT_TRUE(cursor.ok());
    std::vector<RowView> batch;
    size_t rows = 0;
    do {
      const Status status = one_.scan_next(**cursor, batch);
      ASSERT_TRUE(status.ok()) << status.to_string();
      rows += batch.size();
    } while (!batch.empty());
    EXPECT_EQ(rows, size_t{kRows} + 3);
    EXPECT_TRUE(one_.commit().ok());
  }
  uint64_t splits() { return one_.node_statistics(0)->splits + one_.node_statistics(1)->splits; }
};

TEST_P(FullGroupsTest, AreSplitWhileInsertsGoOn) {
  as_one([&] { expect_few_requests(/*check_absent=*/false); });
}

TEST_P(FullGroupsTest, AreSplitWhileInsertsLookForTheirKeys) {
  as_one([&] { expect_few_requests(/*check_absent=*/true); });
}

TEST_P(FullGroupsTest, AScanOfTheSameWorkerDoesNotLose) {
  as_one([&] { scan_after_load(/*check_absent=*/false, /*reads_before=*/false); });
}

TEST_P(FullGroupsTest, NorDoesOneBehindInsertsThatLookForTheirKeys) {
  as_one([&] { scan_after_load(/*check_absent=*/true, /*reads_before=*/false); });
}

// What has begun tells of no groups, whose splits it would lose to.
TEST_P(FullGroupsTest, NorDoesOneOfATransactionThatHasRead) {
  as_one([&] { scan_after_load(/*check_absent=*/true, /*reads_before=*/true); });
}

INSTANTIATE_TEST_SUITE_P(
    Protocols, FullGroupsTest,
    testing::Combine(testing::Values(Protocol::kNowait, Protocol::kOcc, Protocol::kDrtm,
                                     Protocol::kMvcc, Protocol::kSundial, Protocol::kTictoc,
                                     Protocol::kMaat, Protocol::kTimestamp, Protocol::kCicada),
                     testing::Values(kOneSided)),
    name_of);

}  // namespace
}  // namespace rdmacc
