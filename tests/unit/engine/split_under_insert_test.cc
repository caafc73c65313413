// A group is split between two READs of one batch: the keys of one transaction have seen the same
// gap header at different depths. Each of them must end in the group that holds its hash.
#include <cstring>

#include "engine/storage/layout/hash_index.h"
#include "engine/storage/layout/key_hash.h"
#include "tests/unit/engine/two_sessions.h"

namespace rdmacc {
namespace {

constexpr uint64_t kGroupBits = 3;       // of the group, at the depth that a new table has
constexpr uint32_t kDeep = 10;           // deeper than the load below splits
constexpr int kLoads = 20, kRows = 200;  // of each load

class SplitUnderInsertTest : public TwoSessions {
 protected:
  // A key of node 0 whose group, at `depth`, is `bits`.
  std::string key_of(uint64_t bits, uint32_t depth) const {
    for (int i = 0;; i++) {
      const std::string key = "key " + std::to_string(i);
      const uint64_t hash = hash_key(table_, key);
      if (group_bits_of(hash, depth) == bits && home_node_of(table_, key, 2) == 0) return key;
    }
  }
  // From now on the group's header is kept as it was first seen, and the next `stale_looks_` READs
  // of it bring that, as if they had been carried out before all splits.
  void watch_group() {
    engine_.fabric().set_delivery([this](WorkerId, NodeId node, const Verb& verb) {
      if (node != 0 || verb.opcode != Opcode::kRead || verb.bytes != sizeof(Header)) return;
      Header seen;
      std::memcpy(&seen, verb.local, sizeof(seen));
      const bool is_group =
          (seen.flags & kFlagGap) != 0 && seen.table == table_ && seen.key_hash == kGroupBits;
      if (!is_group) return;
      if (before_splits_.table == kNoTable) before_splits_ = seen;
      if (stale_looks_ == 0) return;
      stale_looks_--;
      std::memcpy(verb.local, &before_splits_, sizeof(before_splits_));
    });
  }
  void load() {
    as_one([&] {
      for (int row = 0; row < kLoads * kRows; row++) {
        if (row % kRows == 0) {
          ASSERT_TRUE(one_.begin(options()).ok());
        }
        ASSERT_TRUE(one_.insert(table_, "row " + std::to_string(row), "row").ok());
        if (row % kRows == kRows - 1) {
          ASSERT_TRUE(one_.commit().ok());
        }
      }
    });
  }
  bool found(Session& session, std::string_view key) {
    RowView row;
    EXPECT_TRUE(session.begin(options()).ok());
    EXPECT_TRUE(session.get(table_, key, row).ok());
    EXPECT_TRUE(session.commit().ok());
    return row.found;
  }

  Header before_splits_{};
  int stale_looks_ = 0;
};

TEST_P(SplitUnderInsertTest, EachKeyGoesToTheGroupOfItsHash) {
  const std::string moved = key_of(kGroupBits | 1ull << kInitialDepth, kInitialDepth + 1);
  const std::string stayed = key_of(kGroupBits, kDeep);
  watch_group();
  as_other([&] { EXPECT_FALSE(found(other_, stayed)); });  // it knows the root array from now on
  ASSERT_EQ(before_splits_.length, kInitialDepth);
  load();
  as_other([&] {
    Status status;
    // The first attempt may lose to the split, but it may not be acknowledged and lost.
    for (int attempt = 0; attempt < 2; attempt++) {
      ASSERT_TRUE(other_.begin(options()).ok());
      ASSERT_TRUE(other_.insert_unchecked(table_, moved, "moved").ok());
      ASSERT_TRUE(other_.insert_unchecked(table_, stayed, "stayed").ok());
      if (attempt == 0) stale_looks_ = 2;  // of one key: before its bucket and after it
      status = other_.commit();
      EXPECT_EQ(stale_looks_, 0);
      if (status.ok()) break;
    }
    EXPECT_TRUE(status.ok()) << status.to_string();
  });
  as_one([&] {
    EXPECT_TRUE(found(one_, moved));
    EXPECT_TRUE(found(one_, stayed));
  });
}

INSTANTIATE_TEST_SUITE_P(Protocols, SplitUnderInsertTest, every_protocol(), name_of);

}  // namespace
}  // namespace rdmacc
