// Sessions on a simulated cluster: what one transaction sees and leaves, under every protocol and
// with stages one-sided, by RPC and mixed.
#include "engine/session.h"

#include <gtest/gtest.h>

#include <map>

#include "engine/protocols/registry.h"
#include "tests/unit/engine/sim_engine.h"

namespace rdmacc {
namespace {

struct Variant {
  Protocol protocol;
  uint16_t code;
};

void PrintTo(const Variant& v, std::ostream* out) {
  *out << protocol_name(v.protocol) << "_" << v.code;
}

class SessionTest : public testing::TestWithParam<Variant> {
 protected:
  SessionTest() : engine_(GetParam().code + 1u, 1) {}

  TxnOptions options() const {
    TxnOptions options;
    options.protocol = GetParam().protocol;
    options.plan = StagePlan(GetParam().code);
    return options;
  }
  // Runs `body` within a session of a fresh coordinator and one table.
  void with_session(const std::function<void(Session&, TableId)>& body, uint32_t record_size = 64) {
    Coordinator& coordinator = engine_.add_coordinator();
    engine_.run(coordinator, [&] {
      Session session(coordinator);
      TableSpec spec;
      spec.relfilenode = next_table_++;
      spec.record_size = record_size;
      auto table = session.create_table(spec);
      ASSERT_TRUE(table.ok()) << table.status().to_string();
      body(session, table->id);
      EXPECT_FALSE(session.active());
    });
  }
  // Everything in the table: as the open transaction sees it, or in one of its own, which is
  // tried again when the index moves under it.
  std::map<std::string, std::string> all(Session& session, TableId table) {
    if (session.active()) {
      std::map<std::string, std::string> rows;
      const Status status = scan(session, table, rows);
      EXPECT_TRUE(status.ok()) << status.to_string();
      return rows;
    }
    for (int attempt = 0; attempt < 50; attempt++) {
      std::map<std::string, std::string> rows;
      EXPECT_TRUE(session.begin(options()).ok());
      Status status = scan(session, table, rows);
      if (status.ok()) {
        status = session.commit();
      } else {
        session.abort();
      }
      if (status.ok()) return rows;
      EXPECT_EQ(status.code(), Code::kAborted) << status.to_string();
    }
    ADD_FAILURE() << "the scan never committed";
    return {};
  }
  static Status scan(Session& session, TableId table, std::map<std::string, std::string>& rows,
                     uint32_t row_bytes_max = kWholeRow) {
    auto cursor = session.scan(table, kEveryCommand, ScanMode::kSerializable,
                               {.row_bytes_max = row_bytes_max});
    if (!cursor.ok()) return cursor.status();
    std::vector<RowView> batch;
    do {
      RDMACC_RETURN_IF_ERROR(session.scan_next(**cursor, batch));
      for (const RowView& row : batch) {
        EXPECT_TRUE(rows.emplace(std::string(row.key), std::string(row.row)).second)
            << "twice: " << row.key;
      }
    } while (!batch.empty());
    return Status();
  }

  SimEngine engine_;
  uint32_t next_table_ = 1;
};

// Rows in their records and beyond, and own writes: what is wanted of each is there. That the rest
// is left out where it would cost something is seen by the bytes that come.
TEST_P(SessionTest, ScansMayLeaveOutTheEndsOfRows) {
  constexpr size_t kLong = 20'000;
  with_session([&](Session& session, TableId table) {
    std::map<std::string, std::string> rows;
    for (int i = 0; i < 20; i++) {
      const size_t bytes = i % 4 == 3 ? kLong + static_cast<size_t>(i) : static_cast<size_t>(i) * 2;
      rows["key" + std::to_string(i)] = std::string(bytes, static_cast<char>('a' + i));
    }
    ASSERT_TRUE(session.begin(options()).ok());
    for (const auto& [key, row] : rows) ASSERT_TRUE(session.insert(table, key, row).ok());
    ASSERT_TRUE(session.commit().ok());
    for (const uint32_t wanted : {0u, 7u, 100u, kWholeRow}) {
      ASSERT_TRUE(session.begin(options()).ok());
      ASSERT_TRUE(session.put(table, "key3", "own").ok());
      std::map<std::string, std::string> seen;
      ASSERT_TRUE(scan(session, table, seen, wanted).ok());
      session.abort();
      EXPECT_EQ(seen.size(), rows.size());
      for (const auto& [key, row] : rows) {
        const std::string& expected = key == "key3" ? "own" : row;
        const std::string& found = seen[key];
        EXPECT_GE(found.size(), std::min<size_t>(expected.size(), wanted)) << key;
        EXPECT_EQ(found, expected.substr(0, found.size())) << key;
        EXPECT_TRUE(wanted == kWholeRow || found.size() < kLong) << key;
      }
    }
  });
}

TEST_P(SessionTest, InsertedRowIsReadBackAfterCommit) {
  with_session([&](Session& session, TableId table) {
    ASSERT_TRUE(session.begin(options()).ok());
    ASSERT_TRUE(session.insert(table, "k1", "one").ok());
    RowView row;
    ASSERT_TRUE(session.get(table, "k1", row).ok());
    EXPECT_TRUE(row.found);
    EXPECT_EQ(row.row, "one");
    const Status committed = session.commit();
    ASSERT_TRUE(committed.ok()) << committed.to_string();

    ASSERT_TRUE(session.begin(options()).ok());
    ASSERT_TRUE(session.get(table, "k1", row).ok());
    EXPECT_TRUE(row.found);
    EXPECT_EQ(row.row, "one");
    ASSERT_TRUE(session.get(table, "k2", row).ok());
    EXPECT_FALSE(row.found);
    EXPECT_EQ(session.insert(table, "k1", "again").code(), Code::kDuplicateKey);
    EXPECT_EQ(session.put(table, "k2", "no").code(), Code::kNotFound);
    EXPECT_EQ(session.remove(table, "k2").code(), Code::kNotFound);
    ASSERT_TRUE(session.put(table, "k1", "uno").ok());
    ASSERT_TRUE(session.commit().ok());

    ASSERT_TRUE(session.begin(options()).ok());
    ASSERT_TRUE(session.get(table, "k1", row).ok());
    EXPECT_EQ(row.row, "uno");
    ASSERT_TRUE(session.remove(table, "k1").ok());
    ASSERT_TRUE(session.get(table, "k1", row).ok());
    EXPECT_FALSE(row.found);
    ASSERT_TRUE(session.insert(table, "k1", "back").ok());
    ASSERT_TRUE(session.remove(table, "k1").ok());
    ASSERT_TRUE(session.commit().ok());

    ASSERT_TRUE(session.begin(options()).ok());
    ASSERT_TRUE(session.get(table, "k1", row).ok());
    EXPECT_FALSE(row.found);
    ASSERT_TRUE(session.insert(table, "k1", "third").ok());
    ASSERT_TRUE(session.commit().ok());
    EXPECT_EQ(all(session, table), (std::map<std::string, std::string>{{"k1", "third"}}));
  });
}

TEST_P(SessionTest, AbortLeavesNothing) {
  with_session([&](Session& session, TableId table) {
    ASSERT_TRUE(session.begin(options()).ok());
    ASSERT_TRUE(session.insert(table, "a", "1").ok());
    session.abort();
    EXPECT_TRUE(all(session, table).empty());
    ASSERT_TRUE(session.begin(options()).ok());
    ASSERT_TRUE(session.insert(table, "a", "2").ok());
    ASSERT_TRUE(session.commit().ok());
    EXPECT_EQ(all(session, table).size(), 1u);
  });
}

TEST_P(SessionTest, ThousandRowsInOneTransactionAreScannedOnce) {
  with_session([&](Session& session, TableId table) {
    std::map<std::string, std::string> expected;
    ASSERT_TRUE(session.begin(options()).ok());
    for (int i = 0; i < 1000; i++) {
      const std::string key = "key" + std::to_string(i);
      expected[key] = std::string(static_cast<size_t>(i % 50), 'x');
      ASSERT_TRUE(session.insert(table, key, expected[key]).ok());
    }
    const Status committed = session.commit();
    ASSERT_TRUE(committed.ok()) << committed.to_string();
    EXPECT_EQ(all(session, table), expected);

    ASSERT_TRUE(session.begin(options()).ok());
    for (int i = 0; i < 1000; i += 2) {
      const std::string key = "key" + std::to_string(i);
      ASSERT_TRUE(session.remove(table, key).ok());
      expected.erase(key);
    }
    EXPECT_EQ(all(session, table), expected);
    ASSERT_TRUE(session.commit().ok());
    EXPECT_EQ(all(session, table), expected);
  });
}

TEST_P(SessionTest, LongRowsOverflowAndComeBack) {
  with_session([&](Session& session, TableId table) {
    // A whole request under CALVIN is a little less than 1 MB.
    const uint32_t longest = GetParam().protocol == Protocol::kCalvin ? 1'000'000 : kRowBytesMax;
    for (const uint32_t bytes : {10u, 600u, 5000u, 65536u, 262144u, longest, 40u, 30000u, 0u}) {
      ASSERT_TRUE(session.begin(options()).ok());
      const std::string row(bytes, static_cast<char>('a' + bytes % 26));
      RowView seen;
      ASSERT_TRUE(session.get(table, "long", seen).ok());
      ASSERT_TRUE(
          (seen.found ? session.put(table, "long", row) : session.insert(table, "long", row)).ok());
      const Status committed = session.commit();
      ASSERT_TRUE(committed.ok()) << committed.to_string();
      EXPECT_EQ(all(session, table)["long"], row);
    }
    ASSERT_TRUE(session.begin(options()).ok());
    EXPECT_EQ(session.put(table, "long", std::string(kRowBytesMax + 1, 'x')).code(),
              Code::kTooLarge);
    EXPECT_EQ(session.insert(table, std::string(2049, 'k'), "x").code(), Code::kTooLarge);
    session.abort();
  });
}

TEST_P(SessionTest, SavepointsAndCommandsHideOwnWrites) {
  with_session([&](Session& session, TableId table) {
    ASSERT_TRUE(session.begin(options()).ok());
    session.set_command(1);
    ASSERT_TRUE(session.insert(table, "a", "1").ok());
    session.set_command(2);
    ASSERT_TRUE(session.put(table, "a", "2").ok());
    RowView row;
    ASSERT_TRUE(session.get(table, "a", row, 2).ok());
    EXPECT_EQ(row.row, "1");
    ASSERT_TRUE(session.get(table, "a", row, 1).ok());
    EXPECT_FALSE(row.found);
    const uint32_t level = session.savepoint();
    ASSERT_TRUE(session.put(table, "a", "3").ok());
    ASSERT_TRUE(session.insert(table, "b", "1").ok());
    session.rollback_to(level);
    ASSERT_TRUE(session.get(table, "a", row).ok());
    EXPECT_EQ(row.row, "2");
    const uint32_t kept = session.savepoint();
    ASSERT_TRUE(session.insert(table, "c", "1").ok());
    session.release(kept);
    ASSERT_TRUE(session.commit().ok());
    EXPECT_EQ(all(session, table), (std::map<std::string, std::string>{{"a", "2"}, {"c", "1"}}));
  });
}

TEST_P(SessionTest, ConflictingWritersCannotBothCommit) {
  Coordinator& one = engine_.add_coordinator();
  Coordinator& two = engine_.add_coordinator();
  TableId table = kNoTable;
  engine_.run(one, [&] {
    Session session(one);
    auto made = session.create_table(TableSpec{});
    ASSERT_TRUE(made.ok());
    table = made->id;
    ASSERT_TRUE(session.begin(options()).ok());
    ASSERT_TRUE(session.insert(table, "x", "0").ok());
    ASSERT_TRUE(session.commit().ok());
  });
  // Both read, then both write: a lost update must not happen.
  int read = 0, committed = 0, ended = 0;
  for (Coordinator* coordinator : {&one, &two}) {
    ASSERT_TRUE(coordinator->worker().scheduler().spawn([&, coordinator] {
      Session session(*coordinator);
      ASSERT_TRUE(session.begin(options()).ok());
      RowView row;
      Status status = session.get(table, "x", row);
      read++;
      while (read < 2) coordinator->worker().scheduler().sleep_for(5);
      if (status.ok())
        status = session.put(table, "x", std::to_string(std::stoi(std::string(row.row)) + 1));
      if (status.ok())
        status = session.commit();
      else
        session.abort();
      if (status.ok()) committed++;
      ended++;
    }));
  }
  ASSERT_TRUE(engine_.run_until([&] { return ended == 2; }));
  EXPECT_EQ(committed, 1);
}

std::vector<Variant> variants() {
  return {{Protocol::kNowait, 511}, {Protocol::kNowait, 0}, {Protocol::kNowait, 1},
          {Protocol::kNowait, 28},  {Protocol::kOcc, 511},  {Protocol::kOcc, 0},
          {Protocol::kOcc, 2},      {Protocol::kOcc, 29},   {Protocol::kOcc, 37},
          {Protocol::kCalvin, 384}, {Protocol::kCalvin, 0}, {Protocol::kCalvin, 128},
          {Protocol::kCalvin, 256}};
}

INSTANTIATE_TEST_SUITE_P(Plans, SessionTest, testing::ValuesIn(variants()),
                         [](const testing::TestParamInfo<Variant>& variant) {
                           return std::string(protocol_name(variant.param.protocol)) + "_" +
                                  std::to_string(variant.param.code);
                         });

}  // namespace
}  // namespace rdmacc
