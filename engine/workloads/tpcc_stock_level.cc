// TPC-C's stock-level (clause 2.8): how many items of a district's last 20 orders are low in stock.
// It reads some 400 rows, in one serializable transaction like any other, where the specification
// would be content with less.
#include <algorithm>

#include "engine/workloads/rows.h"
#include "engine/workloads/tpcc.h"
#include "engine/workloads/tpcc_random.h"

namespace rdmacc {
namespace {

using tpcc::DistrictId;
using tpcc::row_of;

constexpr uint32_t kValues = 3;  // warehouse, district, threshold
constexpr uint64_t kThresholdMin = 10, kThresholdMax = 20;
constexpr uint32_t kLastOrders = 20;

// The items of the orders before `next`, each once.
Status read_items(Session& session, std::span<const TableId> tables, DistrictId of, uint32_t next,
                  std::vector<uint32_t>& items) {
  const uint32_t first = next > kLastOrders ? next - kLastOrders : 1;
  RowBatch orders, lines;
  for (uint32_t o = first; o < next; ++o) orders.ask(tpcc::order_key(of, o));
  RDMACC_RETURN_IF_ERROR(orders.get(session, tables[tpcc::kOrders]));
  for (size_t i = 0; i < orders.size(); ++i) {
    tpcc::OrderRow order;
    RDMACC_RETURN_IF_ERROR(row_of(orders.row(i), "an order", order));
    for (uint32_t l = 1; l <= order.lines; ++l) lines.ask(tpcc::order_line_key(of, first + i, l));
  }
  RDMACC_RETURN_IF_ERROR(lines.get(session, tables[tpcc::kOrderLine]));
  for (size_t i = 0; i < lines.size(); ++i) {
    tpcc::OrderLineRow line;
    RDMACC_RETURN_IF_ERROR(row_of(lines.row(i), "an order line", line));
    items.push_back(line.item);
  }
  std::sort(items.begin(), items.end());
  items.erase(std::unique(items.begin(), items.end()), items.end());
  return Status();
}

}  // namespace

TxnInputs Tpcc::draw_stock_level(Random& random) const {
  TxnInputs inputs;
  inputs.kind = kStockLevelKind;
  inputs.add(random.between(1, options_.warehouses));
  inputs.add(random.between(1, tpcc::kDistricts));
  inputs.add(random.between(kThresholdMin, kThresholdMax));
  return inputs;
}

Status Tpcc::stock_level(Session& session, const TxnInputs& inputs, uint32_t& low) const {
  const DistrictId of{inputs.values[0], inputs.values[1]};
  // New orders write the district and the stock all the time.
  session.note_wide_read();
  RowView view;
  tpcc::DistrictRow district;
  RDMACC_RETURN_IF_ERROR(session.get(table(tpcc::kDistrict), tpcc::district_key(of), view));
  RDMACC_RETURN_IF_ERROR(row_of(view, "a district", district));
  std::vector<uint32_t> items;
  RDMACC_RETURN_IF_ERROR(
      unless_it_lost(session, read_items(session, tables(), of, district.next_order, items)));
  RowBatch stocks;
  for (const uint32_t item : items) stocks.ask(tpcc::stock_key(of.warehouse, item));
  RDMACC_RETURN_IF_ERROR(stocks.get(session, table(tpcc::kStock)));
  low = 0;
  for (size_t i = 0; i < stocks.size(); ++i) {
    tpcc::StockRow stock;
    RDMACC_RETURN_IF_ERROR(unless_it_lost(session, row_of(stocks.row(i), "a stock row", stock)));
    if (stock.quantity < static_cast<int64_t>(inputs.values[2])) ++low;
  }
  return Status();
}

bool Tpcc::knows_stock_level(const TxnInputs& inputs) const {
  return inputs.count == kValues && is_warehouse(inputs.values[0]) && inputs.values[1] >= 1 &&
         inputs.values[1] <= tpcc::kDistricts && inputs.values[2] >= kThresholdMin &&
         inputs.values[2] <= kThresholdMax;
}

}  // namespace rdmacc
