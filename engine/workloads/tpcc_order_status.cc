// TPC-C's order-status (clause 2.6): what has become of a customer's last order. It only reads.
#include "engine/workloads/rows.h"
#include "engine/workloads/tpcc.h"
#include "engine/workloads/tpcc_customer.h"
#include "engine/workloads/tpcc_random.h"

namespace rdmacc {
namespace {

using tpcc::DistrictId;
using tpcc::row_of;

constexpr uint32_t kValues = 3;  // warehouse, district, customer

DistrictId district_of(const TxnInputs& inputs) { return {inputs.values[0], inputs.values[1]}; }
uint64_t named_in(const TxnInputs& inputs) { return inputs.values[2]; }

// Reads the customer, and the head of the last order.
Status read_head(Session& session, std::span<const TableId> tables, DistrictId of,
                 Tpcc::OrderStatus& answer) {
  RowView view;
  tpcc::CustomerRow customer;
  RDMACC_RETURN_IF_ERROR(
      session.get(tables[tpcc::kCustomer], tpcc::customer_key(of, answer.customer), view));
  RDMACC_RETURN_IF_ERROR(row_of(view, "a customer", customer));
  answer.balance = customer.balance;
  answer.order = customer.last_order;
  RDMACC_RETURN_IF_ERROR(
      session.get(tables[tpcc::kOrders], tpcc::order_key(of, answer.order), view));
  RDMACC_RETURN_IF_ERROR(row_of(view, "a customer's last order", answer.head));
  if (answer.head.customer != answer.customer) {
    return Status(Code::kCorrupt, "a customer's last order is another customer's");
  }
  return Status();
}

Status read_lines(Session& session, TableId table, DistrictId of, Tpcc::OrderStatus& answer) {
  RowBatch lines;
  for (uint32_t l = 1; l <= answer.head.lines; ++l) {
    lines.ask(tpcc::order_line_key(of, answer.order, l));
  }
  RDMACC_RETURN_IF_ERROR(lines.get(session, table));
  answer.lines.resize(lines.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    RDMACC_RETURN_IF_ERROR(row_of(lines.row(i), "an order line", answer.lines[i]));
  }
  return Status();
}

}  // namespace

TxnInputs Tpcc::draw_order_status(Random& random) const {
  TxnInputs inputs;
  inputs.kind = kOrderStatusKind;
  inputs.add(random.between(1, options_.warehouses));
  inputs.add(random.between(1, tpcc::kDistricts));
  inputs.add(tpcc::draw_named(random, options_.by_last_name_percent, options_.customers));
  return inputs;
}

Status Tpcc::order_status(Session& session, const TxnInputs& inputs, OrderStatus& answer) const {
  const DistrictId of = district_of(inputs);
  RDMACC_RETURN_IF_ERROR(tpcc::find_named(session, table(tpcc::kCustomerByLast), of,
                                          named_in(inputs), answer.customer));
  RDMACC_RETURN_IF_ERROR(unless_it_lost(session, read_head(session, tables(), of, answer)));
  return unless_it_lost(session, read_lines(session, table(tpcc::kOrderLine), of, answer));
}

bool Tpcc::knows_order_status(const TxnInputs& inputs) const {
  return inputs.count == kValues && is_warehouse(inputs.values[0]) && inputs.values[1] >= 1 &&
         inputs.values[1] <= tpcc::kDistricts;
}

// Which order is the last is looked up again at the transaction's place in the order: if it is
// another one by then, it starts again. An order that was there already when it was looked for has
// been put there in an earlier epoch, so that its rows need no order among derived inserts.
Status Tpcc::survey_order_status(Session& session, const TxnInputs& inputs,
                                 KeyDeclaration& keys) const {
  const DistrictId of = district_of(inputs);
  const TableId by_last = table(tpcc::kCustomerByLast);
  OrderStatus found;
  RDMACC_RETURN_IF_ERROR(tpcc::find_named(session, by_last, of, named_in(inputs), found.customer));
  RDMACC_RETURN_IF_ERROR(read_head(session, tables(), of, found));
  if (tpcc::is_by_last(named_in(inputs))) {
    keys.add(by_last, tpcc::named_key(of, named_in(inputs)), KeyUse::kRead);
  }
  keys.add(table(tpcc::kCustomer), tpcc::customer_key(of, found.customer), KeyUse::kRead);
  keys.add(table(tpcc::kOrders), tpcc::order_key(of, found.order), KeyUse::kRead);
  for (uint32_t l = 1; l <= found.head.lines; ++l) {
    keys.add(table(tpcc::kOrderLine), tpcc::order_line_key(of, found.order, l), KeyUse::kRead);
  }
  return Status();
}

}  // namespace rdmacc
