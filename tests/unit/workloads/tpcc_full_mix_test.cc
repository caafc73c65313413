// TPC-C's order-status, delivery and stock-level: what they answer, what they leave, and what the
// consistency conditions notice of it.
#include <set>

#include "tests/unit/workloads/loaded_tpcc.h"

namespace rdmacc {
namespace {

using tpcc::customer_key;
using tpcc::CustomerRow;
using tpcc::district_key;
using tpcc::DistrictId;
using tpcc::DistrictRow;
using tpcc::NextDeliveryRow;
using tpcc::order_key;
using tpcc::order_line_key;
using tpcc::OrderLineRow;
using tpcc::OrderRow;
using tpcc::stock_key;
using tpcc::StockRow;

constexpr const char* kSmall =
    "items=100,customers=20,rollbacks=0,order-statuses=20,deliveries=20,stock-levels=20";
constexpr uint64_t kCustomers = 20, kNewOrders = 6;  // of a district
constexpr uint64_t kDistricts = tpcc::kDistricts;

class TpccFullMix : public testing::Test {
 protected:
  LoadedTpcc tpcc_{kSmall};
  Random random_{16};

  template <typename Row>
  Row row(tpcc::Table table, const NumberKey& key) {
    return tpcc_.parsed_row<Row>(table, key);
  }
  TxnInputs draw(Tpcc::Kind kind) { return tpcc_.draw(kind, random_); }

  Tpcc::OrderStatus order_status(const TxnInputs& inputs) {
    Tpcc::OrderStatus answer;
    tpcc_.in_transaction(
        [&](Session& session) { return tpcc_.tpcc().order_status(session, inputs, answer); });
    return answer;
  }
  uint32_t stock_level(const TxnInputs& inputs) {
    uint32_t low = 0;
    tpcc_.in_transaction(
        [&](Session& session) { return tpcc_.tpcc().stock_level(session, inputs, low); });
    return low;
  }
  void overwrite(tpcc::Table table, const NumberKey& key, std::string_view row) {
    tpcc_.overwrite(tpcc_.table(table), key, row);
  }
};

// ---- Order-status

TEST_F(TpccFullMix, OrderStatusFindsTheOrderThatWasLoaded) {
  for (int i = 0; i < 10; ++i) {
    const TxnInputs inputs = draw(Tpcc::kOrderStatusKind);
    const DistrictId of{inputs.values[0], inputs.values[1]};
    const Tpcc::OrderStatus answer = order_status(inputs);
    EXPECT_EQ(row<OrderRow>(tpcc::kOrders, order_key(of, answer.order)).customer, answer.customer);
    EXPECT_EQ(answer.lines.size(), answer.head.lines);
    EXPECT_EQ(answer.balance, -1'000);
  }
}

TEST_F(TpccFullMix, OrderStatusFindsTheLastOfSeveralOrders) {
  const TxnInputs order = draw(Tpcc::kNewOrderKind);
  const DistrictId of{order.values[0], order.values[1]};
  tpcc_.run(order);
  TxnInputs inputs;
  inputs.kind = Tpcc::kOrderStatusKind;
  for (const uint64_t value : {of.warehouse, of.district, order.values[2]}) inputs.add(value);
  Tpcc::OrderStatus answer = order_status(inputs);
  EXPECT_EQ(answer.customer, order.values[2]);
  EXPECT_EQ(answer.order, kCustomers + 1);
  ASSERT_EQ(answer.lines.size(), order.count - 4);
  EXPECT_EQ(answer.lines[0].item, order.values[4] & 0xFFFFFFFF);
  EXPECT_EQ(answer.head.carrier, 0u);
  tpcc_.run(order);
  EXPECT_EQ(order_status(inputs).order, kCustomers + 2);
  EXPECT_EQ(tpcc_.violation(), "");
}

TEST_F(TpccFullMix, OrderStatusSaysWhatDoesNotFitTogether) {
  TxnInputs inputs;
  do inputs = draw(Tpcc::kOrderStatusKind);
  while (inputs.values[2] >> 63 == 1);
  const DistrictId of{inputs.values[0], inputs.values[1]};
  const uint64_t order = order_status(inputs).order;
  tpcc_.in_transaction([&](Session& session) {
    Tpcc::OrderStatus answer;
    CHECK(session.remove(tpcc_.table(tpcc::kOrders), order_key(of, order)).ok());
    EXPECT_EQ(tpcc_.tpcc().order_status(session, inputs, answer).message(),
              "a customer's last order is missing");
    return Status();
  });
}

// ---- Delivery

TEST_F(TpccFullMix, DeliveryTakesTheOldestOrderOfEachDistrict) {
  const TxnInputs inputs = draw(Tpcc::kDeliveryKind);
  const uint64_t order = kCustomers - kNewOrders + 1;
  ASSERT_EQ(row<OrderRow>(tpcc::kOrders, order_key({1, 4}, order)).carrier, 0u);
  ASSERT_EQ(tpcc_.count(tpcc::kNewOrder), kDistricts * kNewOrders);
  tpcc_.run(inputs);
  EXPECT_EQ(tpcc_.count(tpcc::kNewOrder), kDistricts * (kNewOrders - 1));
  for (uint64_t d = 1; d <= kDistricts; ++d) {
    const DistrictId of{1, d};
    EXPECT_EQ(tpcc_.row(tpcc_.table(tpcc::kNewOrder), order_key(of, order)), "");
    EXPECT_EQ(row<NextDeliveryRow>(tpcc::kNextDelivery, district_key(of)).order, order + 1);
    const auto head = row<OrderRow>(tpcc::kOrders, order_key(of, order));
    EXPECT_EQ(head.carrier, inputs.values[1]);
    int64_t amount = 0;
    for (uint64_t l = 1; l <= head.lines; ++l) {
      const auto line = row<OrderLineRow>(tpcc::kOrderLine, order_line_key(of, order, l));
      EXPECT_EQ(line.delivery_date, inputs.values[2]);
      amount += line.amount;
    }
    const auto customer = row<CustomerRow>(tpcc::kCustomer, customer_key(of, head.customer));
    EXPECT_EQ(customer.balance, amount - 1'000);
    EXPECT_EQ(customer.deliveries, 1u);
  }
  EXPECT_EQ(tpcc_.violation(), "");
}

TEST_F(TpccFullMix, DeliveryPassesDistrictsOverThatHaveNoNewOrder) {
  for (uint64_t i = 0; i < kNewOrders + 2; ++i) tpcc_.run(draw(Tpcc::kDeliveryKind));
  EXPECT_EQ(tpcc_.count(tpcc::kNewOrder), 0u);
  EXPECT_EQ(tpcc_.violation(), "");
  const TxnInputs order = draw(Tpcc::kNewOrderKind);
  const DistrictId of{order.values[0], order.values[1]};
  tpcc_.run(order);
  tpcc_.run(draw(Tpcc::kDeliveryKind));
  EXPECT_NE(row<OrderRow>(tpcc::kOrders, order_key(of, kCustomers + 1)).carrier, 0u);
  EXPECT_EQ(tpcc_.count(tpcc::kNewOrder), 0u);
  EXPECT_EQ(tpcc_.violation(), "");
}

// ---- Stock-level

TEST_F(TpccFullMix, StockLevelCountsTheItemsOfTheLastOrdersOnce) {
  for (int i = 0; i < 8; ++i) tpcc_.run(draw(Tpcc::kNewOrderKind));
  for (int i = 0; i < 5; ++i) {
    const TxnInputs inputs = draw(Tpcc::kStockLevelKind);
    const DistrictId of{inputs.values[0], inputs.values[1]};
    const uint64_t next = row<DistrictRow>(tpcc::kDistrict, district_key(of)).next_order;
    std::set<uint32_t> items;
    tpcc_.for_each(tpcc_.table(tpcc::kOrderLine), [&](const RowView& view) {
      const DistrictId place = tpcc::district_of_order_line_key(view.key);
      if (place.district != of.district) return;
      if (tpcc::order_of_order_line_key(view.key) + 20 < next) return;
      items.insert(parsed<OrderLineRow>(view.row).item);
    });
    uint32_t low = 0;
    for (const uint32_t item : items) {
      const auto stock = row<StockRow>(tpcc::kStock, stock_key(of.warehouse, item));
      if (static_cast<uint64_t>(stock.quantity) < inputs.values[2]) ++low;
    }
    EXPECT_EQ(stock_level(inputs), low);
    // Of another item it is low in stock, too, unless no item of the orders is enough.
    for (const uint32_t item : items) {
      auto stock = row<StockRow>(tpcc::kStock, stock_key(of.warehouse, item));
      if (static_cast<uint64_t>(stock.quantity) < inputs.values[2]) continue;
      stock.quantity = static_cast<int32_t>(inputs.values[2]) - 1;
      overwrite(tpcc::kStock, stock_key(of.warehouse, item), bytes_of(stock));
      EXPECT_EQ(stock_level(inputs), low + 1);
      break;
    }
  }
}

// ---- The consistency conditions

TEST_F(TpccFullMix, StaysConsistent) {
  std::set<uint32_t> kinds;
  for (int i = 0; i < 100; ++i) {
    const TxnInputs inputs = tpcc_.workload().draw(random_);
    kinds.insert(inputs.kind);
    tpcc_.run(inputs);
  }
  EXPECT_EQ(kinds.size(), 5u);
  EXPECT_EQ(tpcc_.violation(), "");
}

TEST_F(TpccFullMix, EveryConditionOfAnOrderNoticesARowThatIsWrong) {
  const DistrictId of{1, 3};
  struct Change {
    tpcc::Table table;
    NumberKey key;
    std::function<std::string(std::string_view)> change;
  };
  struct Case {
    std::string violation;
    std::vector<Change> changes;
  };
  const auto carrier = [](uint32_t number) {
    return [number](std::string_view bytes) {
      OrderRow order = parsed<OrderRow>(bytes);
      order.carrier = number;
      return std::string(bytes_of(order));
    };
  };
  const auto fewer_lines = [](std::string_view bytes) {
    OrderRow order = parsed<OrderRow>(bytes);
    --order.lines;
    return std::string(bytes_of(order));
  };
  const auto customer = row<OrderRow>(tpcc::kOrders, order_key(of, 5)).customer;
  const NumberKey customer_5 = customer_key(of, customer);
  const std::string for_customer = " for customer " + std::to_string(customer);
  const NumberKey delivered = order_key(of, 5), fresh = order_key(of, kCustomers - 1);
  const std::string in = " in district 3 of warehouse 1";
  const std::vector<Case> cases = {
      {"condition 11: the orders that are no new orders are not those with O_CARRIER_ID",
       {{tpcc::kOrders, delivered, carrier(0)}}},
      {"condition 5: O_CARRIER_ID is not null just where there is a NEW-ORDER row",
       {{tpcc::kOrders, delivered, carrier(0)}, {tpcc::kOrders, fresh, carrier(1)}}},
      {"condition 6: O_OL_CNT is not the number of order lines",
       {{tpcc::kOrders, delivered, count_up(&OrderRow::lines)},
        {tpcc::kOrders, fresh, fewer_lines}}},
      {"condition 7: OL_DELIVERY_D is not null just where O_CARRIER_ID is for order 19",
       {{tpcc::kOrderLine, order_line_key(of, kCustomers - 1, 2),
         count_up(&OrderLineRow::delivery_date)}}},
      {"condition 10: C_BALANCE is not what was delivered less what was paid" + for_customer,
       {{tpcc::kCustomer, customer_5, count_up(&CustomerRow::balance)}}},
      {"condition 10: C_BALANCE is not what was delivered less what was paid" + for_customer,
       {{tpcc::kOrderLine, order_line_key(of, 5, 1), count_up(&OrderLineRow::amount)}}},
      {"condition 12: C_BALANCE and C_YTD_PAYMENT are not what was delivered" + for_customer,
       {{tpcc::kCustomer, customer_5, count_up(&CustomerRow::ytd_payment)}}},
      {"the last order is not the largest O_ID" + for_customer,
       {{tpcc::kCustomer, customer_5, count_up(&CustomerRow::last_order)}}},
      {"the next delivery is not the smallest NO_O_ID",
       {{tpcc::kNextDelivery, district_key(of), count_up(&NextDeliveryRow::order)}}},
  };
  for (const Case& each : cases) {
    std::vector<std::string> good;
    for (const Change& change : each.changes) {
      good.push_back(tpcc_.row(tpcc_.table(change.table), change.key));
      ASSERT_FALSE(good.back().empty()) << each.violation;
      overwrite(change.table, change.key, change.change(good.back()));
    }
    const std::string found = tpcc_.violation();
    EXPECT_EQ(found.substr(0, each.violation.size()), each.violation);
    EXPECT_NE(found.find(in), std::string::npos) << found;
    for (size_t i = 0; i < good.size(); ++i) {
      overwrite(each.changes[i].table, each.changes[i].key, good[i]);
    }
    EXPECT_EQ(tpcc_.violation(), "");
  }
}

}  // namespace
}  // namespace rdmacc
