// TPC-C's consistency conditions (clause 3.3.2) over all rows.
#include <algorithm>

#include "engine/workloads/tpcc.h"

namespace rdmacc {
namespace {

using tpcc::DistrictId;
using tpcc::kDistricts;
using tpcc::row_of;

// What the rows of one district say.
struct DistrictSums {
  bool found = false;
  int64_t ytd = 0, paid = 0;  // the district's own, and the sum of history
  uint64_t next_order = 0;
  uint64_t orders = 0, orders_max = 0, lines_of_orders = 0;
  uint64_t new_orders = 0, new_orders_min = UINT64_MAX, new_orders_max = 0;
  uint64_t lines = 0;
};

class ConsistencyCheck {
 public:
  ConsistencyCheck(Session& session, const TxnOptions& txn, const TpccOptions& options,
                   std::span<const TableId> tables)
      : session_(session),
        txn_(txn),
        options_(options),
        tables_(tables),
        warehouse_ytd_(options.warehouses),
        districts_(options.warehouses * kDistricts) {}

  // A table a transaction: nothing else runs, so together they are one.
  Status read_all() {
    RDMACC_RETURN_IF_ERROR(scan(tpcc::kWarehouse, &ConsistencyCheck::add_warehouse));
    RDMACC_RETURN_IF_ERROR(scan(tpcc::kDistrict, &ConsistencyCheck::add_district));
    RDMACC_RETURN_IF_ERROR(scan(tpcc::kHistory, &ConsistencyCheck::add_payment));
    RDMACC_RETURN_IF_ERROR(scan(tpcc::kOrders, &ConsistencyCheck::add_order));
    RDMACC_RETURN_IF_ERROR(scan(tpcc::kNewOrder, &ConsistencyCheck::add_new_order));
    return scan(tpcc::kOrderLine, &ConsistencyCheck::add_order_line);
  }

  // The first violation, or nothing.
  std::string violation(int64_t delta) const {
    if (!stray_.empty()) return stray_;
    uint64_t orders = 0;
    for (uint32_t w = 0; w < options_.warehouses; ++w) {
      int64_t ytd = 0, paid = 0;
      for (uint32_t d = 0; d < kDistricts; ++d) {
        const DistrictSums& district = districts_[w * kDistricts + d];
        const std::string wrong = violation_of(district);
        if (!wrong.empty()) {
          return wrong + " in district " + std::to_string(d + 1) + " of warehouse " +
                 std::to_string(w + 1);
        }
        ytd += district.ytd;
        paid += district.paid;
        orders += district.orders;
      }
      const std::string of = " of warehouse " + std::to_string(w + 1);
      if (warehouse_ytd_[w] != ytd) return "condition 1: W_YTD is not the sum of D_YTD" + of;
      if (warehouse_ytd_[w] != paid) return "condition 8: W_YTD is not the sum of H_AMOUNT" + of;
    }
    const int64_t loaded = static_cast<int64_t>(options_.warehouses) * kDistricts *
                           static_cast<int64_t>(options_.customers);
    if (static_cast<int64_t>(orders) != loaded + delta) {
      return "there are " + std::to_string(orders) + " orders, but " + std::to_string(loaded) +
             " were loaded and " + std::to_string(delta) + " committed";
    }
    return "";
  }

 private:
  using Add = Status (ConsistencyCheck::*)(const RowView& row);

  static std::string violation_of(const DistrictSums& district) {
    if (!district.found) return "there is no row";
    if (district.next_order != district.orders_max + 1) {
      return "condition 2: D_NEXT_O_ID - 1 is not the largest O_ID";
    }
    if (district.new_orders > 0) {
      if (district.new_orders_max != district.orders_max) {
        return "condition 2: the largest NO_O_ID is not the largest O_ID";
      }
      if (district.new_orders_max - district.new_orders_min + 1 != district.new_orders) {
        return "condition 3: NO_O_ID has gaps";
      }
    }
    if (district.lines_of_orders != district.lines) {
      return "condition 4: the sum of O_OL_CNT is not the number of order lines";
    }
    if (district.ytd != district.paid) return "condition 9: D_YTD is not the sum of H_AMOUNT";
    return "";
  }

  Status scan(tpcc::Table table, Add add) {
    RDMACC_RETURN_IF_ERROR(session_.begin(txn_));
    RDMACC_RETURN_IF_ERROR(abort_unless_ok(
        session_, for_each_row(session_, tables_[table],
                               [this, add](const RowView& row) { return (this->*add)(row); })));
    return abort_unless_ok(session_, session_.commit());
  }

  // Of a row that names a district that there is not, a stand-in.
  DistrictSums& sums(DistrictId of) {
    if (of.warehouse >= 1 && of.warehouse <= options_.warehouses && of.district >= 1 &&
        of.district <= kDistricts) {
      return districts_[(of.warehouse - 1) * kDistricts + of.district - 1];
    }
    stray_ = "a row belongs to no district";
    return nowhere_;
  }

  Status add_warehouse(const RowView& view) {
    tpcc::WarehouseRow row;
    RDMACC_RETURN_IF_ERROR(row_of(view, "a warehouse", row));
    const uint64_t number = NumberKey::number_of(view.key);
    if (number < 1 || number > options_.warehouses) {
      stray_ = "there is a warehouse " + std::to_string(number);
      return Status();
    }
    warehouse_ytd_[number - 1] = row.ytd;
    return Status();
  }

  Status add_district(const RowView& view) {
    tpcc::DistrictRow row;
    RDMACC_RETURN_IF_ERROR(row_of(view, "a district", row));
    DistrictSums& district = sums(tpcc::district_of_district_key(view.key));
    district.found = true;
    district.ytd = row.ytd;
    district.next_order = row.next_order;
    return Status();
  }

  Status add_payment(const RowView& view) {
    tpcc::HistoryRow row;
    RDMACC_RETURN_IF_ERROR(row_of(view, "a row of history", row));
    sums({row.warehouse, row.district}).paid += row.amount;
    return Status();
  }

  Status add_order(const RowView& view) {
    tpcc::OrderRow row;
    RDMACC_RETURN_IF_ERROR(row_of(view, "an order", row));
    DistrictSums& district = sums(tpcc::district_of_order_key(view.key));
    ++district.orders;
    district.orders_max = std::max(district.orders_max, tpcc::order_of_order_key(view.key));
    district.lines_of_orders += row.lines;
    return Status();
  }

  Status add_new_order(const RowView& view) {
    DistrictSums& district = sums(tpcc::district_of_order_key(view.key));
    const uint64_t order = tpcc::order_of_order_key(view.key);
    ++district.new_orders;
    district.new_orders_min = std::min(district.new_orders_min, order);
    district.new_orders_max = std::max(district.new_orders_max, order);
    return Status();
  }

  Status add_order_line(const RowView& view) {
    ++sums(tpcc::district_of_order_line_key(view.key)).lines;
    return Status();
  }

  Session& session_;
  const TxnOptions txn_;
  const TpccOptions& options_;
  const std::span<const TableId> tables_;
  std::vector<int64_t> warehouse_ytd_;
  std::vector<DistrictSums> districts_;
  DistrictSums nowhere_;
  std::string stray_;
};

}  // namespace

Status Tpcc::check(Session& session, const TxnOptions& options, int64_t delta,
                   std::string& violation) const {
  ConsistencyCheck check(session, options, options_, tables());
  RDMACC_RETURN_IF_ERROR(check.read_all());
  violation = check.violation(delta);
  return Status();
}

}  // namespace rdmacc
