// An install that is repeated: for a coordinator that died, or after one that was cut short.
#include "engine/storage/layout/overflow.h"
#include "engine/txn/stages/install.h"
#include "tests/unit/engine/two_sessions.h"

namespace rdmacc {
namespace {

constexpr uint32_t kRecordSize = 64, kHistory = 3;  // of the table of TwoSessions
constexpr uint64_t kLongRow = 500;

// The record of a transaction that has the lock of a row that was never written over, whose record
// is in an overflow block.
class GuardedInstall : public TwoSessions {
 protected:
  void SetUp() override {
    as_one([&] {
      ASSERT_TRUE(one_.begin(options()).ok());
      ASSERT_TRUE(one_.insert(table_, "d", std::string(kLongRow, 'l')).ok());
      ASSERT_TRUE(one_.commit().ok());
      ASSERT_TRUE(one_.begin(options()).ok());
      ASSERT_TRUE(one_.put(table_, "d", "1").ok());
      ASSERT_TRUE(one_.prepare(Gtid{7, 7}).ok());
    });
    for (NodeId node = 0; node < 2; ++node) look_for_the_lock(engine_.node(node));
    ASSERT_FALSE(header_.null());
    Header& header = in_region<Header>(header_);
    overflow_ = GlobalAddress::make(header_.node(), in_region<uint64_t>(header_.plus(64)));
    record_.lock_ctts = header.lock;
    record_.stamp = header.lock;
    Write& write = record_.writes.emplace_back();
    write.header = header_;
    write.table = header.table;
    write.key_hash = header.key_hash;
    write.incarnation = header.incarnation;
    write.record = bytes_;
    write.record_size = kRecordSize;
    write.history = kHistory;
  }
  void TearDown() override {
    as_one([&] { one_.abort(); });
  }

  void look_for_the_lock(NodeThread& node) {
    bool done = false;
    ASSERT_TRUE(node.worker().scheduler().spawn([&] {
      const auto locked = node.storage()->locks_of(here_.worker().id());
      if (!locked.empty()) header_ = locked.front();
      done = true;
    }));
    ASSERT_TRUE(engine_.run_until([&] { return done; }));
  }
  template <typename T>
  T& in_region(GlobalAddress at) {
    return *reinterpret_cast<T*>(engine_.node(at.node()).worker().endpoint().local_region() +
                                 at.offset());
  }
  uint64_t versions() {
    return in_region<uint64_t>(header_.plus(versions_reference_place(kRecordSize)));
  }
  // Guarded, with blocks for old versions or without.
  void install_again(std::span<const Effect> effects, bool with_blocks, bool underway = false) {
    as_other([&] {
      Worker& worker = there_.worker();
      StorageClient client(worker, there_.topology());
      BlockPool pool(worker, there_.topology(), client);
      InstallOptions options;
      options.effects = effects;
      options.guarded = true;
      options.underway = underway;
      options.evicted = &evicted_;
      options.blocks = with_blocks ? &pool : nullptr;
      options.region_bytes = there_.topology().region_bytes;
      ASSERT_TRUE(install(worker, record_, options, worker.counters()).ok());
    });
  }
  std::span<const Effect> all_effects() const {
    return rules_of(protocol(), LockMode::kExclusive)->effects;
  }

  const std::string bytes_ = std::string(4, '\0') + "d1";
  GlobalAddress header_, overflow_;
  LogRecord record_;
  std::vector<GlobalAddress> evicted_;
};

TEST_P(GuardedInstall, TouchesWhatTheTransactionHoldsAlone) {
  Header& header = in_region<Header>(header_);
  const Header before = header;
  Write& write = record_.writes.front();
  const auto expect_untouched = [&] {
    install_again(all_effects(), true);
    EXPECT_EQ(memcmp(&header, &before, sizeof(Header)), 0);
  };
  // The page has become something else, whose bytes look like the lock word.
  write.key_hash = before.key_hash + 1;
  expect_untouched();
  write.key_hash = before.key_hash;
  write.table = before.table + 1;
  expect_untouched();
  write.table = before.table;
  record_.lock_ctts = before.lock + 1;
  expect_untouched();
  record_.lock_ctts = before.lock;
  install_again(all_effects(), true);
  EXPECT_EQ(header.lock, 0u);
  EXPECT_EQ(header.wts, record_.stamp);
}

TEST_P(GuardedInstall, UnlocksWhatWasDroppedUnderItsTransaction) {
  Header& header = in_region<Header>(header_);
  Header unlocked = header;
  unlocked.lock = 0;
  record_.writes.front().table = header.table + 1;
  install_again(all_effects(), true, /*underway=*/true);
  EXPECT_EQ(memcmp(&header, &unlocked, sizeof(Header)), 0);
  header.lock = record_.lock_ctts + 1;
  install_again(all_effects(), true, /*underway=*/true);
  EXPECT_EQ(header.lock, record_.lock_ctts + 1) << "another transaction's";
}

TEST_P(GuardedInstall, ALostVersionsBlockIsGivenUp) {
  install_again(all_effects(), /*with_blocks=*/false);
  EXPECT_EQ(versions(), kOlderVersionsLost);
  EXPECT_EQ(evicted_, std::vector<GlobalAddress>{overflow_});
}

TEST_P(GuardedInstall, AVersionThatIsKeptAfterAllKeepsItsBlock) {
  constexpr Effect kFirst[] = {Effect::kVersionStamp, Effect::kVersionRecord};
  install_again(kFirst, /*with_blocks=*/false);
  EXPECT_EQ(evicted_, std::vector<GlobalAddress>{overflow_});
  install_again(kFirst, /*with_blocks=*/false);
  EXPECT_EQ(evicted_.size(), 1u) << "named twice";
  install_again(all_effects(), /*with_blocks=*/true);
  EXPECT_TRUE(evicted_.empty());
  ASSERT_TRUE(may_be_versions(versions(), kRecordSize, kHistory, there_.topology().region_bytes));
  const auto block = GlobalAddress::make(header_.node(), versions());
  const uint64_t place = version_place(kRecordSize, 0) + sizeof(VersionHead);
  EXPECT_EQ(in_region<uint64_t>(block.plus(place)), overflow_.offset());
}

INSTANTIATE_TEST_SUITE_P(Mvcc, GuardedInstall,
                         testing::Combine(testing::Values(Protocol::kMvcc),
                                          testing::Values(kOneSided)),
                         name_of);

}  // namespace
}  // namespace rdmacc
