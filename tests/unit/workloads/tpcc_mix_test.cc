// Which of TPC-C's transactions are drawn, and how often.
#include <gtest/gtest.h>

#include <map>

#include "engine/workloads/registry.h"
#include "engine/workloads/tpcc.h"

namespace rdmacc {
namespace {

std::map<uint32_t, uint32_t> kinds_drawn(const char* settings, uint32_t draws) {
  auto tpcc = make_workload("tpcc", settings, {2, true});
  CHECK(tpcc.ok());
  Random random(3);
  std::map<uint32_t, uint32_t> kinds;
  for (uint32_t i = 0; i < draws; ++i) {
    const TxnInputs inputs = (*tpcc)->draw(random);
    EXPECT_TRUE((*tpcc)->knows(inputs));
    ++kinds[inputs.kind];
  }
  return kinds;
}

TEST(TpccMix, IsNewOrdersAndPaymentsUnlessOthersAreAskedFor) {
  const auto kinds = kinds_drawn("new-orders=30", 10'000);
  EXPECT_EQ(kinds.size(), 2u);
  EXPECT_NEAR(kinds.at(Tpcc::kNewOrderKind), 3'000, 300);
}

TEST(TpccMix, IsTheSpecificationsIfFull) {
  const auto kinds = kinds_drawn("full-mix=1", 20'000);
  ASSERT_EQ(kinds.size(), 5u);
  EXPECT_NEAR(kinds.at(Tpcc::kNewOrderKind), 9'000, 500);
  EXPECT_NEAR(kinds.at(Tpcc::kPaymentKind), 8'600, 500);
  for (const Tpcc::Kind few :
       {Tpcc::kOrderStatusKind, Tpcc::kDeliveryKind, Tpcc::kStockLevelKind}) {
    EXPECT_NEAR(kinds.at(few), 800, 200) << few;
  }
}

TEST(TpccMix, LeavesTheRestToNewOrdersAndPayments) {
  const auto kinds =
      kinds_drawn("new-orders=25,order-statuses=10,deliveries=30,stock-levels=20", 20'000);
  EXPECT_NEAR(kinds.at(Tpcc::kOrderStatusKind), 2'000, 300);
  EXPECT_NEAR(kinds.at(Tpcc::kDeliveryKind), 6'000, 500);
  EXPECT_NEAR(kinds.at(Tpcc::kStockLevelKind), 4'000, 400);
  EXPECT_NEAR(kinds.at(Tpcc::kNewOrderKind), 2'000, 300);
  EXPECT_NEAR(kinds.at(Tpcc::kPaymentKind), 6'000, 500);
}

TEST(TpccMix, RefusesWhatDoesNotGoTogether) {
  const auto refusal = [](const char* settings) {
    return make_workload("tpcc", settings, {2, true}).status().message();
  };
  EXPECT_EQ(refusal("deliveries=60,stock-levels=41"),
            "--order-statuses, --deliveries and --stock-levels must be at most 100 together");
  for (const char* settings : {"full-mix=1,new-orders=100", "full-mix=1,deliveries=4"}) {
    EXPECT_EQ(refusal(settings),
              "--full-mix excludes --new-orders, --order-statuses, --deliveries and "
              "--stock-levels");
  }
}

// A node that executes another client's inputs has no tables for them.
TEST(TpccMix, KnowsTheOthersOnlyWhereTheyHaveTheirTable) {
  auto full = make_workload("tpcc", "full-mix=1", {2, true});
  auto papers = make_workload("tpcc", "", {2, true});
  ASSERT_TRUE(full.ok() && papers.ok());
  EXPECT_EQ((*full)->table_specs().size(), (*papers)->table_specs().size() + 1);
  Random random(5);
  for (int i = 0; i < 500; ++i) {
    const TxnInputs inputs = (*full)->draw(random);
    EXPECT_EQ((*papers)->knows(inputs), inputs.kind <= Tpcc::kPaymentKind);
  }
}

}  // namespace
}  // namespace rdmacc
