// A session without others never loses, whatever the nodes clean up meanwhile: under every
// protocol, with stages one-sided and by RPC.
#include "tests/unit/engine/two_sessions.h"

namespace rdmacc {
namespace {

class LoneSessionTest : public TwoSessions {
 protected:
  void sleep_us(uint64_t us) { here_.worker().scheduler().sleep_for(us); }
  void write(bool insert) {
    ASSERT_TRUE(one_.begin(options()).ok());
    const Status status = insert ? one_.insert(table_, "d", "1") : one_.remove(table_, "d");
    ASSERT_TRUE(status.ok()) << status.to_string();
    ASSERT_TRUE(one_.commit().ok());
  }
  // A deleted row is cleaned away some time after its end; here in the midst of a transaction that
  // has looked for it, and that goes on with `write_something`.
  void while_the_node_cleans(const std::function<Status()>& write_something) {
    for (uint64_t pause_us = 0; pause_us < 400'000 && !HasFailure(); pause_us += 5'000) {
      as_one([&] {
        write(true);
        write(false);
        sleep_us(pause_us);
        RowView row;
        ASSERT_TRUE(one_.begin(options()).ok());
        ASSERT_TRUE(one_.get(table_, "d", row).ok());
        EXPECT_FALSE(row.found);
        sleep_us(1'200'000);
        Status status = write_something();
        if (status.ok()) status = one_.commit();
        EXPECT_TRUE(status.ok()) << status.to_string() << " after " << pause_us << " us";
        one_.abort();
        ASSERT_TRUE(one_.begin(options()).ok());
        ASSERT_TRUE(one_.get(table_, "d", row).ok());
        if (row.found) {
          ASSERT_TRUE(one_.remove(table_, "d").ok());
        }
        ASSERT_TRUE(one_.commit().ok());
      });
    }
  }
};

TEST_P(LoneSessionTest, MayInsertAgainWhatItHasDeleted) {
  while_the_node_cleans([&] { return one_.insert(table_, "d", "2"); });
}

TEST_P(LoneSessionTest, MayMissWhatItHasDeleted) {
  while_the_node_cleans([&] { return one_.put(table_, "a", "1"); });
}

// A deleted row that is looked at again and again, as scans do, is cleaned away all the same.
TEST_P(LoneSessionTest, DoesNotKeepWhatItHasDeletedByLookingAtIt) {
  const auto rows = [&] { return one_.node_statistics(0)->rows + one_.node_statistics(1)->rows; };
  as_one([&] {
    const uint64_t before = rows();
    write(true);
    write(false);
    for (int look = 0; look < 200; look++) {
      RowView row;
      ASSERT_TRUE(one_.begin(options()).ok());
      ASSERT_TRUE(one_.get(table_, "d", row).ok());
      ASSERT_TRUE(one_.commit().ok());
      sleep_us(100'000);
    }
    EXPECT_EQ(rows(), before);
  });
}

// The nodes split the groups of the index that have become too long; not under the next
// transaction.
TEST_P(LoneSessionTest, MayScanWhatItHasLoaded) {
  constexpr int kRows = 3'000;
  as_one([&] {
    for (int load = 0; load < 2; load++) {
      ASSERT_TRUE(one_.begin(options()).ok());
      for (int i = 0; i < kRows; i++) {
        ASSERT_TRUE(one_.insert(table_, std::to_string(load * kRows + i), "row").ok());
      }
      ASSERT_TRUE(one_.commit().ok());
      ASSERT_TRUE(one_.begin(options()).ok());
      auto cursor = one_.scan(table_);
      ASSERT_TRUE(cursor.ok());
      std::vector<RowView> batch;
      size_t rows = 0;
      do {
        const Status status = one_.scan_next(**cursor, batch);
        ASSERT_TRUE(status.ok()) << status.to_string() << " after " << rows << " rows";
        rows += batch.size();
      } while (!batch.empty());
      EXPECT_EQ(rows, static_cast<size_t>((load + 1) * kRows + 3));
      const Status status = one_.commit();
      EXPECT_TRUE(status.ok()) << status.to_string();
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Protocols, LoneSessionTest, every_protocol(), name_of);

}  // namespace
}  // namespace rdmacc
