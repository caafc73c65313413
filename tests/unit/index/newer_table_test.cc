// Tables that another session makes while a transaction is under way.
#include "tests/unit/engine/two_sessions.h"

namespace rdmacc {
namespace {

class NewerTable : public TwoSessions {
 protected:
  static TableSpec spec() {
    TableSpec spec;
    spec.relfilenode = 2;
    spec.record_size = 64;
    spec.history = 3;
    return spec;
  }
};

// One that is found in the place of another must not seem empty.
TEST_P(NewerTable, IsNotEmptyForAnOlderReader) {
  as_one([&] {
    ASSERT_TRUE(one_.begin(options()).ok());
    RowView row;
    ASSERT_TRUE(one_.get(table_, "a", row).ok());
  });
  as_other([&] {
    ASSERT_TRUE(other_.begin(options()).ok());
    RowView row;
    ASSERT_TRUE(other_.get(table_, "b", row).ok());
    auto made = other_.create_table(spec());
    ASSERT_TRUE(made.ok());
    EXPECT_TRUE(other_.find_table(spec()).ok()) << "it has made the table itself";
    ASSERT_TRUE(other_.insert(made->id, "a", "1").ok());
    ASSERT_TRUE(other_.commit().ok());
  });
  as_one([&] {
    RowView row;
    auto found = one_.find_table(spec());
    if (found.ok()) {
      EXPECT_TRUE(one_.get(found->id, "a", row).ok());
    }
    EXPECT_TRUE(row.found || found.status().code() == Code::kAborted);
    one_.abort();
    ASSERT_TRUE(one_.begin(options()).ok());
    auto again = one_.find_table(spec());
    ASSERT_TRUE(again.ok());
    ASSERT_TRUE(one_.get(again->id, "a", row).ok());
    EXPECT_TRUE(row.found);
    one_.abort();
  });
}

INSTANTIATE_TEST_SUITE_P(Protocols, NewerTable, every_protocol_without_order(), name_of);

}  // namespace
}  // namespace rdmacc
