// An ordered index against std::set, by one session under every protocol: entries of all sizes,
// ranges in both directions, what earlier commands saw, and savepoints.
#include "engine/index/ordered_index.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/protocols/registry.h"
#include "tests/unit/index/indexed_engine.h"

namespace rdmacc {
namespace {

class OrderedIndexTest : public testing::TestWithParam<Protocol> {
 protected:
  OrderedIndexTest() : indexed_(7) { indexed_.options().protocol = GetParam(); }

  // Inserts or removes a random entry, in the index and in the model.
  void change(Session& session, Random& random, const std::string& entry, Entries& model) {
    if (random.percent(65)) {
      const bool fresh = model.insert(entry).second;
      EXPECT_EQ(indexed_.insert(session, entry), fresh ? Code::kOk : Code::kDuplicateKey);
    } else {
      const bool there = model.erase(entry) == 1;
      EXPECT_EQ(indexed_.remove(session, entry), there ? Code::kOk : Code::kNotFound);
    }
  }
  IndexedEngine indexed_;
};

TEST_P(OrderedIndexTest, AnEmptyTableIsAnEmptyIndex) {
  indexed_.transact([&](Session& session) {
    indexed_.expect_scans(session, IndexRange{}, {});
    EXPECT_EQ(indexed_.remove(session, "a"), Code::kNotFound);
    EXPECT_EQ(indexed_.insert(session, ""), Code::kOk);
    EXPECT_EQ(indexed_.insert(session, ""), Code::kDuplicateKey);
    indexed_.expect_scans(session, IndexRange{}, {""});
    indexed_.expect_scans(session, between("", ""), {""});
    indexed_.expect_scans(session, between("", std::string(1, '\0')), {""});
  });
}

// A half of a node that was split may be too large still, and its greatest entry is removed.
TEST_P(OrderedIndexTest, RemovesTheLastEntryOfALeafThatIsTooLarge) {
  std::vector<std::string> entries;
  for (const char side : {'a', 'z'}) {
    for (char i = '0'; i < '4'; i++) entries.push_back(std::string(45, side) + i);
  }
  entries.emplace_back(620, 'm');
  for (const std::string& entry : entries) {
    indexed_.transact(
        [&](Session& session) { EXPECT_EQ(indexed_.insert(session, entry), Code::kOk); });
  }
  Entries model(entries.begin(), entries.end());
  while (!model.empty()) {
    const std::string last = *model.rbegin();
    model.erase(last);
    indexed_.transact([&](Session& session) {
      EXPECT_EQ(indexed_.remove(session, last), Code::kOk);
      indexed_.expect_scans(session, IndexRange{}, model);
    });
  }
}

// Of a coordinator that has met the root while it was a leaf.
TEST_P(OrderedIndexTest, ARootThatHasGrownIsNoLeafToAnyCoordinator) {
  Coordinator& other = indexed_.add_coordinator();
  const auto insert_some = [&](Coordinator& by, uint64_t from) {
    indexed_.transact(by, [&](Session& session) {
      for (uint64_t i = from; i < from + 10; i++) {
        EXPECT_EQ(indexed_.insert(session, number_entry(i)), Code::kOk);
      }
    });
  };
  insert_some(indexed_.coordinator(), 0);
  insert_some(indexed_.coordinator(), 10);
  ASSERT_EQ(indexed_.height(), 0);
  for (uint64_t from = 20; from < 100; from += 10) insert_some(other, from);
  ASSERT_GT(indexed_.height(), 0);
  insert_some(indexed_.coordinator(), 100);
  indexed_.transact([&](Session& session) {
    EXPECT_EQ(indexed_.insert(session, number_entry(7777)), Code::kOk);
    RowView kept;
    const NodeKey root(kRootNumber);
    ASSERT_TRUE(session.kept_unvalidated_read(indexed_.index().table, root.view(), kept).ok());
    ASSERT_TRUE(kept.found);
    EXPECT_GT(TreeNode::parse(kept.row)->height, 0);
  });
}

TEST_P(OrderedIndexTest, HasEntriesOfAllLengths) {
  Random random(21);
  Entries model;
  for (int round = 0; round < 60; round++) {
    indexed_.transact([&](Session& session) {
      for (int i = 0; i < 10; i++) {
        const size_t bytes = random.percent(80) ? 3 + random.below(60) : random.below(2000);
        std::string entry(bytes, static_cast<char>('a' + random.below(4)));
        entry += std::to_string(random.below(4));
        change(session, random, entry, model);
        if (model.empty() || random.percent(50)) continue;
        auto one = model.lower_bound(entry);
        if (one == model.end()) one = model.begin();
        const std::string gone = *one;
        model.erase(one);
        EXPECT_EQ(indexed_.remove(session, gone), Code::kOk);
      }
    });
    indexed_.transact(
        [&](Session& session) { indexed_.expect_scans(session, IndexRange{}, model); });
  }
}

// As a peer may have left it: a scan would look for the next leaf at the same place for ever.
TEST_P(OrderedIndexTest, AScanEndsAtALeafThatLeadsNowhere) {
  indexed_.transact([&](Session& session) { EXPECT_EQ(indexed_.insert(session, "b"), Code::kOk); });
  for (const bool backward : {false, true}) {
    NodeDraft leaf;
    leaf.high_bounded = true;
    if (backward) leaf.low = leaf.high = "m";
    indexed_.transact([&](Session& session) {
      ASSERT_TRUE(
          session.put(indexed_.index().table, NodeKey(kRootNumber).view(), leaf.encode(kRootNumber))
              .ok());
    });
    indexed_.transact([&](Session& session) {
      IndexScan scan;
      scan.seek(indexed_.index(), backward ? between("a", "m") : IndexRange{}, backward,
                kEveryCommand);
      std::vector<std::string_view> batch;
      EXPECT_EQ(scan.next(session, batch).code(), Code::kCorrupt);
      EXPECT_TRUE(batch.empty());
    });
  }
}

TEST_P(OrderedIndexTest, IsASetInBothDirections) {
  Random random(11);
  Entries model;
  const auto draw = [&] { return number_entry(random.below(600) * 0x01000001); };
  for (int txn = 0; txn < 40; txn++) {
    indexed_.transact([&](Session& session) {
      for (int i = 0; i < 25; i++) change(session, random, draw(), model);
      indexed_.expect_scans(session, random_range(random, draw(), draw()), model);
    });
  }
  indexed_.transact([&](Session& session) {
    indexed_.expect_scans(session, IndexRange{}, model);
    for (int i = 0; i < 60; i++) {
      indexed_.expect_scans(session, random_range(random, draw(), draw()), model);
    }
  });
  EXPECT_GE(indexed_.height(), 1);
}

TEST_P(OrderedIndexTest, SortedEntriesGrowATreeOfSeveralLevels) {
  Entries model;
  for (uint64_t part = 0; part < 6; part++) {
    indexed_.transact([&](Session& session) {
      for (uint64_t i = 0; i < 400; i++) {
        const std::string entry = "a common beginning of entries " + number_entry(part * 400 + i);
        EXPECT_EQ(indexed_.insert(session, entry), Code::kOk);
        model.insert(entry);
      }
    });
  }
  EXPECT_GE(indexed_.height(), 2);
  indexed_.transact([&](Session& session) {
    indexed_.expect_scans(session, IndexRange{}, model);
    EXPECT_EQ(indexed_.insert(session, *model.begin()), Code::kDuplicateKey);
    EXPECT_EQ(indexed_.insert(session, *model.rbegin()), Code::kDuplicateKey);
  });
  // Another coordinator comes without any node in its cache.
  indexed_.transact(indexed_.add_coordinator(), [&](Session& session) {
    EXPECT_EQ(indexed_.remove(session, *model.begin()), Code::kOk);
    model.erase(model.begin());
    indexed_.expect_scans(session, IndexRange{}, model);
  });
}

TEST_P(OrderedIndexTest, ScansPassLeavesThatBecameEmpty) {
  Entries model;
  indexed_.transact([&](Session& session) {
    for (uint64_t i = 0; i < 400; i++) {
      model.insert(number_entry(i));
      EXPECT_EQ(indexed_.insert(session, number_entry(i)), Code::kOk);
    }
  });
  indexed_.transact([&](Session& session) {
    for (uint64_t i = 20; i < 390; i++) {
      model.erase(number_entry(i));
      EXPECT_EQ(indexed_.remove(session, number_entry(i)), Code::kOk);
    }
  });
  indexed_.transact([&](Session& session) {
    indexed_.expect_scans(session, IndexRange{}, model);
    indexed_.expect_scans(session, between(number_entry(100), number_entry(300)), model);
    EXPECT_EQ(indexed_.insert(session, number_entry(200)), Code::kOk);
    model.insert(number_entry(200));
    indexed_.expect_scans(session, between(number_entry(100), number_entry(300)), model);
  });
}

TEST_P(OrderedIndexTest, EntriesMayBeLong) {
  Random random(5);
  Entries model;
  const auto draw = [&] {
    const size_t most = random.percent(30) ? kIndexEntryBytesMax : 40;
    std::string entry(random.below(most), static_cast<char>('a' + random.below(2)));
    return entry + number_entry(random.below(50)).substr(4, 4);
  };
  for (int txn = 0; txn < 20; txn++) {
    indexed_.transact([&](Session& session) {
      for (int i = 0; i < 12; i++) {
        const std::string entry = draw();
        if (entry.size() <= kIndexEntryBytesMax) change(session, random, entry, model);
      }
      indexed_.expect_scans(session, random_range(random, draw(), draw()), model);
    });
  }
  indexed_.transact([&](Session& session) {
    indexed_.expect_scans(session, IndexRange{}, model);
    const std::string longest(kIndexEntryBytesMax, 'z');
    EXPECT_EQ(indexed_.insert(session, longest), Code::kOk);
    EXPECT_EQ(indexed_.insert(session, longest + "z"), Code::kTooLarge);
    EXPECT_EQ(indexed_.remove(session, longest + "z"), Code::kTooLarge);
    EXPECT_EQ(indexed_.remove(session, longest), Code::kOk);
  });
}

TEST_P(OrderedIndexTest, AnAbortLeavesNothing) {
  Entries model;
  indexed_.transact([&](Session& session) {
    for (uint64_t i = 0; i < 50; i++) {
      model.insert(number_entry(i * 10));
      EXPECT_EQ(indexed_.insert(session, number_entry(i * 10)), Code::kOk);
    }
  });
  indexed_.engine().run(indexed_.coordinator(), [&] {
    Session session(indexed_.coordinator());
    ASSERT_TRUE(session.begin(indexed_.options()).ok());
    for (uint64_t i = 0; i < 500; i++) indexed_.insert(session, number_entry(i));
    session.abort();
  });
  indexed_.transact([&](Session& session) { indexed_.expect_scans(session, {}, model); });
}

// Writes of one transaction with their commands and savepoint levels, and the index that each
// command would see.
class CommandModel {
 public:
  explicit CommandModel(Entries before) : before_(std::move(before)) {}

  void write(bool inserts, const std::string& entry) {
    writes_.push_back({command, level, inserts, entry});
  }
  void roll_back_to(uint32_t to) {
    std::erase_if(writes_, [to](const Write& write) { return write.level >= to; });
    level = to - 1;
  }
  void release(uint32_t from) {
    for (Write& write : writes_) write.level = std::min(write.level, from - 1);
    level = from - 1;
  }
  Entries visible(uint32_t before) const {
    Entries entries = before_;
    for (const Write& write : writes_) {
      if (write.command >= before) continue;
      if (write.inserts) {
        entries.insert(write.entry);
      } else {
        entries.erase(write.entry);
      }
    }
    return entries;
  }

  uint32_t command = 0, level = 0;

 private:
  struct Write {
    uint32_t command, level;
    bool inserts;
    std::string entry;
  };
  const Entries before_;
  std::vector<Write> writes_;
};

TEST_P(OrderedIndexTest, EarlierCommandsAndSavepointsSeeTheirIndex) {
  Random random(23);
  Entries committed;
  for (int txn = 0; txn < 12; txn++) {
    CommandModel model(committed);
    indexed_.transact([&](Session& session) {
      for (model.command = 0; model.command < 30; model.command++) {
        session.set_command(model.command);
        for (uint64_t i = random.below(12); i > 0; i--) {
          Entries newest = model.visible(kEveryCommand);
          const std::string entry = "of some length " + number_entry(random.below(200));
          const size_t before = newest.size();
          change(session, random, entry, newest);
          if (newest.size() != before) model.write(newest.size() > before, entry);
        }
        const uint64_t what = random.below(10);
        if (what == 0) {
          model.level = session.savepoint();
        } else if (what == 1 && model.level > 0) {
          const auto to = static_cast<uint32_t>(1 + random.below(model.level));
          session.rollback_to(to);
          model.roll_back_to(to);
        } else if (what == 2 && model.level > 0) {
          const auto from = static_cast<uint32_t>(1 + random.below(model.level));
          session.release(from);
          model.release(from);
        }
        const auto before = static_cast<uint32_t>(random.below(model.command + 2));
        indexed_.expect_scans(session, IndexRange{}, model.visible(before), before);
        indexed_.expect_scans(session, IndexRange{}, model.visible(kEveryCommand));
      }
      if (model.level > 0) session.release(1);
    });
    committed = model.visible(kEveryCommand);
  }
  indexed_.transact([&](Session& session) { indexed_.expect_scans(session, {}, committed); });
}

INSTANTIATE_TEST_SUITE_P(All, OrderedIndexTest, testing::ValuesIn(available_protocols()),
                         [](const auto& tested) { return protocol_name(tested.param); });

}  // namespace
}  // namespace rdmacc
