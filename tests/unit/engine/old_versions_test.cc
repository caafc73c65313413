// Old versions of rows under MVCC: there when a reader needs them, and no memory for them else.
#include "engine/storage/arena.h"
#include "engine/storage/overflow.h"
#include "tests/unit/engine/two_sessions.h"

namespace rdmacc {
namespace {

constexpr uint64_t kWhileUs = 3 * StorageService::kKeepVersionsUs;

class OldVersionsTest : public TwoSessions {
 protected:
  uint64_t used() {
    uint64_t bytes = 0;
    for (NodeId node = 0; node < 2; ++node) {
      bytes += engine_.node(node).storage()->statistics().used_bytes;
    }
    return bytes;
  }
  void other_writes(const char* key, const char* row) {
    as_other([&] {
      ASSERT_TRUE(other_.begin(options()).ok());
      ASSERT_TRUE(other_.put(table_, key, row).ok());
      ASSERT_TRUE(other_.commit().ok());
    });
  }
  void a_while_passes() {
    as_other([&] { there_.worker().scheduler().sleep_for(kWhileUs); });
  }
  std::string one_reads(const char* key) {
    std::string read;
    as_one([&] {
      RowView row;
      const Status status = one_.get(table_, key, row);
      read = status.ok() ? std::string(row.row) : status.to_string();
    });
    return read;
  }
  void one_begins() {
    as_one([&] { ASSERT_TRUE(one_.begin(options()).ok()); });
    EXPECT_EQ(one_reads("c"), "0");  // enters the gate
  }

  const uint64_t block_bytes_ = overflow_unit_bytes(versions_bytes(64, 3));
};

TEST_P(OldVersionsTest, RowsThatWereNotWrittenOverHaveNone) {
  const uint64_t start = used();
  other_writes("a", "1");
  EXPECT_EQ(used(), start + block_bytes_);
  for (const char* row : {"2", "3", "4", "5", "6"}) other_writes("a", row);
  EXPECT_EQ(used(), start + block_bytes_);
  other_writes("b", "1");
  EXPECT_EQ(used(), start + 2 * block_bytes_);
}

TEST_P(OldVersionsTest, StayWhileATransactionMayReadThem) {
  const uint64_t start = used();
  one_begins();
  other_writes("a", "1");
  other_writes("a", "2");
  a_while_passes();
  EXPECT_EQ(one_reads("a"), "0");
  as_one([&] { ASSERT_TRUE(one_.commit().ok()); });
  a_while_passes();
  EXPECT_EQ(used(), start) << "the block goes when no transaction reads it";
  // The row gets another block, which is known not to hold all versions that there have been.
  one_begins();
  other_writes("a", "3");
  EXPECT_EQ(used(), start + block_bytes_);
  EXPECT_EQ(one_reads("a"), "2");
  as_one([&] { one_.abort(); });
}

TEST_P(OldVersionsTest, AReaderThatTooManyWritesHavePassedIsTold) {
  for (const char* row : {"1", "2"}) other_writes("a", row);
  a_while_passes();
  one_begins();
  for (const char* row : {"3", "4", "5", "6", "7"}) other_writes("a", row);
  as_one([&] {
    RowView row;
    EXPECT_EQ(reason_of(one_.get(table_, "a", row)), AbortReason::kNoVersion);
    one_.abort();
  });
}

TEST_P(OldVersionsTest, GoWithTheirRow) {
  const uint64_t start = used();
  other_writes("a", "1");
  as_other([&] {
    ASSERT_TRUE(other_.begin(options()).ok());
    ASSERT_TRUE(other_.remove(table_, "a").ok());
    ASSERT_TRUE(other_.commit().ok());
  });
  a_while_passes();
  EXPECT_LT(used(), start);
}

INSTANTIATE_TEST_SUITE_P(Mvcc, OldVersionsTest,
                         testing::Combine(testing::Values(Protocol::kMvcc),
                                          testing::Values(kOneSided, kRpc)),
                         name_of);

}  // namespace
}  // namespace rdmacc
