// Memory that is damaged on purpose: verification sees what was done, and nothing else.
#include "engine/storage/layout/overflow.h"
#include "tests/unit/verify/verified_engine.h"

namespace rdmacc {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::UnorderedElementsAre;

class Damage : public testing::Test {
 protected:
  Damage() : verified_(5) {}

  // A free entry of the bucket in which keys with this hash belong, in another group of the node.
  uint64_t free_entry_elsewhere(NodeId node, uint64_t hash) {
    const uint64_t own = verified_.group_of(node, hash);
    for (uint64_t i = 0; i < 1ull << verified_.root(node).depth(); ++i) {
      const uint64_t group = verified_.root_slot(node, i);
      const uint64_t bucket = bucket_offset(group, home_bucket_of(hash));
      for (uint32_t e = 0; group != own && e < kEntriesPerBucket; ++e) {
        if (verified_.at<Bucket>(node, bucket).entries[e] == 0) return bucket + 8 * e;
      }
    }
    ADD_FAILURE() << "no free entry";
    return 0;
  }

  VerifiedEngine verified_;
};

TEST_F(Damage, IsNotSeenWhereThereIsNone) {
  EXPECT_THAT(verified_.kinds(), ElementsAre());
  EXPECT_EQ(verified_.rows(), VerifiedEngine::kRows);
  EXPECT_GT(verified_.root(0).depth(), kInitialDepth) << "no group was split";
}

// What the merging of two looks at one gap header did to rows that were acknowledged.
TEST_F(Damage, EntryInAGroupThatDoesNotClaimIt) {
  const auto place = verified_.find(VerifiedEngine::key(7));
  verified_.at<uint64_t>(place.node, free_entry_elsewhere(place.node, place.hash)) =
      std::exchange(verified_.entry(place), 0);
  EXPECT_THAT(verified_.kinds(), UnorderedElementsAre("wrong group", "lost row", kFindingNotFound));
  for (const Finding& finding : verified_.verify()) {
    EXPECT_EQ(finding.key, VerifiedEngine::key(7)) << finding.to_string();
    EXPECT_EQ(finding.node, place.node);
  }
}

TEST_F(Damage, LiveRecordThatIsLinkedNowhere) {
  const auto place = verified_.find(VerifiedEngine::key(8));
  verified_.entry(place) = 0;
  EXPECT_THAT(verified_.kinds(), ElementsAre("lost row"));
}

TEST_F(Damage, SlotThatIsLeaked) {
  const auto place = verified_.find(VerifiedEngine::key(9));
  verified_.record(place).flags = 0;
  verified_.entry(place) = 0;
  EXPECT_THAT(verified_.kinds(), ElementsAre("leaked slot"));
}

TEST_F(Damage, EntryInAnotherBucket) {
  for (uint32_t number = 0; number < VerifiedEngine::kRows; ++number) {
    const auto place = verified_.find(VerifiedEngine::key(number));
    const uint32_t other = (home_bucket_of(place.hash) + 1) % kBucketsPerGroup;
    auto& bucket = verified_.at<Bucket>(place.node, bucket_offset(place.group, other));
    if (bucket.entries[0] != 0) continue;
    bucket.entries[0] = std::exchange(verified_.entry(place), 0);
    EXPECT_THAT(verified_.kinds(),
                UnorderedElementsAre("wrong bucket", "lost row", kFindingNotFound));
    return;
  }
  FAIL() << "no free entry";
}

TEST_F(Damage, EntryWithAnotherTag) {
  verified_.entry(verified_.find(VerifiedEngine::key(11))) ^= 1ull << 50;
  EXPECT_THAT(verified_.kinds(), UnorderedElementsAre("wrong tag", kFindingNotFound));
}

TEST_F(Damage, EntryOfARecordThatIsGone) {
  verified_.record(verified_.find(VerifiedEngine::key(12))).table = 4711;
  EXPECT_THAT(verified_.kinds(), Contains("no record"));
}

TEST_F(Damage, RecordThatIsNamedTwice) {
  for (uint32_t number = 0; number < VerifiedEngine::kRows; ++number) {
    const auto place = verified_.find(VerifiedEngine::key(number));
    Bucket& bucket = verified_.at<Bucket>(place.node, place.bucket);
    uint64_t* const free = std::find(bucket.entries, std::end(bucket.entries), 0u);
    if (free == std::end(bucket.entries)) continue;
    *free = verified_.entry(place);
    EXPECT_THAT(verified_.kinds(), UnorderedElementsAre("named twice", kFindingScannedTwice));
    return;
  }
  FAIL() << "no free entry";
}

TEST_F(Damage, KeyOfAnotherHash) {
  const auto place = verified_.find(VerifiedEngine::key(14));
  verified_.at<char>(place.node, entry_offset(verified_.entry(place)) + kOffsetOfRecord + 5) ^= 1;
  EXPECT_THAT(verified_.kinds(), Contains("wrong key"));
}

TEST_F(Damage, RootSlotThatNamesAnotherGroup) {
  const uint64_t lost = verified_.root_slot(0, 3);
  verified_.root_slot(0, 3) = verified_.root_slot(0, 2);
  const std::set<std::string> kinds = verified_.kinds();
  EXPECT_THAT(kinds, Contains("root array"));
  EXPECT_THAT(kinds, Contains("lost row"));
  if (verified_.at<Header>(0, lost).key_hash == 3) {
    EXPECT_THAT(kinds, Contains("unreachable group"));
  }
}

// Rows of one bucket that are too few for a split of their group.
TEST(ChainDamage, ChainThatIsCutOff) {
  constexpr uint32_t kRowsOfBucket = kEntriesPerBucket + 2;
  VerifiedEngine verified(5, Protocol::kOcc, 0);
  std::vector<std::string> keys;
  uint64_t home = 0;
  for (uint32_t number = 0; keys.size() < kRowsOfBucket; ++number) {
    ASSERT_LT(number, 100'000u);
    const std::string key = VerifiedEngine::key(number);
    if (verified.node_of(key) != 0) continue;
    const uint64_t hash = hash_key(verified.table(), key);
    const uint64_t bucket = bucket_offset(verified.group_of(0, hash), home_bucket_of(hash));
    if (home == 0) home = bucket;
    if (bucket == home) keys.push_back(key);
  }
  verified.engine().run(verified.coordinator(), [&] {
    Session session(verified.coordinator());
    ASSERT_TRUE(session.begin(verified.options().txn).ok());
    for (const std::string& key : keys) {
      ASSERT_TRUE(session.insert(verified.table(), key, "row").ok());
    }
    ASSERT_TRUE(session.commit().ok());
    session.scheduler().sleep_for(100'000);
  });
  EXPECT_THAT(verified.kinds(), ElementsAre());
  EXPECT_EQ(verified.rows(), kRowsOfBucket);
  Bucket& bucket = verified.at<Bucket>(0, home);
  ASSERT_NE(bucket.next, 0u);
  bucket.next = 0;
  EXPECT_THAT(verified.kinds(), UnorderedElementsAre("leaked unit", "lost row"));
}

TEST_F(Damage, ChainThatLeadsAstray) {
  for (uint64_t i = 0; i < 1ull << verified_.root(0).depth(); ++i) {
    const uint64_t group = verified_.root_slot(0, i);
    Bucket& bucket = verified_.at<Bucket>(0, bucket_offset(group, 0));
    if (bucket.next != 0) continue;
    bucket.next = group;  // no bucket
    EXPECT_THAT(verified_.kinds(), Contains("broken chain"));
    return;
  }
  FAIL() << "only chains";
}

TEST_F(Damage, OverflowBlockOfNobody) {
  const auto place = verified_.find(VerifiedEngine::key(VerifiedEngine::kLongRowEvery));
  Header& record = verified_.record(place);
  ASSERT_NE(record.flags & kFlagOverflow, 0u);
  // The row becomes a short one; what it was has no owner.
  const uint64_t slot = entry_offset(verified_.entry(place));
  const std::string key = VerifiedEngine::key(VerifiedEngine::kLongRowEvery);
  record.flags &= ~kFlagOverflow;
  record.length = static_cast<uint32_t>(record_bytes(key.size(), 0));
  put_record(&verified_.at<char>(place.node, slot + kOffsetOfRecord), key, {});
  EXPECT_THAT(verified_.kinds(), ElementsAre("leaked block"));
}

// ---- Locks

TEST_F(Damage, LockOfAWorkerThatIsGone) {
  const auto place = verified_.find(VerifiedEngine::key(20));
  verified_.at<Header>(place.node, place.group).lock = (77ull << 16) | 15;
  const std::vector<Finding> findings = verified_.verify();
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].kind, kFindingLock);
  EXPECT_EQ(findings[0].offset, place.group);
}

TEST_F(Damage, LocksOfWorkersWithoutATransaction) {
  Coordinator& other = verified_.engine().add_coordinator();
  const uint64_t word = (99ull << 16) | other.worker().id();
  const auto lock = verified_.find(VerifiedEngine::key(21));
  const auto waiter = verified_.find(VerifiedEngine::key(22));
  const auto sundial = verified_.find(VerifiedEngine::key(23));
  const auto shared = verified_.find(VerifiedEngine::key(24));
  verified_.record(lock).lock = word;
  verified_.record(waiter).waiter = word;
  verified_.record(sundial).sundial |= (1ull << 63) | other.worker().id();
  verified_.record(shared).lock = 3;
  std::set<uint64_t> offsets, expected;
  for (const Finding& finding : verified_.verify()) {
    EXPECT_EQ(finding.kind, kFindingLock) << finding.to_string();
    offsets.insert(finding.offset);
  }
  for (const auto& place : {lock, waiter, sundial, shared}) {
    expected.insert(entry_offset(verified_.entry(place)));
  }
  EXPECT_EQ(offsets, expected);
}

TEST_F(Damage, LockOfAThreadOfTheNode) {
  const auto place = verified_.find(VerifiedEngine::key(25));
  verified_.record(place).lock = (99ull << 16) | place.node;
  std::vector<Finding> findings;
  verified_.engine().run(verified_.coordinator(), [&] {
    Session session(verified_.coordinator());
    auto report = verify_tables(session, {}, verified_.options());
    ASSERT_TRUE(report.ok());
    findings = report->findings;
  });
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].kind, kFindingLock);
  EXPECT_EQ(findings[0].offset, entry_offset(verified_.entry(place)));
}

}  // namespace
}  // namespace rdmacc
