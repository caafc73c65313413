// A split moves entries within their chains while it holds the group's lock. A reader of a time
// before that lock is let through a transaction's lock, but not this one: it may pass where an
// entry comes to stand before it does, and be where the entry stood after it has left.
#include <cstring>

#include "engine/storage/layout/hash_index.h"
#include "engine/storage/layout/key_hash.h"
#include "engine/storage/layout/region_layout.h"
#include "engine/txn/rule/outcome.h"
#include "tests/unit/engine/two_sessions.h"

namespace rdmacc {
namespace {

constexpr uint64_t kLaterUs = 3'600'000'000;  // virtual: after all that the test does

class SplitUnderReaderTest : public TwoSessions {
 protected:
  NodeId home() const { return home_node_of(table_, kMissing, 2); }
  // The lock word of the group that would hold the missing key.
  std::byte* lock_word() {
    const RegionLayout layout(one_.topology());
    std::byte* region = engine_.node(home()).worker().endpoint().local_region();
    DirectoryEntry entry;
    std::memcpy(&entry, region + layout.directory_entry(table_), sizeof(entry));
    const IndexRoot root{entry.root};
    const uint64_t bits = group_bits_of(hash_key(table_, kMissing), root.depth());
    uint64_t group = 0;
    std::memcpy(&group, region + root.offset() + 8 * bits, sizeof(group));
    return region + group + kOffsetOfLock;
  }
  void lock_by(WorkerId worker) {
    const uint64_t lock = (kLaterUs << 16) | worker;
    std::memcpy(lock_word(), &lock, sizeof(lock));
  }
  void unlock() { std::memset(lock_word(), 0, sizeof(uint64_t)); }

  Status look_up(Session& session) {
    RowView row;
    RDMACC_RETURN_IF_ERROR(session.begin(options()));
    Status status = session.get(table_, kMissing, row);
    EXPECT_FALSE(status.ok() && row.found);
    session.abort();
    return status;
  }
  Status scan(Session& session) {
    RDMACC_RETURN_IF_ERROR(session.begin(options()));
    Result<ScanHandle> cursor = session.scan(table_, kEveryCommand, ScanMode::kSerializable);
    Status status = cursor.status();
    std::vector<RowView> rows;
    do {
      if (status.ok()) status = session.scan_next(**cursor, rows);
    } while (status.ok() && !rows.empty());
    session.abort();
    return status;
  }

  static constexpr std::string_view kMissing = "missing";
};

TEST_P(SplitUnderReaderTest, EntriesAreNotReadWhileTheOwnerMovesThem) {
  lock_by(engine_.node(home()).worker().id());
  as_other([&] {
    EXPECT_EQ(reason_of(look_up(other_)), AbortReason::kReadUnstable);
    EXPECT_EQ(reason_of(scan(other_)), AbortReason::kReadUnstable);
  });
  unlock();
  as_other([&] {
    EXPECT_TRUE(look_up(other_).ok());
    EXPECT_TRUE(scan(other_).ok());
  });
}

TEST_P(SplitUnderReaderTest, ALaterTransactionsLockHindersNoReader) {
  lock_by(here_.worker().id());
  as_other([&] {
    EXPECT_TRUE(look_up(other_).ok());
    EXPECT_TRUE(scan(other_).ok());
  });
  unlock();
}

INSTANTIATE_TEST_SUITE_P(Mvcc, SplitUnderReaderTest,
                         testing::Values(ProtocolAndStages{Protocol::kMvcc, kOneSided},
                                         ProtocolAndStages{Protocol::kMvcc, kRpc}),
                         name_of);

}  // namespace
}  // namespace rdmacc
