// An ordered index changed by several coordinators, one after the other and in each other's way.
#include <gtest/gtest.h>

#include "engine/protocols/registry.h"
#include "engine/txn/transaction/restart.h"
#include "tests/unit/index/indexed_engine.h"

namespace rdmacc {
namespace {

class ConcurrentIndexTest : public testing::TestWithParam<Protocol> {
 protected:
  ConcurrentIndexTest() : indexed_(3), other_(indexed_.add_coordinator()) {
    indexed_.options().protocol = GetParam();
    rows_ = indexed_.make_table(2, 64);
  }

  static std::string entry(uint64_t number) {
    return "an entry of some length " + std::to_string(1'000'000 + number);
  }
  void insert_all(Coordinator& coordinator, uint64_t first, uint64_t count, uint64_t step) {
    indexed_.transact(coordinator, [&](Session& session) {
      for (uint64_t i = 0; i < count; i++) {
        EXPECT_EQ(indexed_.insert(session, entry(first + i * step)), Code::kOk);
        model_.insert(entry(first + i * step));
      }
    });
  }

  void expect_not_empty_for_older_reader(uint64_t entries) {
    Session reader(other_);
    indexed_.engine().run(other_, [&] {
      ASSERT_TRUE(reader.begin(indexed_.options()).ok());
      RowView row;
      ASSERT_TRUE(reader.get(rows_, "of another table", row).ok());
    });
    insert_all(indexed_.coordinator(), 0, entries, 1);
    indexed_.engine().run(other_, [&] {
      IndexScan scan;
      scan.seek(indexed_.index(), IndexRange{}, false);
      std::vector<std::string_view> found;
      const Status status = scan.next(reader, found);
      EXPECT_TRUE(status.code() == Code::kAborted || !found.empty()) << status.to_string();
      reader.abort();
    });
  }

  IndexedEngine indexed_;
  Coordinator& other_;
  TableId rows_ = kNoTable;
  Entries model_;
};

// A session that has read inner nodes unvalidated still finds its way after others have split all
// below them.
TEST_P(ConcurrentIndexTest, OldHintsLeadToTheRightLeaves) {
  insert_all(indexed_.coordinator(), 0, 200, 100);
  indexed_.transact(
      other_, [&](Session& session) { indexed_.expect_scans(session, IndexRange{}, model_); });
  for (uint64_t round = 1; round < 6; round++) {
    insert_all(indexed_.coordinator(), round, 200, 100);
    indexed_.transact(other_, [&](Session& session) {
      EXPECT_EQ(indexed_.insert(session, entry(round * 1009)),
                model_.insert(entry(round * 1009)).second ? Code::kOk : Code::kDuplicateKey);
      indexed_.expect_scans(session, between(entry(3000), entry(9000)), model_);
      indexed_.expect_scans(session, IndexRange{}, model_);
    });
  }
}

// Both coordinators decide by a range that is empty, and fill it: one of them loses.
TEST_P(ConcurrentIndexTest, APhantomIsNoticed) {
  insert_all(indexed_.coordinator(), 0, 100, 10);
  Coordinator* const coordinators[] = {&indexed_.coordinator(), &other_};
  int inserted = 0, ended = 0;
  for (Coordinator* coordinator : coordinators) {
    const std::string mine = entry(500) + (coordinator == &other_ ? "a" : "b");
    CHECK(coordinator->worker().scheduler().spawn([this, coordinator, mine, &inserted, &ended] {
      for (int attempt = 0; attempt < 100; attempt++) {
        Session session(*coordinator);
        EXPECT_TRUE(session.begin(indexed_.options()).ok());
        IndexScan scan;
        scan.seek(indexed_.index(), between(entry(500) + "a", entry(501)), attempt % 2 == 0);
        std::vector<std::string_view> found;
        Status status = scan.next(session, found);
        const bool empty = status.ok() && found.empty();
        if (empty) status = OrderedIndex(session, indexed_.index()).insert(mine);
        if (status.ok()) status = session.commit();
        session.abort();
        if (status.ok()) {
          inserted += empty ? 1 : 0;
          break;
        }
        EXPECT_EQ(status.code(), Code::kAborted) << status.to_string();
        session.scheduler().sleep_for(static_cast<uint64_t>(20 * attempt));
      }
      ended++;
    }));
  }
  ASSERT_TRUE(indexed_.engine().run_until([&ended] { return ended == 2; }));
  EXPECT_EQ(inserted, 1);
}

// Rows are older than an index on them: as of a time before it, it does not say what there is.
TEST_P(ConcurrentIndexTest, AnIndexThatIsNewerThanItsReaderDoesNotSeemEmpty) {
  expect_not_empty_for_older_reader(1);
}
TEST_P(ConcurrentIndexTest, NorDoesOneOfManyLeaves) { expect_not_empty_for_older_reader(300); }

INSTANTIATE_TEST_SUITE_P(All, ConcurrentIndexTest, testing::ValuesIn(available_protocols()),
                         [](const auto& tested) { return protocol_name(tested.param); });

// A long range that others keep changing: the attempt after some lost ones is exclusive.
TEST(WideIndexRead, GetsTheGateAloneAfterLosses) {
  IndexedEngine indexed(5);
  indexed.options().protocol = Protocol::kOcc;
  Coordinator& writer = indexed.add_coordinator();
  const auto entry = [](uint64_t i) { return std::string(60, 'e') + std::to_string(1000 + i); };
  indexed.transact([&](Session& session) {
    for (uint64_t i = 0; i < 200; i++) EXPECT_EQ(indexed.insert(session, entry(i)), Code::kOk);
  });
  indexed.engine().run(indexed.coordinator(), [&] {
    Session reader(indexed.coordinator());
    for (uint32_t attempt = 0; attempt <= Restart::kScanLossesMax; attempt++) {
      ASSERT_TRUE(reader.begin(indexed.options()).ok());
      EXPECT_GE(indexed.scan(reader, IndexRange{}).size(), 200u);
      const bool last = attempt == Restart::kScanLossesMax;
      EXPECT_EQ(indexed.coordinator().stats().exclusive, last ? 1u : 0u);
      bool written = last;
      if (!last) {
        CHECK(writer.worker().scheduler().spawn([&] {
          Session session(writer);
          EXPECT_TRUE(session.begin(indexed.options()).ok());
          EXPECT_EQ(indexed.insert(session, entry(500 + attempt)), Code::kOk);
          EXPECT_TRUE(session.commit().ok());
          written = true;
        }));
      }
      for (int i = 0; i < 1000 && !written; i++) reader.scheduler().sleep_for(100);
      ASSERT_TRUE(written);
      EXPECT_EQ(reader.commit().code(), last ? Code::kOk : Code::kAborted);
    }
  });
}

}  // namespace
}  // namespace rdmacc
