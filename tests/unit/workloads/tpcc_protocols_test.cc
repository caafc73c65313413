// Every protocol loads TPC-C, and what its transactions leave is consistent.
#include "engine/protocols/registry.h"
#include "tests/unit/workloads/loaded_workload.h"

namespace rdmacc {
namespace {

class TpccUnder : public testing::TestWithParam<Protocol> {
 protected:
  TxnOptions options() const {
    TxnOptions options;
    options.protocol = GetParam();
    return options;
  }
};

TEST_P(TpccUnder, LoadsRunsAndIsConsistent) {
  LoadedWorkload tpcc("tpcc", "warehouses=2,items=100,customers=40", options());
  Random random(11);
  for (int i = 0; i < 40; ++i) tpcc.run_to_end(tpcc.workload().draw(random));
  EXPECT_GT(tpcc.delta(), 5);
  EXPECT_EQ(tpcc.violation(), "");
}

TEST_P(TpccUnder, RunsAllFiveTransactions) {
  LoadedWorkload tpcc("tpcc",
                      "warehouses=2,items=100,customers=40,order-statuses=20,deliveries=20,"
                      "stock-levels=10",
                      options());
  Random random(12);
  for (int i = 0; i < 60; ++i) tpcc.run_to_end(tpcc.workload().draw(random));
  EXPECT_GT(tpcc.delta(), 5);
  EXPECT_EQ(tpcc.violation(), "");
}

INSTANTIATE_TEST_SUITE_P(Protocols, TpccUnder, testing::ValuesIn(available_protocols()),
                         [](const auto& each) { return protocol_name(each.param); });

}  // namespace
}  // namespace rdmacc
