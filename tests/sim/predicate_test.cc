// The predicate workload's invariants: each notices what breaks it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/workloads/predicate_rows.h"

namespace rdmacc {
namespace {

using testing::HasSubstr;

class PredicateRowsTest : public testing::Test {
 protected:
  std::string violation() const { return predicate_violation(rows_, options_); }

  const PredicateOptions options_{};
  PredicateRows rows_ = first_predicate_rows(options_);
};

TEST_F(PredicateRowsTest, HoldAtFirst) {
  EXPECT_EQ(violation(), "");
  for (const std::string& key : all_predicate_keys(options_)) {
    rows_[0].erase(key);
    rows_[1].erase(key);
  }
  EXPECT_TRUE(rows_[0].empty() && rows_[1].empty());
}

TEST_F(PredicateRowsTest, AQuotaIsOfOneClassInOneTable) {
  for (uint64_t n = 0; n < options_.quota; ++n) {
    for (uint64_t c = 0; c < options_.classes; ++c) {
      rows_[0][quota_key(c, n)] = "1";
      rows_[1][quota_key(c, n)] = "1";
    }
  }
  EXPECT_EQ(violation(), "");
  rows_[1][quota_key(1, options_.quota)] = "1";
  EXPECT_EQ(violation(), "class 1 has 3 rows, its quota is 2");
}

TEST_F(PredicateRowsTest, OneStaysOnCall) {
  rows_[0].erase(staff_key(0));
  EXPECT_EQ(violation(), "");
  rows_[1].erase(staff_key(1));
  EXPECT_EQ(violation(), "no row is on call");
}

TEST_F(PredicateRowsTest, NeverBothOfAPair) {
  rows_[0][pair_key(0)] = "1";
  rows_[1][pair_key(1)] = "1";
  EXPECT_EQ(violation(), "");
  rows_[1][pair_key(0)] = "1";
  EXPECT_EQ(violation(), "both of p0 are there");
}

TEST_F(PredicateRowsTest, TokensAreInOneTableAndKeepTheirSum) {
  rows_[0][token_key(0)] = "-20";
  rows_[1][token_key(1)] = "220";
  EXPECT_EQ(violation(), "");
  rows_[0][token_key(0)] = "-21";
  EXPECT_EQ(violation(), "the tokens add up to 399, not 400");
  rows_[0][token_key(0)] = "-20x";
  EXPECT_THAT(violation(), HasSubstr("no number: -20x"));
  rows_[0].erase(token_key(0));
  EXPECT_EQ(violation(), "t0 is in no table");
  rows_[0][token_key(0)] = rows_[1][token_key(0)] = "-20";
  EXPECT_EQ(violation(), "t0 is in both tables");
}

}  // namespace
}  // namespace rdmacc
