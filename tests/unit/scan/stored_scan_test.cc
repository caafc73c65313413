// A copy of a table that is made while others write: with what commits after its begin written over
// it, it is the table. Of rows that do not change meanwhile the copy has each, as it is, whatever
// splits, and whatever is locked.
#include <map>
#include <optional>
#include <string>

#include "rdma/base/random.h"
#include "tests/unit/engine/two_sessions.h"

namespace rdmacc {
namespace {

constexpr int kSteadyRows = 300;
constexpr int kChangingKeys = 20'000;
constexpr int kWritersTransactions = 1500;
constexpr int kScans = 6;

std::string steady_row(int i) {
  // One in seven is too long for its slot.
  return "steady " + std::to_string(i) + std::string(i % 7 == 0 ? 200 : 10, 'r');
}

class StoredScanTest : public TwoSessions {
 protected:
  StoredScanTest() : TwoSessions(/*one_by_one=*/true) {}

  void load() {
    ASSERT_TRUE(one_.begin(options()).ok());
    for (int i = 0; i < kSteadyRows; i++) {
      ASSERT_TRUE(one_.insert(table_, "s" + std::to_string(i), steady_row(i)).ok());
    }
    ASSERT_TRUE(one_.commit().ok());
  }

  // Inserts, updates and deletes of the other keys, short rows and long ones.
  Status change(Random& random) {
    RDMACC_RETURN_IF_ERROR(one_.begin(options()));
    for (int i = 0; i < 3; i++) {
      const std::string key = "k" + std::to_string(random.below(kChangingKeys));
      const std::string row = key + std::string(random.percent(20) ? 150 : random.below(20), 'x');
      RowView seen;
      RDMACC_RETURN_IF_ERROR(one_.get(table_, key, seen));
      if (!seen.found) {
        RDMACC_RETURN_IF_ERROR(one_.insert(table_, key, row));
      } else if (random.percent(30)) {
        RDMACC_RETURN_IF_ERROR(one_.remove(table_, key));
      } else {
        RDMACC_RETURN_IF_ERROR(one_.put(table_, key, row));
      }
    }
    return Status();
  }
  // What commits, in its order; as a log of whole rows has it.
  void write() {
    Random random(std::get<1>(GetParam()) + 17);
    for (int i = 0; i < kWritersTransactions; i++) {
      Status status = change(random);
      if (status.ok()) status = one_.prepare(Gtid{1, static_cast<uint64_t>(i) + 1});
      if (!status.ok() || !one_.prepared()) {
        one_.abort();
        continue;
      }
      for (const LoggedWrite& logged : one_.prepared_writes()) {
        log_.emplace_back(std::string(logged.key),
                          logged.deleted ? std::optional<std::string>() : std::string(logged.row));
      }
      ASSERT_TRUE(one_.commit_prepared().ok());
      installed_ = log_.size();
      here_.worker().scheduler().sleep_for(random.below(20));
    }
    done_ = true;
  }

  void copy(std::map<std::string, std::string>& rows) {
    ASSERT_TRUE(other_.begin(options()).ok());
    auto cursor = other_.scan(table_, kEveryCommand, ScanMode::kAsStored);
    ASSERT_TRUE(cursor.ok());
    std::vector<RowView> batch;
    do {
      const Status status = other_.scan_next(**cursor, batch);
      ASSERT_TRUE(status.ok()) << status.to_string();
      for (const RowView& row : batch) {
        const bool fresh = rows.emplace(row.key, row.row).second;
        EXPECT_TRUE(fresh || row.key[0] != 's') << row.key << " comes twice";
        if (!fresh) rows[std::string(row.key)] = std::string(row.row);
      }
      there_.worker().scheduler().sleep_for(5);
    } while (!batch.empty());
    other_.abort();
  }

  void check(std::map<std::string, std::string> rows, size_t from, size_t until) {
    for (int i = 0; i < kSteadyRows; i++) {
      EXPECT_EQ(rows["s" + std::to_string(i)], steady_row(i)) << i;
    }
    for (size_t i = from; i < until; i++) {
      if (log_[i].second.has_value()) {
        rows[log_[i].first] = *log_[i].second;
      } else {
        rows.erase(log_[i].first);
      }
    }
    std::map<std::string, std::string> truth;
    for (size_t i = 0; i < until; i++) {
      if (log_[i].second.has_value()) {
        truth[log_[i].first] = *log_[i].second;
      } else {
        truth.erase(log_[i].first);
      }
    }
    std::erase_if(rows, [](const auto& row) { return row.first[0] != 'k'; });
    EXPECT_EQ(rows, truth);
  }

  std::vector<std::pair<std::string, std::optional<std::string>>> log_;
  size_t installed_ = 0;
  bool done_ = false;
};

// Of a table that nothing else begins to write to: the newest rows, whatever the protocol, and no
// part of the read set.
class QuietScanTest : public TwoSessions {
 public:
  QuietScanTest() : TwoSessions(/*one_by_one=*/true) {}

 protected:
  Status look(std::map<std::string, std::string>& rows) {
    rows.clear();
    auto cursor = one_.scan(table_, kEveryCommand, ScanMode::kQuiet);
    if (!cursor.ok()) return cursor.status();
    std::vector<RowView> batch;
    do {
      RDMACC_RETURN_IF_ERROR(one_.scan_next(**cursor, batch));
      for (const RowView& row : batch) {
        if (row.key[0] == 'q') rows.emplace(row.key, row.row);
      }
    } while (!batch.empty());
    return Status();
  }
  void load() {
    as_one([&] {
      ASSERT_TRUE(one_.begin(options()).ok());
      for (const char* key : {"qa", "qb", "qc"}) ASSERT_TRUE(one_.insert(table_, key, "old").ok());
      ASSERT_TRUE(one_.commit().ok());
    });
  }
  // Other transactions' locks on what is read are in the way of CALVIN's order alone.
  bool in_order() const { return protocol() == Protocol::kCalvin; }
};

TEST_P(QuietScanTest, SeesTheNewestRowsAndKeepsNone) {
  load();
  std::map<std::string, std::string> rows;
  const auto begin = [&] {
    ASSERT_TRUE(one_.begin(options()).ok());
    ASSERT_TRUE(one_.insert_unchecked(table_, "qe", "own").ok());
  };
  as_one(begin);
  as_other([&] {
    ASSERT_TRUE(other_.begin(options()).ok());
    ASSERT_TRUE(other_.put(table_, "qa", "new").ok());
    ASSERT_TRUE(other_.insert(table_, "qd", "new").ok());
    ASSERT_TRUE(other_.remove(table_, "qb").ok());
    ASSERT_TRUE(other_.commit().ok());
  });
  as_one([&] {
    const Status status = look(rows);
    // They are later than all that the transaction does.
    EXPECT_EQ(status.ok(), !happens_at_ctts(protocol())) << status.to_string();
    if (status.ok()) return;
    one_.abort();
    begin();
    ASSERT_TRUE(look(rows).ok());
  });
  EXPECT_EQ(rows, (std::map<std::string, std::string>{
                      {"qa", "new"}, {"qc", "old"}, {"qd", "new"}, {"qe", "own"}}));
  as_other([&] {
    ASSERT_TRUE(other_.begin(options()).ok());
    ASSERT_TRUE(other_.put(table_, "qa", "newer").ok());
    ASSERT_TRUE(other_.commit().ok());
  });
  as_one([&] {
    const Status status = one_.commit();
    EXPECT_TRUE(status.ok()) << status.to_string();
  });
}

// What was read as absent, and is to be inserted, is there meanwhile.
TEST_P(QuietScanTest, LosesIfAnOwnInsertHasBeenForestalled) {
  load();
  std::map<std::string, std::string> rows;
  as_one([&] {
    ASSERT_TRUE(one_.begin(options()).ok());
    ASSERT_TRUE(one_.insert(table_, "qd", "own").ok());
    ASSERT_TRUE(look(rows).ok());
    EXPECT_EQ(rows["qd"], "own");
  });
  bool inserted = false;
  as_other([&] {
    ASSERT_TRUE(other_.begin(options()).ok());
    Status status = other_.insert(table_, "qd", "other");
    if (status.ok()) status = other_.commit();
    inserted = status.ok();
    other_.abort();
  });
  as_one([&] {
    EXPECT_EQ(look(rows).ok(), !inserted);
    one_.abort();
  });
}

// What a commit that is on its way writes is not passed over: of rows, of absent ones, of new ones.
TEST_P(QuietScanTest, WaitsForCommitsAndThenLoses) {
  if (in_order()) GTEST_SKIP() << "prepares nothing";
  load();
  std::map<std::string, std::string> rows;
  uint64_t decided = 0;
  using Write = std::function<Status()>;
  const Write writes[] = {[&] { return other_.put(table_, "qa", "new"); },
                          [&] { return other_.remove(table_, "qa"); },
                          [&] { return other_.insert(table_, "qd", "new"); }};
  for (const Write& write : writes) {
    as_other([&] {
      ASSERT_TRUE(other_.begin(options()).ok());
      ASSERT_TRUE(write().ok());
      ASSERT_TRUE(other_.prepare(Gtid{1, ++decided}).ok());
    });
    as_one([&] {
      ASSERT_TRUE(one_.begin(options()).ok());
      EXPECT_EQ(look(rows).code(), Code::kAborted) << decided;
      one_.abort();
    });
    as_other([&] { other_.abort(); });
  }
  as_one([&] {
    ASSERT_TRUE(one_.begin(options()).ok());
    const Status status = look(rows);
    ASSERT_TRUE(status.ok()) << status.to_string();
    one_.abort();
  });
  EXPECT_EQ(rows.size(), 3u);
}

TEST_P(StoredScanTest, IsTheTableOnceTheLogIsWrittenOverIt) {
  as_one([&] { load(); });
  CHECK(here_.worker().scheduler().spawn([&] { write(); }));
  int scans = 0;
  bool over = false;
  CHECK(there_.worker().scheduler().spawn([&] {
    while (scans < kScans || !done_) {
      const size_t from = installed_;
      std::map<std::string, std::string> rows;
      copy(rows);
      check(std::move(rows), from, log_.size());
      scans++;
      there_.worker().scheduler().sleep_for(20);
    }
    over = true;
  }));
  ASSERT_TRUE(engine_.run_until([&] { return over; }));
  EXPECT_GE(log_.size(), size_t{kWritersTransactions});
}

// A lock that is held for long does not keep the copy waiting.
TEST_P(StoredScanTest, TakesRowsThatOthersHoldLocked) {
  as_one([&] {
    load();
    ASSERT_TRUE(one_.begin(options()).ok());
    for (int i = 0; i < 20; i++) {
      const std::string key = "s" + std::to_string(i);
      EXPECT_TRUE(one_.try_lock(table_, key, RowLockMode::kExclusive).ok());
      ASSERT_TRUE(one_.put(table_, key, "not committed").ok());
    }
    ASSERT_TRUE(one_.insert(table_, "new", "not committed").ok());
  });
  std::map<std::string, std::string> rows;
  as_other([&] { copy(rows); });
  EXPECT_EQ(rows.size(), size_t{kSteadyRows} + 3);
  for (int i = 0; i < kSteadyRows; i++) EXPECT_EQ(rows["s" + std::to_string(i)], steady_row(i));
  as_one([&] { one_.abort(); });
}

// A group that one transaction reads is no group that its node is splitting.
TEST_P(StoredScanTest, TakesRowsThatOthersShare) {
  TxnOptions shared = options();
  shared.lock_mode = LockMode::kShared;
  as_one([&] {
    load();
    ASSERT_TRUE(one_.begin(shared).ok());
    auto cursor = one_.scan(table_);
    ASSERT_TRUE(cursor.ok());
    std::vector<RowView> batch;
    do {
      ASSERT_TRUE(one_.scan_next(**cursor, batch).ok());
    } while (!batch.empty());
  });
  std::map<std::string, std::string> rows;
  as_other([&] { copy(rows); });
  EXPECT_EQ(rows.size(), size_t{kSteadyRows} + 3);
  as_one([&] { one_.abort(); });
}

INSTANTIATE_TEST_SUITE_P(, QuietScanTest, every_protocol(), name_of);
INSTANTIATE_TEST_SUITE_P(Protocols, StoredScanTest, every_protocol_without_order(), name_of);

}  // namespace
}  // namespace rdmacc
