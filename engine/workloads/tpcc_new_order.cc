// TPC-C's new-order (clause 2.4): a customer orders 5 to 15 items, some of them from the stock of
// other warehouses.
#include <algorithm>

#include "engine/workloads/tpcc.h"
#include "engine/workloads/tpcc_random.h"

namespace rdmacc {
namespace {

using tpcc::DistrictId;
using tpcc::kLinesMax;
using tpcc::row_of;

constexpr uint32_t kHeadValues = 4;  // warehouse, district, customer, date; then the lines
static_assert(kHeadValues + kLinesMax <= kTxnValuesMax);

struct Line {
  uint64_t item, supply, quantity;
};

// 32 bits item, 16 supplying warehouse, 16 quantity.
uint64_t pack(const Line& line) { return line.item | line.supply << 32 | line.quantity << 48; }
Line unpack(uint64_t value) { return {value & 0xFFFFFFFF, value >> 32 & 0xFFFF, value >> 48}; }

// The inputs, read back.
class NewOrderInputs {
 public:
  explicit NewOrderInputs(const TxnInputs& inputs) : inputs_(inputs) {
    CHECK(inputs.count > kHeadValues && lines() <= kLinesMax);
  }
  DistrictId district() const { return {inputs_.values[0], inputs_.values[1]}; }
  uint64_t customer() const { return inputs_.values[2]; }
  uint64_t date() const { return inputs_.values[3]; }
  uint32_t lines() const { return inputs_.count - kHeadValues; }
  Line line(uint32_t number) const { return unpack(inputs_.values[kHeadValues + number]); }
  bool all_local() const {
    for (uint32_t i = 0; i < lines(); ++i) {
      if (line(i).supply != district().warehouse) return false;
    }
    return true;
  }

 private:
  const TxnInputs& inputs_;
};

// The rows of one batch of look-ups, and the keys that they were asked for by.
struct LineRows {
  std::array<NumberKey, kLinesMax> numbers;
  std::array<std::string_view, kLinesMax> keys;
  std::array<RowView, kLinesMax> rows;

  void ask(uint32_t line, NumberKey number) {
    numbers[line] = number;
    keys[line] = numbers[line];
  }
  Status get(Session& session, TableId table, uint32_t lines) {
    return session.get_many(table, std::span(keys.data(), lines), std::span(rows.data(), lines));
  }
};

// Clause 2.4.2.2: what a line takes is put back when the stock would fall below 10.
void take_from(tpcc::StockRow& stock, const Line& line, bool remote) {
  const auto quantity = static_cast<int32_t>(line.quantity);
  stock.quantity -= quantity;
  if (stock.quantity < 10) stock.quantity += 91;
  stock.ytd += quantity;
  ++stock.orders;
  if (remote) ++stock.remote_orders;
}

}  // namespace

TxnInputs Tpcc::draw_new_order(Random& random) const {
  TxnInputs inputs;
  inputs.kind = kNewOrderKind;
  const uint64_t home = random.between(1, options_.warehouses);
  inputs.add(home);
  inputs.add(random.between(1, tpcc::kDistricts));
  inputs.add(tpcc::draw_customer(random, options_.customers));
  inputs.add(tpcc::draw_date(random));
  const uint64_t lines = random.between(tpcc::kLinesMin, kLinesMax);
  std::array<uint64_t, kLinesMax> items{};
  for (uint64_t i = 0; i < lines; ++i) {
    const auto taken = items.begin() + static_cast<std::ptrdiff_t>(i);
    // Distinct, so that each line has a stock row of its own.
    uint64_t item = tpcc::draw_item(random, options_.items);
    while (std::find(items.begin(), taken, item) != taken) item = item % options_.items + 1;
    items[i] = item;
    const bool remote = random.percent(options_.remote_stock_percent);
    inputs.add(pack({item, remote ? other_warehouse(random, home) : home, random.between(1, 10)}));
  }
  if (random.percent(options_.rollback_percent)) {
    // The last item is none that there is (clause 2.4.1.4).
    uint64_t& last = inputs.values[inputs.count - 1];
    const Line line = unpack(last);
    last = pack({options_.items + 1ull, line.supply, line.quantity});
  }
  return inputs;
}

// Rows that many transactions want come last, so that they are locked for the shortest time. The
// amounts that a terminal would show (totals with tax and discount) are not computed.
Status Tpcc::new_order(Session& session, const TxnInputs& drawn, TxnEffect& effect) const {
  const NewOrderInputs inputs(drawn);
  const DistrictId of = inputs.district();
  const uint32_t lines = inputs.lines();
  LineRows items, stocks;
  for (uint32_t i = 0; i < lines; ++i) {
    items.ask(i, tpcc::item_key(inputs.line(i).item));
    stocks.ask(i, tpcc::stock_key(inputs.line(i).supply, inputs.line(i).item));
  }
  RDMACC_RETURN_IF_ERROR(items.get(session, table(tpcc::kItem), lines));
  if (!items.rows[lines - 1].found && inputs.line(lines - 1).item > options_.items) {
    effect.rollback = true;
    return Status();
  }
  RDMACC_RETURN_IF_ERROR(stocks.get(session, table(tpcc::kStock), lines));
  RowView view;
  tpcc::CustomerRow customer;
  const NumberKey customer_key = tpcc::customer_key(of, inputs.customer());
  RDMACC_RETURN_IF_ERROR(session.get(table(tpcc::kCustomer), customer_key, view));
  RDMACC_RETURN_IF_ERROR(row_of(view, "a customer", customer));
  session.meet_hot_rows();
  tpcc::WarehouseRow warehouse;
  RDMACC_RETURN_IF_ERROR(
      session.get(table(tpcc::kWarehouse), tpcc::warehouse_key(of.warehouse), view));
  RDMACC_RETURN_IF_ERROR(row_of(view, "a warehouse", warehouse));
  tpcc::DistrictRow district;
  const NumberKey district_key = tpcc::district_key(of);
  RDMACC_RETURN_IF_ERROR(session.get(table(tpcc::kDistrict), district_key, view));
  RDMACC_RETURN_IF_ERROR(row_of(view, "a district", district));

  const uint64_t order = district.next_order++;
  RDMACC_RETURN_IF_ERROR(
      session.put(table(tpcc::kDistrict), district_key, tpcc::bytes_of(district)));
  if (options_.is_full()) {
    customer.last_order = static_cast<uint32_t>(order);
    RDMACC_RETURN_IF_ERROR(
        session.put(table(tpcc::kCustomer), customer_key, tpcc::bytes_of(customer)));
  }
  for (uint32_t i = 0; i < lines; ++i) {
    const Line line = inputs.line(i);
    tpcc::ItemRow item;
    RDMACC_RETURN_IF_ERROR(row_of(items.rows[i], "an item", item));
    tpcc::StockRow stock;
    RDMACC_RETURN_IF_ERROR(row_of(stocks.rows[i], "a stock row", stock));
    take_from(stock, line, line.supply != of.warehouse);
    RDMACC_RETURN_IF_ERROR(session.put(table(tpcc::kStock), stocks.keys[i], tpcc::bytes_of(stock)));
    tpcc::OrderLineRow row;
    row.amount = static_cast<int64_t>(line.quantity) * item.price;
    row.item = static_cast<uint32_t>(line.item);
    row.supply_warehouse = static_cast<uint32_t>(line.supply);
    row.quantity = static_cast<uint32_t>(line.quantity);
    row.district_text = stock.district_text[of.district - 1];
    // Keys of orders are new because the district's next order number was read and is counted up.
    RDMACC_RETURN_IF_ERROR(session.insert_unchecked(
        table(tpcc::kOrderLine), tpcc::order_line_key(of, order, i + 1), tpcc::bytes_of(row)));
  }
  tpcc::OrderRow row;
  row.entry_date = inputs.date();
  row.customer = static_cast<uint32_t>(inputs.customer());
  row.lines = lines;
  row.all_local = inputs.all_local() ? 1 : 0;
  const NumberKey order_key = tpcc::order_key(of, order);
  RDMACC_RETURN_IF_ERROR(
      session.insert_unchecked(table(tpcc::kOrders), order_key, tpcc::bytes_of(row)));
  effect.delta = 1;
  return session.insert_unchecked(table(tpcc::kNewOrder), order_key,
                                  tpcc::bytes_of(tpcc::NewOrderRow{order}));
}

bool Tpcc::knows_new_order(const TxnInputs& inputs) const {
  return inputs.count > kHeadValues && inputs.count - kHeadValues <= kLinesMax &&
         inputs.values[1] >= 1 && inputs.values[1] <= tpcc::kDistricts;
}

void Tpcc::declare_new_order(const TxnInputs& drawn, KeyDeclaration& keys) const {
  const NewOrderInputs inputs(drawn);
  const DistrictId of = inputs.district();
  keys.add(table(tpcc::kWarehouse), tpcc::warehouse_key(of.warehouse), KeyUse::kRead);
  keys.add(table(tpcc::kDistrict), tpcc::district_key(of), KeyUse::kWrite);
  keys.add(table(tpcc::kCustomer), tpcc::customer_key(of, inputs.customer()),
           options_.is_full() ? KeyUse::kWrite : KeyUse::kRead);
  for (uint32_t i = 0; i < inputs.lines(); ++i) {
    const Line line = inputs.line(i);
    keys.add(table(tpcc::kItem), tpcc::item_key(line.item), KeyUse::kRead);
    if (line.item > options_.items) continue;  // it ends there
    keys.add(table(tpcc::kStock), tpcc::stock_key(line.supply, line.item), KeyUse::kWrite);
  }
  // The order, its lines and its new_order row: under the district's next order number.
  keys.derived_inserts = true;
}

}  // namespace rdmacc
