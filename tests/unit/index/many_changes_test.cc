// Changes of an ordered index that are made together, under every protocol.
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/index/ordered_index.h"
#include "engine/protocols/registry.h"
#include "tests/unit/index/indexed_engine.h"

namespace rdmacc {
namespace {

class ManyChangesTest : public testing::TestWithParam<Protocol> {
 protected:
  ManyChangesTest() : indexed_(7) { indexed_.options().protocol = GetParam(); }

  IndexedEngine indexed_;
};

// Also of the same entry: it comes, goes, and comes again.
TEST_P(ManyChangesTest, AreThoseOneByOne) {
  using Kind = EntryChange::Kind;
  Random random(17);
  Entries model;
  for (int txn = 0; txn < 30; txn++) {
    const uint64_t spread = random.percent(50) ? 3000 : 200;
    std::vector<std::pair<std::string, Kind>> drawn;
    for (uint64_t i = random.below(400); i > 0; i--) {
      const std::string entry = number_entry(random.below(spread));
      const bool there = model.count(entry) == 1;
      const Kind kind = there                ? Kind::kRemove
                        : random.percent(70) ? Kind::kInsert
                                             : Kind::kRemoveIfThere;
      drawn.emplace_back(entry, kind);
      if (there) model.erase(entry);
      if (kind == Kind::kInsert) model.insert(entry);
    }
    std::stable_sort(drawn.begin(), drawn.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<EntryChange> changes;
    for (const auto& [entry, kind] : drawn) changes.push_back({kind, entry});
    const LeafAccess access = random.percent(50) ? LeafAccess::kLock : LeafAccess::kRead;
    indexed_.transact([&](Session& session) {
      EXPECT_EQ(OrderedIndex(session, indexed_.index()).change(changes, access).code(), Code::kOk);
      indexed_.expect_scans(session, IndexRange{}, model);
    });
  }
  EXPECT_GE(indexed_.height(), 2);
}

// Of entries that lie in a leaf each, by a coordinator that knows the inner nodes.
TEST_P(ManyChangesTest, LeavesOfOneParentAreReadTogether) {
  constexpr uint64_t kEntries = 1500, kStep = 25;
  Entries model;
  indexed_.transact([&](Session& session) {
    for (uint64_t i = 0; i < kEntries; i++) {
      model.insert(number_entry(i));
      EXPECT_EQ(indexed_.insert(session, number_entry(i)), Code::kOk);
    }
  });
  std::vector<std::string> removed;
  for (uint64_t i = 0; i < kEntries; i += kStep) removed.push_back(number_entry(i));
  const auto rounds_of = [&](const std::function<Status(OrderedIndex)>& work) {
    uint64_t rounds = 0;
    indexed_.engine().run(indexed_.coordinator(), [&] {
      Session session(indexed_.coordinator());
      ASSERT_TRUE(session.begin(indexed_.options()).ok());
      EXPECT_TRUE(work(OrderedIndex(session, indexed_.index())).ok());
      rounds = session.verb_counters().round_trips;
      session.abort();
    });
    return rounds;
  };
  const auto one_by_one = [&](OrderedIndex index) {
    Status status;
    for (const std::string& entry : removed) {
      if (status.ok()) status = index.remove(entry);
    }
    return status;
  };
  std::vector<EntryChange> changes;
  for (const std::string& entry : removed) changes.push_back({EntryChange::Kind::kRemove, entry});
  const auto together = [&](OrderedIndex index) { return index.change(changes); };
  rounds_of(one_by_one);  // the inner nodes are known from now on
  EXPECT_LT(3 * rounds_of(together), rounds_of(one_by_one));
}

// Each of the two has split leaves of which the other one's hints know nothing.
TEST_P(ManyChangesTest, FindTheirLeavesBehindOldHints) {
  Coordinator& other = indexed_.add_coordinator();
  Random random(23);
  Entries model;
  for (int txn = 0; txn < 24; txn++) {
    std::set<std::string> drawn;
    for (int i = 0; i < 150; i++) drawn.insert(number_entry(random.below(5000)));
    std::vector<EntryChange> changes;
    for (const std::string& entry : drawn) {
      const bool there = model.erase(entry) == 1;
      if (!there) model.insert(entry);
      changes.push_back({there ? EntryChange::Kind::kRemove : EntryChange::Kind::kInsert, entry});
    }
    const LeafAccess access = random.percent(50) ? LeafAccess::kLock : LeafAccess::kRead;
    indexed_.transact(txn % 2 == 0 ? other : indexed_.coordinator(), [&](Session& session) {
      EXPECT_EQ(OrderedIndex(session, indexed_.index()).change(changes, access).code(), Code::kOk);
      indexed_.expect_scans(session, IndexRange{}, model);
    });
  }
  EXPECT_GE(indexed_.height(), 2);
}

TEST_P(ManyChangesTest, ThatAreNotPossibleAreSaid) {
  using Kind = EntryChange::Kind;
  const auto code_of = [&](Session& session, std::vector<EntryChange> changes) {
    return OrderedIndex(session, indexed_.index()).change(changes).code();
  };
  indexed_.transact([&](Session& session) {
    EXPECT_EQ(code_of(session, {}), Code::kOk);
    EXPECT_EQ(code_of(session, {{Kind::kInsert, "b"}, {Kind::kInsert, "d"}}), Code::kOk);
    EXPECT_EQ(code_of(session, {{Kind::kInsert, "a"}, {Kind::kInsert, "b"}}), Code::kDuplicateKey);
    EXPECT_EQ(code_of(session, {{Kind::kRemove, "b"}, {Kind::kRemove, "c"}}), Code::kNotFound);
    EXPECT_EQ(code_of(session, {{Kind::kRemoveIfThere, "c"}}), Code::kOk);
    EXPECT_EQ(code_of(session, {{Kind::kInsert, std::string(kIndexEntryBytesMax + 1, 'x')}}),
              Code::kTooLarge);
    indexed_.expect_scans(session, IndexRange{}, {"b", "d"});
  });
}

INSTANTIATE_TEST_SUITE_P(All, ManyChangesTest, testing::ValuesIn(available_protocols()),
                         [](const auto& tested) { return protocol_name(tested.param); });

}  // namespace
}  // namespace rdmacc
