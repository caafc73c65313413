// A transaction's headers: found by their address once something asks.
#include "engine/txn/transaction/access_set.h"

#include <gtest/gtest.h>

namespace rdmacc {
namespace {

Access at(uint64_t offset) {
  Access access;
  access.header = GlobalAddress::make(0, offset);
  return access;
}

class AccessSetTest : public testing::Test {
 protected:
  std::pmr::monotonic_buffer_resource memory_;
  AccessSet set_{&memory_};
};

TEST_F(AccessSetTest, FindsWhatCameBeforeAndAfterTheFirstQuestion) {
  Access& first = *set_.begin_look_up(2);  // the second finds nothing
  first = at(64);
  Access& second = set_.add(at(128));
  EXPECT_TRUE(set_.only_looks_up());
  EXPECT_EQ(&first, set_.find(GlobalAddress::make(0, 64)));
  EXPECT_FALSE(set_.only_looks_up());
  EXPECT_EQ(&second, set_.find(GlobalAddress::make(0, 128)));
  EXPECT_EQ(nullptr, set_.find(GlobalAddress::make(1, 64)));
  Access& third = set_.add(at(192));
  EXPECT_EQ(&third, set_.find(GlobalAddress::make(0, 192)));
  EXPECT_FALSE(set_.ambiguous());
  size_t count = 0;
  for (const Access& access : set_) count += access.header.null() ? 0 : 1;
  EXPECT_EQ(3u, count);
}

TEST_F(AccessSetTest, TellsThatAHeaderHasBecomeAnothers) {
  Access& first = *set_.begin_look_up(1);
  first = at(64);
  *set_.begin_look_up(1) = at(64);
  EXPECT_FALSE(set_.ambiguous());
  EXPECT_EQ(&first, set_.find(GlobalAddress::make(0, 64)));
  EXPECT_TRUE(set_.ambiguous());
}

TEST_F(AccessSetTest, ScansSearchNothingUntilSomethingElseHasCome) {
  ASSERT_TRUE(set_.begin_scan(7));
  Access* first = set_.add_scanned(at(64));
  ASSERT_NE(nullptr, first);
  EXPECT_FALSE(set_.only_looks_up()) << "what a look-up finds may be there";
  EXPECT_FALSE(set_.begin_scan(7)) << "a second scan meets the same headers";
  ASSERT_TRUE(set_.begin_scan(8));
  ASSERT_NE(nullptr, set_.add_scanned(at(128)));
  EXPECT_EQ(first, set_.find(GlobalAddress::make(0, 64)));
  EXPECT_EQ(nullptr, set_.add_scanned(at(192))) << "it would have to be found, too";
}

TEST_F(AccessSetTest, AScanSearchesForWhatALookUpMayHaveMet) {
  *set_.begin_look_up(1) = at(64);
  ASSERT_TRUE(set_.begin_scan(7));
  EXPECT_EQ(nullptr, set_.add_scanned(at(64)));
  EXPECT_NE(nullptr, set_.find(GlobalAddress::make(0, 64)));
}

}  // namespace
}  // namespace rdmacc
