// TPC-C: its random values, its first rows, what its transactions leave, and what its consistency
// conditions notice.
#include "engine/workloads/tpcc.h"

#include <algorithm>
#include <map>
#include <set>

#include "engine/workloads/tpcc_random.h"
#include "tests/unit/workloads/loaded_tpcc.h"

namespace rdmacc {
namespace {

using tpcc::bytes_of;
using tpcc::customer_key;
using tpcc::CustomerRow;
using tpcc::district_key;
using tpcc::DistrictId;
using tpcc::DistrictRow;
using tpcc::history_key;
using tpcc::HistoryRow;
using tpcc::ItemRow;
using tpcc::last_name;
using tpcc::non_uniform;
using tpcc::order_key;
using tpcc::order_line_key;
using tpcc::OrderLineRow;
using tpcc::OrderRow;
using tpcc::stock_key;
using tpcc::StockRow;
using tpcc::Table;
using tpcc::WarehouseRow;

constexpr const char* kSmall = "warehouses=2,items=100,customers=40";
constexpr uint32_t kCustomers = 40;

// ---- Random values

TEST(TpccRandom, SpellsLastNamesAsTheSpecification) {
  EXPECT_EQ(last_name(0), "BARBARBAR");
  EXPECT_EQ(last_name(371), "PRICALLYOUGHT");
  EXPECT_EQ(last_name(999), "EINGEINGEING");
}

TEST(TpccRandom, NonUniformValuesAreUneven) {
  Random random(8);
  std::vector<uint32_t> counts(1'001);
  for (int i = 0; i < 100'000; ++i) ++counts.at(non_uniform(random, 255, 7, 1, 1'000));
  EXPECT_EQ(counts[0], 0u);
  const auto seen = std::count_if(counts.begin(), counts.end(), [](uint32_t n) { return n > 0; });
  EXPECT_GT(seen, 900);
  // Uniform ones would all be near 100.
  EXPECT_GT(*std::max_element(counts.begin(), counts.end()), 500u);
}

// ((rand(0,a) | rand(x,y)) + c) % (y - x + 1) + x, spelled out.
TEST(TpccRandom, NonUniformValuesFollowTheFormula) {
  Random random(3), same(3);
  for (int i = 0; i < 1'000; ++i) {
    const uint64_t some = same.below(1'024), uniform = 1 + same.below(3'000);
    EXPECT_EQ(non_uniform(random, 1'023, 259, 1, 3'000), ((some | uniform) + 259) % 3'000 + 1);
  }
}

TEST(TpccRandom, ConstantsOfLastNamesDifferAsTheSpecificationAsks) {
  const uint64_t apart = tpcc::kLastNameConstantOfRun - tpcc::kLastNameConstantOfLoad;
  EXPECT_GE(apart, 65u);
  EXPECT_LE(apart, 119u);
  EXPECT_NE(apart, 96u);
  EXPECT_NE(apart, 112u);
}

// ---- Loading

class TpccTest : public testing::Test {
 protected:
  LoadedTpcc tpcc_{kSmall};
  Random random_{6};

  uint32_t count(Table table) { return tpcc_.count(table); }
  template <typename Row>
  Row row(Table table, const NumberKey& key) {
    return tpcc_.parsed_row<Row>(table, key);
  }
  TxnInputs draw(Tpcc::Kind kind) { return tpcc_.draw(kind, random_); }
};

TEST_F(TpccTest, LoadsAsManyRowsAsTheSpecificationAsks) {
  EXPECT_EQ(count(tpcc::kWarehouse), 2u);
  EXPECT_EQ(count(tpcc::kDistrict), 20u);
  EXPECT_EQ(count(tpcc::kItem), 100u);
  EXPECT_EQ(count(tpcc::kStock), 200u);
  for (const Table table : {tpcc::kCustomer, tpcc::kCustomerData, tpcc::kHistory, tpcc::kOrders}) {
    EXPECT_EQ(count(table), 20 * kCustomers) << table;
  }
  EXPECT_EQ(count(tpcc::kNewOrder), 20 * kCustomers * 900 / 3'000);
  EXPECT_EQ(tpcc_.violation(), "");
}

TEST_F(TpccTest, FindsEveryCustomerByLastNameSortedByFirst) {
  std::map<std::string, CustomerRow> customers;
  tpcc_.for_each(tpcc_.table(tpcc::kCustomer), [&](const RowView& view) {
    customers[std::string(view.key)] = parsed<CustomerRow>(view.row);
  });
  uint32_t found = 0;
  tpcc_.for_each(tpcc_.table(tpcc::kCustomerByLast), [&](const RowView& view) {
    const uint64_t number = NumberKey::number_of(view.key);
    const DistrictId of{number >> 24, number >> 16 & 0xFF};
    std::string first_before;
    for (size_t at = 0; at < view.row.size(); at += 2, ++found) {
      uint16_t id = 0;
      std::memcpy(&id, view.row.data() + at, 2);
      const CustomerRow& customer =
          customers.at(std::string(std::string_view(customer_key(of, id))));
      EXPECT_EQ(std::string(customer.last.data()), last_name(number & 0xFFFF));
      const std::string first(customer.first.data(), customer.first.size());
      EXPECT_LE(first_before, first);
      first_before = first;
    }
  });
  EXPECT_EQ(found, 20 * kCustomers);
}

TEST(TpccLoad, GivesEveryCustomerOneOrder) {
  LoadedWorkload tpcc("tpcc", "items=100,customers=30");
  std::map<uint64_t, std::set<uint32_t>> customers;  // by district
  tpcc.for_each(tpcc.table(tpcc::kOrders), [&](const RowView& view) {
    const OrderRow order = parsed<OrderRow>(view.row);
    EXPECT_TRUE(order.lines >= 5 && order.lines <= 15);
    EXPECT_EQ(order.carrier == 0, tpcc::order_of_order_key(view.key) > 21);
    customers[tpcc::district_of_order_key(view.key).district].insert(order.customer);
  });
  ASSERT_EQ(customers.size(), 10u);
  for (const auto& [district, ordered] : customers) {
    EXPECT_EQ(ordered.size(), 30u);
    EXPECT_EQ(*ordered.begin(), 1u);
    EXPECT_EQ(*ordered.rbegin(), 30u);
  }
}

// ---- Transactions

TEST_F(TpccTest, NewOrderTakesStockAndAddsItsRows) {
  TxnInputs inputs;
  do inputs = draw(Tpcc::kNewOrderKind);
  while ((inputs.values[inputs.count - 1] & 0xFFFFFFFF) > 100);
  const DistrictId of{inputs.values[0], inputs.values[1]};
  const uint64_t item = inputs.values[4] & 0xFFFFFFFF, supply = inputs.values[4] >> 32 & 0xFFFF;
  const auto quantity = static_cast<int32_t>(inputs.values[4] >> 48);
  const StockRow before = row<StockRow>(tpcc::kStock, stock_key(supply, item));
  const TxnEffect effect = tpcc_.run(inputs);
  EXPECT_EQ(effect.delta, 1);
  EXPECT_FALSE(effect.rollback);
  EXPECT_EQ(row<DistrictRow>(tpcc::kDistrict, district_key(of)).next_order, kCustomers + 2);
  const OrderRow order = row<OrderRow>(tpcc::kOrders, order_key(of, kCustomers + 1));
  EXPECT_EQ(order.customer, inputs.values[2]);
  EXPECT_EQ(order.lines, inputs.count - 4);
  const StockRow after = row<StockRow>(tpcc::kStock, stock_key(supply, item));
  const int32_t left = before.quantity - quantity;
  EXPECT_EQ(after.quantity, left >= 10 ? left : left + 91);
  EXPECT_EQ(after.ytd, before.ytd + quantity);
  EXPECT_EQ(after.orders, before.orders + 1);
  EXPECT_EQ(after.remote_orders, before.remote_orders + (supply == of.warehouse ? 0 : 1));
  const auto line = row<OrderLineRow>(tpcc::kOrderLine, order_line_key(of, kCustomers + 1, 1));
  EXPECT_EQ(line.item, item);
  EXPECT_EQ(line.amount, quantity * row<ItemRow>(tpcc::kItem, tpcc::item_key(item)).price);
  EXPECT_EQ(tpcc_.violation(), "");
}

TEST(TpccNewOrder, RolledBackByItsUserLeavesNothing) {
  LoadedWorkload tpcc("tpcc", "items=100,customers=10,new-orders=100,rollbacks=100");
  Random random(1);
  for (int i = 0; i < 5; ++i) {
    const TxnEffect effect = tpcc.run(tpcc.workload().draw(random));
    EXPECT_TRUE(effect.rollback);
    EXPECT_EQ(effect.delta, 0);
  }
  EXPECT_EQ(tpcc.violation(), "");
  EXPECT_EQ(tpcc.violation(1), "there are 100 orders, but 100 were loaded and 1 committed");
}

TEST_F(TpccTest, PaymentByLastNamePicksTheOneInTheMiddle) {
  TxnInputs inputs;
  do inputs = draw(Tpcc::kPaymentKind);
  while (inputs.values[4] >> 63 == 0);
  const DistrictId of{inputs.values[2], inputs.values[3]};
  // Three of one name, as if loaded so.
  const uint64_t name = inputs.values[4] & 0xFFFF;
  const std::array<uint16_t, 3> same{11, 9, 17};
  tpcc_.overwrite(tpcc_.table(tpcc::kCustomerByLast), tpcc::by_last_key(of, name),
                  {reinterpret_cast<const char*>(same.data()), 6});
  tpcc_.run(inputs);
  const auto amount = static_cast<int64_t>(inputs.values[5]);
  const CustomerRow paid = row<CustomerRow>(tpcc::kCustomer, customer_key(of, 9));
  EXPECT_EQ(paid.balance, -1'000 - amount);
  EXPECT_EQ(paid.ytd_payment, 1'000 + amount);
  EXPECT_EQ(paid.payments, 2u);
  for (const uint64_t other : {11, 17}) {
    EXPECT_EQ(row<CustomerRow>(tpcc::kCustomer, customer_key(of, other)).payments, 1u);
  }
  const auto history = row<HistoryRow>(tpcc::kHistory, history_key(inputs.values[7]));
  EXPECT_EQ(history.amount, amount);
  EXPECT_EQ(history.customer, 9u);
  EXPECT_EQ(tpcc_.violation(), "");
}

TEST_F(TpccTest, PaymentRemindsCustomersWithBadCreditOnly) {
  for (const char* credit : {"BC", "GC"}) {
    TxnInputs inputs;
    do inputs = draw(Tpcc::kPaymentKind);
    while (inputs.values[4] >> 63 == 1);
    const NumberKey key = customer_key({inputs.values[2], inputs.values[3]}, inputs.values[4]);
    CustomerRow customer = row<CustomerRow>(tpcc::kCustomer, key);
    tpcc::set_text(customer.credit, credit);
    tpcc_.overwrite(tpcc_.table(tpcc::kCustomer), key, bytes_of(customer));
    const std::string before = tpcc_.row(tpcc_.table(tpcc::kCustomerData), key);
    tpcc_.run(inputs);
    const std::string after = tpcc_.row(tpcc_.table(tpcc::kCustomerData), key);
    if (std::string_view(credit) == "GC") {
      EXPECT_EQ(after, before);
      continue;
    }
    EXPECT_EQ(after.find(std::to_string(inputs.values[4]) + " "), 0u);
    const size_t reminder = after.find('|') + 1;
    EXPECT_EQ(after.substr(reminder), before.substr(0, after.size() - reminder));
  }
}

TEST_F(TpccTest, StaysConsistent) {
  uint32_t payments = 0;
  for (int i = 0; i < 60; ++i) {
    const TxnInputs inputs = tpcc_.workload().draw(random_);
    payments += inputs.kind == Tpcc::kPaymentKind ? 1 : 0;
    tpcc_.run(inputs);
  }
  EXPECT_GT(payments, 10u);
  EXPECT_GT(tpcc_.delta(), 10);
  EXPECT_EQ(tpcc_.violation(), "");
}

// ---- The consistency conditions

TEST_F(TpccTest, EveryConditionNoticesARowThatIsWrong) {
  const DistrictId of{2, 3};
  struct Case {
    std::string violation;
    Table table;
    NumberKey key;
    std::function<std::string(std::string_view)> change;  // none: the row is removed
  };
  const std::string in = " in district 3 of warehouse 2";
  const std::vector<Case> cases = {
      {"condition 1: W_YTD is not the sum of D_YTD of warehouse 2", tpcc::kWarehouse,
       tpcc::warehouse_key(2), count_up(&WarehouseRow::ytd)},
      {"condition 9: D_YTD is not the sum of H_AMOUNT" + in, tpcc::kDistrict, district_key(of),
       count_up(&DistrictRow::ytd)},
      {"condition 9: D_YTD is not the sum of H_AMOUNT" + in, tpcc::kHistory,
       history_key(2ull << 24 | 3 << 16 | 5), nullptr},
      {"condition 2: D_NEXT_O_ID - 1 is not the largest O_ID" + in, tpcc::kDistrict,
       district_key(of), count_up(&DistrictRow::next_order)},
      {"condition 2: the largest NO_O_ID is not the largest O_ID" + in, tpcc::kNewOrder,
       order_key(of, kCustomers), nullptr},
      {"condition 3: NO_O_ID has gaps" + in, tpcc::kNewOrder, order_key(of, kCustomers - 3),
       nullptr},
      {"condition 4: the sum of O_OL_CNT is not the number of order lines" + in, tpcc::kOrderLine,
       order_line_key(of, 7, 2), nullptr},
      {"condition 4: the sum of O_OL_CNT is not the number of order lines" + in, tpcc::kOrders,
       order_key(of, 7), count_up(&OrderRow::lines)}};
  for (const Case& each : cases) {
    const std::string good = tpcc_.row(tpcc_.table(each.table), each.key);
    ASSERT_FALSE(good.empty()) << each.violation;
    tpcc_.overwrite(tpcc_.table(each.table), each.key, each.change ? each.change(good) : "");
    EXPECT_EQ(tpcc_.violation(), each.violation);
    tpcc_.overwrite(tpcc_.table(each.table), each.key, good);
    EXPECT_EQ(tpcc_.violation(), "");
  }
}

TEST_F(TpccTest, NoticesRowsThatBelongNowhere) {
  const std::string line(bytes_of(OrderLineRow()));
  tpcc_.overwrite(tpcc_.table(tpcc::kOrderLine), order_line_key({2, 11}, 1, 1), line);
  EXPECT_EQ(tpcc_.violation(), "a row belongs to no district");
}

// An order with all that belongs to it, which no transaction has committed.
TEST_F(TpccTest, NoticesAnOrderThatWasNotCommitted) {
  EXPECT_EQ(tpcc_.violation(-1), "there are 800 orders, but 800 were loaded and -1 committed");
}

}  // namespace
}  // namespace rdmacc
