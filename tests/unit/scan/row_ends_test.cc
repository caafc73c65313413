// Scans that want the beginnings of rows, where verbs are carried out in place: how much of a
// record is read at first follows from the keys of the batches before, and of some that is not
// enough.
#include <algorithm>
#include <map>
#include <string>

#include "engine/workloads/workload.h"
#include "tests/unit/engine/two_sessions.h"

namespace rdmacc {
namespace {

constexpr int kEndedRows = 900;  // of many groups, so of many batches
constexpr int kLongest = 850;    // this one has the longest key
constexpr uint32_t kBytesWanted = 12;

class RowEndsTest : public TwoSessions {
 protected:
  RowEndsTest() : TwoSessions(/*one_by_one=*/true) {}

  using Rows = std::map<std::string, std::string>;
  // Most keys are short, some long, and one is longer, which no first batch has; most rows are
  // longer than what is wanted, and some overflow.
  static Rows some_rows() {
    Rows rows;
    for (int i = 0; i < kEndedRows; i++) {
      std::string key = std::to_string(i);
      if (i % 40 == 10) key += std::string(i == kLongest ? 60 : 20, 'k');
      const int bytes = i % 100 == 70 ? 300 : 10 + i % 80;
      rows[key] = std::string(static_cast<size_t>(bytes), static_cast<char>('a' + i % 26));
    }
    return rows;
  }
  TableId create(const Rows& rows) {
    TableSpec spec;
    spec.relfilenode = 2;
    spec.record_size = 160;
    spec.history = 3;
    TableId id = kNoTable;
    as_one([&] {
      auto table = one_.create_table(spec);
      ASSERT_TRUE(table.ok()) << table.status().to_string();
      id = table->id;
      ASSERT_TRUE(one_.begin(options()).ok());
      for (const auto& [key, row] : rows) ASSERT_TRUE(one_.insert(id, key, row).ok());
      ASSERT_TRUE(one_.commit().ok());
    });
    return id;
  }
  Rows scan(TableId table) {
    Rows seen;
    const auto note = [&](const RowView& row) {
      EXPECT_TRUE(seen.emplace(row.key, row.row).second) << row.key << " came twice";
      return Status();
    };
    const Status status = for_each_row(other_, table, note, {.row_bytes_max = kBytesWanted});
    EXPECT_TRUE(status.ok()) << status.to_string();
    return seen;
  }
};

TEST_P(RowEndsTest, WhatIsWantedIsThereWhateverTheKeys) {
  const Rows rows = some_rows();
  const TableId table = create(rows);
  as_other([&] {
    ASSERT_TRUE(other_.begin(options()).ok());
    const Rows seen = scan(table);
    EXPECT_TRUE(other_.commit().ok());
    EXPECT_EQ(seen.size(), rows.size());
    for (const auto& [key, row] : seen) {
      const std::string& whole = rows.at(key);
      EXPECT_GE(row.size(), std::min<size_t>(whole.size(), kBytesWanted)) << key;
      EXPECT_EQ(row, whole.substr(0, row.size())) << key;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(, RowEndsTest, every_protocol(), name_of);

}  // namespace
}  // namespace rdmacc
