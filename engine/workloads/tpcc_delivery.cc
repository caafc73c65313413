// TPC-C's delivery (clause 2.7): the oldest new order of each district of a warehouse is given to
// a carrier, all in one transaction. A district without new orders is passed over.
#include "engine/workloads/rows.h"
#include "engine/workloads/tpcc.h"
#include "engine/workloads/tpcc_random.h"

namespace rdmacc {
namespace {

using tpcc::DistrictId;
using tpcc::kDistricts;
using tpcc::row_of;

constexpr uint32_t kValues = 3;  // warehouse, carrier, date
constexpr uint64_t kCarriersMax = 10;

// What is delivered of one district.
struct Delivered {
  DistrictId of;
  uint64_t order;
  tpcc::OrderRow head;
};

// The oldest new orders: which one is read of the district, whether it is there of new_order, which
// no new order but that one writes. The district itself, which all new orders write, is left alone.
Status find_orders(Session& session, std::span<const TableId> tables, uint64_t warehouse,
                   std::vector<Delivered>& found) {
  RowBatch next, new_orders;
  for (uint64_t d = 1; d <= kDistricts; ++d) next.ask(tpcc::district_key({warehouse, d}));
  RDMACC_RETURN_IF_ERROR(next.get(session, tables[tpcc::kNextDelivery], true));
  std::array<uint64_t, kDistricts> numbers{};
  for (uint32_t i = 0; i < kDistricts; ++i) {
    tpcc::NextDeliveryRow row;
    RDMACC_RETURN_IF_ERROR(row_of(next.row(i), "a district's next delivery", row));
    numbers[i] = row.order;
    new_orders.ask(tpcc::order_key({warehouse, i + 1}, row.order));
  }
  RDMACC_RETURN_IF_ERROR(new_orders.get(session, tables[tpcc::kNewOrder], true));
  RowBatch orders;
  for (uint32_t i = 0; i < kDistricts; ++i) {
    if (!new_orders.row(i).found) continue;
    found.push_back({{warehouse, i + 1}, numbers[i], {}});
    orders.ask(tpcc::order_key(found.back().of, numbers[i]));
  }
  RDMACC_RETURN_IF_ERROR(orders.get(session, tables[tpcc::kOrders], true));
  for (size_t i = 0; i < found.size(); ++i) {
    RDMACC_RETURN_IF_ERROR(row_of(orders.row(i), "a new order's order", found[i].head));
  }
  return Status();
}

// Reads the lines of all, dates them, and adds up what each order is about.
Status deliver_lines(Session& session, TableId table, std::span<const Delivered> found,
                     uint64_t date, std::span<int64_t> amounts) {
  RowBatch lines;
  for (const Delivered& each : found) {
    for (uint32_t l = 1; l <= each.head.lines; ++l) {
      lines.ask(tpcc::order_line_key(each.of, each.order, l));
    }
  }
  RDMACC_RETURN_IF_ERROR(lines.get(session, table, true));
  size_t at = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    amounts[i] = 0;
    for (uint32_t l = 1; l <= found[i].head.lines; ++l, ++at) {
      tpcc::OrderLineRow row;
      RDMACC_RETURN_IF_ERROR(row_of(lines.row(at), "an order line", row));
      amounts[i] += row.amount;
      row.delivery_date = date;
      RDMACC_RETURN_IF_ERROR(session.put(table, lines.key(at), tpcc::bytes_of(row)));
    }
  }
  return Status();
}

Status credit_customers(Session& session, TableId table, std::span<const Delivered> found,
                        std::span<const int64_t> amounts) {
  RowBatch customers;
  for (const Delivered& each : found) {
    customers.ask(tpcc::customer_key(each.of, each.head.customer));
  }
  RDMACC_RETURN_IF_ERROR(customers.get(session, table, true));
  for (size_t i = 0; i < found.size(); ++i) {
    tpcc::CustomerRow row;
    RDMACC_RETURN_IF_ERROR(row_of(customers.row(i), "a customer", row));
    row.balance += amounts[i];
    ++row.deliveries;
    RDMACC_RETURN_IF_ERROR(session.put(table, customers.key(i), tpcc::bytes_of(row)));
  }
  return Status();
}

}  // namespace

TxnInputs Tpcc::draw_delivery(Random& random) const {
  TxnInputs inputs;
  inputs.kind = kDeliveryKind;
  inputs.add(random.between(1, options_.warehouses));
  inputs.add(random.between(1, kCarriersMax));
  inputs.add(tpcc::draw_date(random));
  return inputs;
}

Status Tpcc::delivery(Session& session, const TxnInputs& inputs) const {
  std::vector<Delivered> found;
  RDMACC_RETURN_IF_ERROR(
      unless_it_lost(session, find_orders(session, tables(), inputs.values[0], found)));
  for (Delivered& each : found) {
    const NumberKey order_key = tpcc::order_key(each.of, each.order);
    RDMACC_RETURN_IF_ERROR(session.put(table(tpcc::kNextDelivery), tpcc::district_key(each.of),
                                       tpcc::bytes_of(tpcc::NextDeliveryRow{each.order + 1})));
    RDMACC_RETURN_IF_ERROR(session.remove(table(tpcc::kNewOrder), order_key));
    each.head.carrier = static_cast<uint32_t>(inputs.values[1]);
    RDMACC_RETURN_IF_ERROR(session.put(table(tpcc::kOrders), order_key, tpcc::bytes_of(each.head)));
  }
  std::array<int64_t, kDistricts> amounts{};
  RDMACC_RETURN_IF_ERROR(unless_it_lost(
      session, deliver_lines(session, table(tpcc::kOrderLine), found, inputs.values[2], amounts)));
  return unless_it_lost(session, credit_customers(session, table(tpcc::kCustomer), found, amounts));
}

bool Tpcc::knows_delivery(const TxnInputs& inputs) const {
  return inputs.count == kValues && is_warehouse(inputs.values[0]) && inputs.values[1] >= 1 &&
         inputs.values[1] <= kCarriersMax && inputs.values[2] > tpcc::kLoadDate;
}

// As with order-status, orders that are there need no order among derived inserts. One that is not
// there yet may come in the same epoch, so that a delivery that passes a district over is none of
// keys that are known.
Status Tpcc::survey_delivery(Session& session, const TxnInputs& inputs, KeyDeclaration& keys,
                             bool& known) const {
  std::vector<Delivered> found;
  RDMACC_RETURN_IF_ERROR(find_orders(session, tables(), inputs.values[0], found));
  known = found.size() == kDistricts;
  if (!known) return Status();
  for (const Delivered& each : found) {
    const NumberKey order_key = tpcc::order_key(each.of, each.order);
    keys.add(table(tpcc::kNextDelivery), tpcc::district_key(each.of), KeyUse::kWrite);
    keys.add(table(tpcc::kNewOrder), order_key, KeyUse::kWrite);
    keys.add(table(tpcc::kOrders), order_key, KeyUse::kWrite);
    keys.add(table(tpcc::kCustomer), tpcc::customer_key(each.of, each.head.customer),
             KeyUse::kWrite);
    for (uint32_t l = 1; l <= each.head.lines; ++l) {
      keys.add(table(tpcc::kOrderLine), tpcc::order_line_key(each.of, each.order, l),
               KeyUse::kWrite);
    }
  }
  return Status();
}

}  // namespace rdmacc
