// Indexes that are loaded with sorted entries, under every protocol: what they hold, and what
// becomes of them under inserts and removes.
#include "engine/index/index_loader.h"

#include <gtest/gtest.h>

#include "engine/protocols/registry.h"
#include "tests/unit/index/indexed_engine.h"

namespace rdmacc {
namespace {

class IndexLoaderTest : public testing::TestWithParam<Protocol> {
 protected:
  IndexLoaderTest() : indexed_(11) { indexed_.options().protocol = GetParam(); }

  // Entries whose lengths are drawn up to `bytes_max`, some of them with a long common beginning.
  static Entries draw(Random& random, size_t count, size_t bytes_max) {
    Entries entries;
    while (entries.size() < count) {
      std::string entry(random.percent(30) ? random.below(bytes_max / 2 + 1) : 0, 'c');
      const size_t bytes = entry.size() + 1 + random.below(bytes_max / 2 + 1);
      while (entry.size() < bytes) entry.push_back(static_cast<char>(random.below(256)));
      entries.insert(entry);
    }
    return entries;
  }
  void load(const Entries& entries) {
    indexed_.transact([&](Session& session) {
      IndexLoader loader(session, indexed_.index());
      for (const std::string& entry : entries) ASSERT_TRUE(loader.add(entry).ok());
      const Status finished = loader.finish();
      ASSERT_TRUE(finished.ok()) << finished.to_string();
    });
  }
  void expect(const Entries& entries) {
    indexed_.transact(
        [&](Session& session) { indexed_.expect_scans(session, IndexRange{}, entries); });
  }
  FoundNode root(Session& session) {
    FoundNode found;
    EXPECT_TRUE(Descent(session, indexed_.index()).read(kRootNumber, found).ok());
    return found;
  }

  IndexedEngine indexed_;
};

TEST_P(IndexLoaderTest, HoldsWhatWasLoaded) {
  Random random(3);
  Entries before;
  for (const size_t count : {0u, 1u, 3u, 20u, 700u}) {
    SCOPED_TRACE(count);
    IndexedEngine fresh(count + 1);
    fresh.options().protocol = GetParam();
    const Entries entries = draw(random, count, 60);
    fresh.transact([&](Session& session) {
      IndexLoader loader(session, fresh.index());
      for (const std::string& entry : entries) ASSERT_TRUE(loader.add(entry).ok());
      ASSERT_TRUE(loader.finish().ok());
    });
    fresh.transact([&](Session& session) { fresh.expect_scans(session, IndexRange{}, entries); });
  }
}

TEST_P(IndexLoaderTest, EntriesOfAllLengthsComeAndGoAfterwards) {
  Random random(5);
  Entries entries = draw(random, 60, kIndexEntryBytesMax);
  entries.merge(draw(random, 200, 40));
  load(entries);
  expect(entries);
  const Entries more = draw(random, 150, 200);
  indexed_.transact([&](Session& session) {
    for (const std::string& entry : more) {
      const bool fresh = entries.insert(entry).second;
      ASSERT_EQ(indexed_.insert(session, entry), fresh ? Code::kOk : Code::kDuplicateKey);
    }
  });
  indexed_.transact([&](Session& session) {
    for (auto each = entries.begin(); each != entries.end();) {
      if (random.percent(60)) {
        ++each;
        continue;
      }
      ASSERT_EQ(indexed_.remove(session, *each), Code::kOk);
      each = entries.erase(each);
    }
  });
  expect(entries);
}

// Nodes are neither half empty nor so full that each next entry splits one.
TEST_P(IndexLoaderTest, NodesAreFilledWithSomeRoomLeft) {
  Random random(7);
  load(draw(random, 2000, 30));
  indexed_.transact([&](Session& session) {
    FoundNode node = root(session);
    ASSERT_TRUE(node.exists);
    EXPECT_EQ(node.node.height, 2);
    while (!node.node.leaf()) {
      FoundNode child;
      ASSERT_TRUE(Descent(session, indexed_.index()).read(node.node.child(0), child).ok());
      node = child;
      const size_t bytes = NodeDraft(node.node).encoded_bytes();
      EXPECT_LE(bytes, kNodeBytesInline * 9 / 10);
      EXPECT_GE(bytes, kNodeBytesInline * 6 / 10);
    }
  });
}

TEST_P(IndexLoaderTest, RefusesWhatIsNotInOrderAndWhatIsTooLong) {
  indexed_.transact([&](Session& session) {
    IndexLoader loader(session, indexed_.index());
    ASSERT_TRUE(loader.add("b").ok());
    EXPECT_EQ(loader.add("b").code(), Code::kInvalidArgument);
    EXPECT_EQ(loader.add("a").code(), Code::kInvalidArgument);
    EXPECT_EQ(loader.add(std::string(kIndexEntryBytesMax + 1, 'c')).code(), Code::kTooLarge);
    ASSERT_TRUE(loader.add("c").ok());
    ASSERT_TRUE(loader.finish().ok());
    IndexLoader second(session, indexed_.index());
    ASSERT_TRUE(second.add("d").ok());
    EXPECT_EQ(second.finish().code(), Code::kDuplicateKey) << "the index is not empty";
  });
  expect({"b", "c"});
}

INSTANTIATE_TEST_SUITE_P(, IndexLoaderTest, testing::ValuesIn(available_protocols()),
                         [](const auto& each) { return protocol_name(each.param); });

}  // namespace
}  // namespace rdmacc
