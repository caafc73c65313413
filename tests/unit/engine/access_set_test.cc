// A transaction's headers: found by their address once something asks.
#include "engine/txn/transaction/access_set.h"

#include <gtest/gtest.h>

namespace rdmacc {
namespace {

constexpr TableId kTable = 7, kOther = 8;

Access at(uint64_t offset, TableId table = kTable) {
  Access access;
  access.header = GlobalAddress::make(0, offset);
  access.table = table;
  return access;
}

Access read_at(uint64_t offset, TableId table = kTable) {
  Access access = at(offset, table);
  access.read = true;
  access.read_wts = offset + 1;
  return access;
}

class AccessSetTest : public testing::Test {
 protected:
  size_t accesses() {
    size_t count = 0;
    for (const Access& access : set_) count += access.header.null() ? 0 : 1;
    return count;
  }
  size_t reads() {
    size_t count = 0;
    set_.for_reads([&](TableId, std::span<const ScannedRead> some) {
      for (const ScannedRead& read : some) count += read.header.null() ? 0 : 1;
      return true;
    });
    return count;
  }

  std::pmr::monotonic_buffer_resource memory_;
  AccessSet set_{&memory_};
};

TEST_F(AccessSetTest, FindsWhatCameBeforeAndAfterTheFirstQuestion) {
  Access& first = *set_.begin_look_up(kTable, 2);  // the second finds nothing
  first = at(64);
  Access& second = set_.add(at(128));
  EXPECT_TRUE(set_.only_looks_up(kTable));
  EXPECT_EQ(&first, set_.find(at(64)));
  EXPECT_FALSE(set_.only_looks_up(kTable));
  EXPECT_EQ(&second, set_.find(at(128)));
  EXPECT_EQ(nullptr, set_.find(at(64 * 64)));
  Access& third = set_.add(at(192));
  EXPECT_EQ(&third, set_.find(at(192)));
  EXPECT_FALSE(set_.ambiguous());
  EXPECT_EQ(3u, accesses());
}

TEST_F(AccessSetTest, TellsThatAHeaderHasBecomeAnothers) {
  Access& first = *set_.begin_look_up(kTable, 1);
  first = at(64);
  *set_.begin_look_up(kTable, 1) = at(64);
  EXPECT_FALSE(set_.ambiguous());
  EXPECT_EQ(&first, set_.find(at(64)));
  EXPECT_TRUE(set_.ambiguous());
}

TEST_F(AccessSetTest, AScanSearchesNothingUntilSomethingElseMeetsItsTable) {
  ASSERT_TRUE(set_.begin_scan(kTable));
  Access* first = set_.add_scanned(at(64));
  ASSERT_NE(nullptr, first);
  EXPECT_FALSE(set_.only_looks_up(kTable)) << "what a look-up finds may be there";
  EXPECT_FALSE(set_.begin_scan(kTable)) << "a second scan meets the same headers";
  ASSERT_TRUE(set_.begin_scan(kOther));
  ASSERT_NE(nullptr, set_.add_scanned(at(128, kOther)));
  EXPECT_EQ(first, set_.find(at(64)));
  EXPECT_EQ(nullptr, set_.add_scanned(at(192))) << "it would have to be found, too";
  EXPECT_NE(nullptr, set_.add_scanned(at(256, kOther))) << "nothing has asked for its table";
}

TEST_F(AccessSetTest, AScanSearchesForWhatALookUpMayHaveMet) {
  *set_.begin_look_up(kTable, 1) = at(64);
  ASSERT_TRUE(set_.begin_scan(kTable));
  EXPECT_EQ(nullptr, set_.add_scanned(at(64)));
  EXPECT_NE(nullptr, set_.find(at(64)));
}

TEST_F(AccessSetTest, LookUpsInOtherTablesLeaveAScanItsReads) {
  ASSERT_TRUE(set_.begin_scan(kTable));
  set_.add_read(kTable, ScannedRead(read_at(64)), true);
  set_.add_read(kTable, ScannedRead(read_at(128)), true);
  EXPECT_TRUE(set_.only_looks_up(kOther));
  *set_.begin_look_up(kOther, 1) = at(192, kOther);
  EXPECT_NE(nullptr, set_.find(at(192, kOther)));
  set_.add(at(256, kOther));
  EXPECT_TRUE(set_.takes_reads(kTable));
  EXPECT_EQ(2u, reads());
  EXPECT_EQ(2u, accesses());

  ASSERT_NE(nullptr, set_.find(at(64))) << "its own table: reads become accesses";
  EXPECT_EQ(65u, set_.find(at(64))->read_wts);
  EXPECT_NE(nullptr, set_.find(at(128)));
  EXPECT_FALSE(set_.takes_reads(kTable));
  EXPECT_EQ(0u, reads());
  EXPECT_EQ(4u, accesses());
  EXPECT_FALSE(set_.ambiguous());
}

TEST_F(AccessSetTest, AReadThatIsWrittenIsOneAccess) {
  ASSERT_TRUE(set_.begin_scan(kTable));
  ScannedRead& first = *set_.add_read(kTable, ScannedRead(read_at(64)), true);
  set_.add_read(kTable, ScannedRead(read_at(128)), true);
  set_.find(at(192, kOther));  // there is an index from here on
  Access& written = set_.take_read(read_at(64), &first);
  EXPECT_EQ(1u, reads());
  EXPECT_EQ(1u, accesses());
  EXPECT_EQ(&written, set_.find(at(64))) << "it is found once its table is asked for";
  EXPECT_EQ(2u, accesses());
  EXPECT_EQ(&written, &set_.take_read(read_at(64), nullptr)) << "and taken as it is";
  EXPECT_EQ(set_.find(at(128)), &set_.take_read(read_at(128), nullptr));
  EXPECT_EQ(2u, accesses());
  EXPECT_FALSE(set_.ambiguous());
}

TEST_F(AccessSetTest, WhatIsReadAgainIsOneAccessIfItIsTheSame) {
  ASSERT_TRUE(set_.begin_scan(kTable));
  set_.add_read(kTable, ScannedRead(read_at(64)), true);
  set_.add_read(kTable, ScannedRead(read_at(128)), true);
  Access gap = read_at(1024);
  gap.gap = true;
  ASSERT_NE(nullptr, set_.add_scanned(gap));
  set_.add_gap_again(gap);
  set_.add_read(kTable, ScannedRead(read_at(64)), false);
  Access changed = read_at(128);
  changed.read_wts++;
  const ScannedRead lent[] = {ScannedRead(changed), ScannedRead(read_at(192))};
  set_.borrow_reads(kTable, lent);
  EXPECT_EQ(5u, reads()) << "each is validated";
  EXPECT_EQ(2u, accesses());

  EXPECT_EQ(129u, set_.find(at(128))->read_wts);
  EXPECT_NE(nullptr, set_.find(at(192)));
  EXPECT_EQ(0u, reads());
  EXPECT_EQ(2u + 4u, accesses()) << "of 128 both: one of them fails";
  EXPECT_FALSE(set_.ambiguous());
}

TEST_F(AccessSetTest, AReadThatNeedNotBeKeptBecomesAnAccess) {
  ASSERT_TRUE(set_.begin_scan(kTable));
  Access& written = set_.take_read(read_at(64), nullptr);  // as what is read at one timestamp
  EXPECT_EQ(&written, set_.find(at(64)));
  Access& later = set_.take_read(read_at(128), nullptr);
  EXPECT_EQ(&later, set_.find(at(128)));
  EXPECT_EQ(2u, accesses());
}

}  // namespace
}  // namespace rdmacc
