// Rows that nodes put in place before the commit, in tables of the transaction's own; batches of
// inserts.
#include <vector>

#include "engine/verify/verify.h"
#include "engine/workloads/workload.h"
#include "tests/unit/engine/two_sessions.h"

namespace rdmacc {
namespace {

constexpr int kBatches = 5, kRowsOfBatch = 100;
constexpr uint64_t kRecyclingUs = 2'000'000;  // until pages may become anything

class LoadRowsTest : public TwoSessions {
 protected:
  explicit LoadRowsTest(uint64_t region_bytes = 192ull << 20)
      : TwoSessions(/*one_by_one=*/false, region_bytes) {}
  bool may_load() const {
    return !happens_at_ctts(protocol()) && protocol() != Protocol::kSundial &&
           protocol() != Protocol::kTictoc && protocol() != Protocol::kMaat &&
           protocol() != Protocol::kCalvin;
  }
  TableId new_table(uint32_t history = 0) {
    TableSpec spec;
    spec.relfilenode = ++files_;
    spec.record_size = 32;
    spec.history = history;
    auto made = one_.create_table(spec);
    EXPECT_TRUE(made.ok());
    return made->id;
  }
  // Some keys, and so rows, that need a block of their own.
  static std::string key_of(int number) {
    return "key" + std::to_string(number) + std::string(number % 10 == 0 ? 60 : 0, '_');
  }
  using Insert = Status (Session::*)(TableId, std::span<const std::string_view>,
                                     std::span<const std::string_view>, bool, size_t*);
  Status insert(Insert how, TableId table, int first, bool check_absent, size_t* duplicate) {
    std::vector<std::string> texts;
    for (int i = 0; i < kRowsOfBatch; i++) texts.push_back(key_of(first + i));
    const std::vector<std::string_view> views(texts.begin(), texts.end());
    return (one_.*how)(table, views, views, check_absent, duplicate);
  }
  Status load(TableId table, int first, bool check_absent = true) {
    size_t duplicate = 0;
    return insert(&Session::load_rows, table, first, check_absent, &duplicate);
  }
  Status post(TableId table, int first) {
    std::vector<std::string> texts;
    for (int i = 0; i < kRowsOfBatch; i++) texts.push_back(key_of(first + i));
    const std::vector<std::string_view> views(texts.begin(), texts.end());
    return one_.post_load(table, views, views, /*check_absent=*/true);
  }
  size_t count(Session& session, TableId table) {
    size_t rows = 0;
    const Status status = for_each_row(session, table, [&](const RowView& row) {
      EXPECT_EQ(row.key, row.row);
      rows++;
      return Status();
    });
    EXPECT_TRUE(status.ok()) << status.to_string();
    return rows;
  }
  void expect_sound(Session& session, TableId table) {
    const TableToVerify wanted{.table = table};
    VerifyOptions how;
    how.txn = options();
    how.units = true;
    const auto report = verify_tables(session, std::span(&wanted, 1), how);
    ASSERT_TRUE(report.ok()) << report.status().to_string();
    for (const Finding& finding : report.value().findings) ADD_FAILURE() << finding.detail;
  }

  uint32_t files_ = 10;
};

class LoadsOfSmallNodes : public LoadRowsTest {
 protected:
  LoadsOfSmallNodes() : LoadRowsTest(36ull << 20) {}
  // Until all of the batches are there, or an error.
  Status fill(TableId table, int batches, int* loaded) {
    for (*loaded = 0; *loaded < batches; ++*loaded) {
      const int rows = *loaded * kRowsOfBatch;
      if ((rows & (rows - 1)) == 0 || *loaded % 1000 == 0) {
        RDMACC_RETURN_IF_ERROR(one_.expect_rows(table, static_cast<uint64_t>(2 * rows)));
      }
      RDMACC_RETURN_IF_ERROR(load(table, rows));
    }
    return Status();
  }
};

TEST_P(LoadRowsTest, AreReadByTheTransactionAndThenByOthers) {
  TableId table = kNoTable;
  as_one([&] {
    table = new_table(protocol() == Protocol::kOcc ? 3 : 0);
    ASSERT_TRUE(one_.begin(options()).ok());
    ASSERT_EQ(one_.may_load(), may_load());
    if (!may_load()) {
      EXPECT_EQ(load(table, 0).code(), Code::kInvalidArgument);
      return one_.abort();
    }
    ASSERT_TRUE(one_.put(table_, "a", "1").ok());
    EXPECT_TRUE(one_.has_met(table_));
    ASSERT_TRUE(one_.expect_rows(table, kBatches * kRowsOfBatch).ok());
    for (int i = 0; i < kBatches; i++) {
      const Status loaded = load(table, i * kRowsOfBatch, i % 2 == 0);
      ASSERT_TRUE(loaded.ok()) << loaded.to_string();
    }
    EXPECT_FALSE(one_.has_met(table));
    // A group that the load has filled is split some time, and what had read it loses.
    ASSERT_TRUE(one_.wait_for_splits().ok());
    EXPECT_EQ(count(one_, table), size_t{kBatches * kRowsOfBatch});
    EXPECT_TRUE(one_.has_met(table));
    RowView row;
    ASSERT_TRUE(one_.put(table, key_of(7), key_of(7)).ok());
    ASSERT_TRUE(one_.put(table, key_of(30), key_of(30)).ok());
    ASSERT_TRUE(one_.get(table, key_of(450), row).ok());
    EXPECT_TRUE(row.found);
    const Status committed = one_.commit();
    ASSERT_TRUE(committed.ok()) << committed.to_string();
    expect_sound(one_, table);
  });
  if (!may_load()) return;
  as_other([&] {
    ASSERT_TRUE(other_.begin(options()).ok());
    RowView row;
    ASSERT_TRUE(other_.get(table_, "a", row).ok());
    EXPECT_EQ(row.row, "1");
    EXPECT_EQ(count(other_, table), size_t{kBatches * kRowsOfBatch});
    for (int i = 0; i < 20; i++) ASSERT_TRUE(other_.remove(table, key_of(i)).ok());
    EXPECT_TRUE(other_.commit().ok());
  });
}

// What is posted is put in place while its transaction is about something else, and ends before it.
TEST_P(LoadRowsTest, APostedLoadEndsBeforeItsTransaction) {
  if (!may_load()) GTEST_SKIP();
  as_one([&] {
    const TableId table = new_table();
    ASSERT_TRUE(one_.begin(options()).ok());
    ASSERT_TRUE(post(table, 0).ok());
    EXPECT_TRUE(one_.load_posted());
    ASSERT_TRUE(one_.put(table_, "a", "1").ok());
    size_t duplicate = 0;
    ASSERT_TRUE(one_.finish_load(&duplicate).ok());
    EXPECT_FALSE(one_.load_posted());
    ASSERT_TRUE(post(table, kRowsOfBatch).ok());
    one_.await_load();
    EXPECT_TRUE(one_.load_posted()) << "its outcome is still to be asked for";
    ASSERT_TRUE(one_.commit().ok());
    ASSERT_TRUE(one_.begin(options()).ok());
    EXPECT_FALSE(one_.load_posted());
    EXPECT_EQ(count(one_, table), size_t{2 * kRowsOfBatch});
    ASSERT_TRUE(one_.commit().ok());
    expect_sound(one_, table);
  });
}

// One that has failed makes the commit fail, but not one that is not wanted any more; neither does
// an abort leave any behind.
TEST_P(LoadRowsTest, ACommitAsksForTheOutcomeOfWhatIsPosted) {
  if (!may_load()) GTEST_SKIP();
  as_one([&] {
    const TableId kept = new_table(), lost = new_table();
    ASSERT_TRUE(one_.begin(options()).ok());
    ASSERT_TRUE(load(kept, 0).ok());
    ASSERT_TRUE(post(kept, kRowsOfBatch / 2).ok());
    size_t duplicate = 0;
    for (int asked = 0; asked < 2; asked++) {
      EXPECT_EQ(one_.finish_load(&duplicate).code(), Code::kDuplicateKey);
      EXPECT_EQ(post(kept, 5 * kRowsOfBatch).code(), Code::kInvalidArgument);
    }
    EXPECT_EQ(one_.commit().code(), Code::kDuplicateKey) << "whatever was asked before";
    EXPECT_FALSE(one_.active());
    ASSERT_TRUE(one_.begin(options()).ok());
    ASSERT_TRUE(one_.put(table_, "a", "2").ok());
    ASSERT_TRUE(load(lost, 0).ok());
    ASSERT_TRUE(post(lost, kRowsOfBatch / 2).ok());
    one_.give_up_load();
    EXPECT_FALSE(one_.load_posted());
    ASSERT_TRUE(one_.commit().ok());
    ASSERT_TRUE(one_.drop_table(lost).ok());
    ASSERT_TRUE(one_.begin(options()).ok());
    ASSERT_TRUE(post(kept, 10 * kRowsOfBatch).ok());
    one_.abort();
    EXPECT_FALSE(one_.load_posted());
    ASSERT_TRUE(one_.drop_table(kept).ok());
  });
}

// A key of an earlier batch, and one that comes twice in a batch.
TEST_P(LoadRowsTest, ADuplicateIsNamed) {
  if (!may_load()) GTEST_SKIP();
  as_one([&] {
    TableId table = new_table();
    ASSERT_TRUE(one_.begin(options()).ok());
    ASSERT_TRUE(load(table, 100).ok());
    size_t duplicate = 0;
    EXPECT_EQ(insert(&Session::load_rows, table, 50, true, &duplicate).code(), Code::kDuplicateKey);
    EXPECT_EQ(duplicate, 50u) << "the first of its node's, and so the first of all";
    one_.abort();
    ASSERT_TRUE(one_.drop_table(table).ok());
    table = new_table();
    const std::vector<std::string_view> twice = {"x", "y", "x"};
    ASSERT_TRUE(one_.begin(options()).ok());
    EXPECT_EQ(one_.load_rows(table, twice, twice, true, &duplicate).code(), Code::kDuplicateKey);
    EXPECT_EQ(duplicate, 2u);
    one_.abort();
  });
}

// The caller drops the table; nothing of its rows is in the way of that.
TEST_P(LoadRowsTest, GoWithTheirTableWhenTheTransactionAborts) {
  if (!may_load()) GTEST_SKIP();
  as_one([&] {
    const TableId table = new_table();
    ASSERT_TRUE(one_.begin(options()).ok());
    ASSERT_TRUE(one_.put(table_, "b", "1").ok());
    ASSERT_TRUE(load(table, 0).ok());
    one_.abort();
    ASSERT_TRUE(one_.drop_table(table).ok());
    ASSERT_TRUE(one_.begin(options()).ok());
    RowView row;
    ASSERT_TRUE(one_.get(table_, "b", row).ok());
    EXPECT_EQ(row.row, "0");
    EXPECT_EQ(load(table, 0).code(), Code::kNotFound);
    one_.abort();
  });
}

// Many groups, without a hint: they split and chain beside the load.
TEST_P(LoadRowsTest, FillGroupsThatSplitMeanwhile) {
  if (!may_load()) GTEST_SKIP();
  TableId table = kNoTable;
  constexpr int kManyBatches = 60;
  as_one([&] {
    table = new_table();
    ASSERT_TRUE(one_.begin(options()).ok());
    for (int i = 0; i < kManyBatches; i++) ASSERT_TRUE(load(table, i * kRowsOfBatch).ok());
    ASSERT_TRUE(one_.wait_for_splits().ok());
    EXPECT_EQ(count(one_, table), size_t{kManyBatches * kRowsOfBatch});
    ASSERT_TRUE(one_.commit().ok());
    expect_sound(one_, table);
  });
}

// Rows that take nearly all of the nodes' memory, again and again: that of the table before is on
// its way back when the next load needs it, and groups split where the load waits for it.
TEST_P(LoadsOfSmallNodes, FindTheMemoryOfDroppedTables) {
  as_one([&] {
    int batches = 0, loaded = 0;
    for (int round = 0; round < 4; round++) {
      const TableId table = new_table();
      ASSERT_TRUE(one_.begin(options()).ok());
      const int wanted = round == 0 ? 1'000'000 : batches * 8 / 10;
      const Status status = fill(table, wanted, &loaded);
      EXPECT_EQ(status.code(), round == 0 ? Code::kNoSpace : Code::kOk)
          << status.to_string() << " in round " << round << ", " << loaded << " of " << batches;
      if (round == 0) batches = loaded;
      if (round > 0) {
        EXPECT_EQ(count(one_, table), static_cast<size_t>(wanted) * kRowsOfBatch);
      }
      one_.abort();
      ASSERT_TRUE(one_.drop_table(table).ok());
      one_.scheduler().sleep_for(kRecyclingUs);
    }
  });
}

// Many keys in one batch, in the transaction itself; what it has written before is met.
TEST_P(LoadRowsTest, InsertManyInOneTransaction) {
  as_one([&] {
    ASSERT_TRUE(one_.begin(options()).ok());
    size_t duplicate = 0;
    ASSERT_TRUE(insert(&Session::insert_many, table_, 0, true, &duplicate).ok());
    const std::vector<std::string_view> keys = {"d", "key3", "e"};
    EXPECT_EQ(one_.insert_many(table_, keys, keys, true, &duplicate).code(), Code::kDuplicateKey);
    EXPECT_EQ(duplicate, 1u);
    const std::vector<std::string_view> none;
    EXPECT_TRUE(one_.insert_many(table_, none, none, true, &duplicate).ok());
    const std::string long_key(kKeyBytesMax + 1, 'k');
    const std::vector<std::string_view> too_long = {"f", long_key};
    EXPECT_EQ(one_.insert_many(table_, too_long, too_long, false, &duplicate).code(),
              Code::kTooLarge);
    const Status committed = one_.commit();
    ASSERT_TRUE(committed.ok()) << committed.to_string();
  });
  as_other([&] {
    ASSERT_TRUE(other_.begin(options()).ok());
    RowView row;
    for (const auto& [key, there] : {std::pair("d", true), std::pair("e", false),
                                     std::pair("f", false), std::pair("key99", true)}) {
      ASSERT_TRUE(other_.get(table_, key, row).ok());
      EXPECT_EQ(row.found, there) << key;
    }
    EXPECT_TRUE(other_.commit().ok());
  });
}

INSTANTIATE_TEST_SUITE_P(, LoadRowsTest, every_protocol(), name_of);
INSTANTIATE_TEST_SUITE_P(, LoadsOfSmallNodes,
                         testing::Combine(testing::Values(Protocol::kNowait),
                                          testing::Values(kOneSided)),
                         name_of);

}  // namespace
}  // namespace rdmacc
