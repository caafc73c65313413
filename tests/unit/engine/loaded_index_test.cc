// A table that was loaded in one transaction is as quick to look up as any other, and stays so
// without another write: its groups were locked by the loader while their buckets were chained.
#include "tests/unit/engine/two_sessions.h"

namespace rdmacc {
namespace {

constexpr int kRows = 100'000;
constexpr int kLookUps = 1'000;
// Of a look-up that nothing is cached of: bucket, chained bucket, record.
constexpr uint64_t kRoundTripsMax = 3;
// Looked up before, since a transaction's first access also enters the gate.
constexpr std::string_view kFirstKey = "a";

std::string key_of(int row) { return "row " + std::to_string(row); }

// In one transaction.
void load(Session& session, const TxnOptions& options, TableId table, int rows) {
  ASSERT_TRUE(session.begin(options).ok());
  for (int row = 0; row < rows; row++) {
    ASSERT_TRUE(session.insert_unchecked(table, key_of(row), "row").ok());
  }
  const Status status = session.commit();
  ASSERT_TRUE(status.ok()) << status.to_string();
}

// The most round trips that a look-up took; every row must be there.
uint64_t look_up_some(Session& session, const TxnOptions& options, TableId table, int rows) {
  uint64_t most = 0;
  for (int i = 0; i < kLookUps; i++) {
    RowView row;
    EXPECT_TRUE(session.begin(options).ok());
    EXPECT_TRUE(session.get(table, kFirstKey, row).ok());
    const uint64_t before = session.verb_counters().round_trips;
    EXPECT_TRUE(session.get(table, key_of(i * (rows / kLookUps)), row).ok());
    EXPECT_TRUE(row.found) << i;
    // The first ones fetch the table and the root arrays.
    if (i > 10) most = std::max(most, session.verb_counters().round_trips - before);
    EXPECT_TRUE(session.commit().ok());
  }
  return most;
}

class LoadedIndexTest : public TwoSessions {};

TEST_P(LoadedIndexTest, IsSplitOnceItsLoaderHasCommitted) {
  as_one([&] { load(one_, options(), table_, kRows); });
  as_other([&] {
    const uint64_t most = look_up_some(other_, options(), table_, kRows);
    // Where it leaves its time or a lease in the header, in a round of its own.
    const bool leaves_its_time = (happens_at_ctts(protocol()) && protocol() != Protocol::kCicada) ||
                                 rules_of(protocol())->leases_by_clock;
    EXPECT_LE(most, kRoundTripsMax + (leaves_its_time ? 1 : 0));
  });
}

// What is not run again when it loses waits for the splits that a load has caused.
TEST_P(LoadedIndexTest, AScanAfterTheWaitForSplitsHasEveryRow) {
  as_one([&] { load(one_, options(), table_, kRows / 2); });
  as_other([&] {
    ASSERT_TRUE(other_.begin(options()).ok());
    ASSERT_TRUE(other_.wait_for_splits().ok());
    other_.cancel();
    EXPECT_EQ(other_.wait_for_splits().code(), Code::kCancelled);
    other_.abort();
    ASSERT_TRUE(other_.begin(options()).ok());
    auto cursor = other_.scan(table_);
    ASSERT_TRUE(cursor.ok()) << cursor.status().to_string();
    std::vector<RowView> batch;
    size_t rows = 0;
    do {
      const Status status = other_.scan_next(**cursor, batch);
      ASSERT_TRUE(status.ok()) << status.to_string();
      rows += batch.size();
    } while (!batch.empty());
    EXPECT_EQ(rows, kRows / 2 + 3u);
    const Status committed = other_.commit();
    EXPECT_TRUE(committed.ok()) << committed.to_string();
  });
}

// A loader that aborts has had buckets chained for rows that never came: they go again.
class AbortedLoadTest : public TwoSessions {};

TEST_P(AbortedLoadTest, LeavesNoLongChains) {
  as_one([&] {
    RowView row;
    ASSERT_TRUE(one_.begin(options()).ok());
    ASSERT_TRUE(one_.get(table_, kFirstKey, row).ok());
    for (int i = 0; i < kRows / 5; i++) {
      ASSERT_TRUE(one_.insert_unchecked(table_, key_of(i), "row").ok());
    }
  });
  as_other([&] {
    ASSERT_TRUE(other_.begin(options()).ok());
    ASSERT_TRUE(other_.put(table_, kFirstKey, "1").ok());
    ASSERT_TRUE(other_.commit().ok());
  });
  as_one([&] {
    EXPECT_EQ(one_.commit().code(), Code::kAborted);
    here_.worker().scheduler().sleep_for(1'000'000);
  });
  as_other([&] {
    RowView row;
    for (int i = 0; i < 100; i++) {
      ASSERT_TRUE(other_.begin(options()).ok());
      ASSERT_TRUE(other_.get(table_, "b", row).ok());
      const uint64_t before = other_.verb_counters().round_trips;
      ASSERT_TRUE(other_.get(table_, key_of(i), row).ok());
      EXPECT_FALSE(row.found);
      const uint64_t round_trips = other_.verb_counters().round_trips - before;
      ASSERT_TRUE(other_.commit().ok());
      if (i <= 10) continue;  // the first ones fetch the root arrays
      EXPECT_LE(round_trips, kRoundTripsMax);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Protocols, AbortedLoadTest,
                         testing::Combine(testing::Values(Protocol::kOcc),
                                          testing::Values(kOneSided, kRpc)),
                         name_of);

#if !defined(__SANITIZE_ADDRESS__)
TEST(LoadedIndex, IsSplitForAMillionRowsToo) {
  SimEngine engine(1, 0, 2, 512ull << 20);
  engine.options().write_set_bytes_max = 4ull << 30;
  Coordinator& loader = engine.add_coordinator();
  constexpr int kManyRows = 1'000'000;
  constexpr uint64_t kEventsMax = 1'000'000'000;  // some hundred a row
  Coordinator& reader = engine.add_coordinator();
  Session loads(loader), reads(reader);
  TxnOptions options;
  options.protocol = Protocol::kNowait;
  options.plan = StagePlan(kOneSided);
  TableId table = kNoTable;
  const auto create_and_load = [&] {
    TableSpec spec;
    spec.relfilenode = 1;
    spec.record_size = 64;
    auto created = loads.create_table(spec);
    ASSERT_TRUE(created.ok());
    table = created->id;
    ASSERT_TRUE(loads.begin(options).ok());
    ASSERT_TRUE(loads.insert(table, kFirstKey, "row").ok());
    ASSERT_TRUE(loads.commit().ok());
    load(loads, options, table, kManyRows);
  };
  engine.run(loader, create_and_load, kEventsMax);
  engine.run(reader,
             [&] { EXPECT_LE(look_up_some(reads, options, table, kManyRows), kRoundTripsMax); });
}
#endif

// The logic of splits does not depend on how rows are read: one-sided, where the session counts the
// verbs.
INSTANTIATE_TEST_SUITE_P(
    Protocols, LoadedIndexTest,
    testing::Combine(testing::Values(Protocol::kNowait, Protocol::kOcc, Protocol::kDrtm,
                                     Protocol::kMvcc, Protocol::kSundial, Protocol::kTictoc,
                                     Protocol::kMaat, Protocol::kTimestamp, Protocol::kCicada),
                     testing::Values(kOneSided)),
    name_of);

}  // namespace
}  // namespace rdmacc
