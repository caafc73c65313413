// TPC-C's consistency conditions (clause 3.3.2) over all rows.
#include "engine/workloads/tpcc.h"
#include "engine/workloads/tpcc_conditions.h"

namespace rdmacc {
namespace {

using tpcc::DistrictId;
using tpcc::DistrictSums;
using tpcc::kDistricts;
using tpcc::row_of;

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
    RDMACC_RETURN_IF_ERROR(scan(tpcc::kCustomer, &ConsistencyCheck::add_customer));
    RDMACC_RETURN_IF_ERROR(scan(tpcc::kHistory, &ConsistencyCheck::add_payment));
    RDMACC_RETURN_IF_ERROR(scan(tpcc::kOrders, &ConsistencyCheck::add_order));
    RDMACC_RETURN_IF_ERROR(scan(tpcc::kNewOrder, &ConsistencyCheck::add_new_order));
    if (options_.is_full()) {
      RDMACC_RETURN_IF_ERROR(scan(tpcc::kNextDelivery, &ConsistencyCheck::add_next_delivery));
    }
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
        const std::string wrong = district.violation(options_.is_full());
        if (!wrong.empty()) {
          return wrong + " in district " + std::to_string(d + 1) + " of warehouse " +
                 std::to_string(w + 1);
        }
        ytd += district.ytd();
        paid += district.paid_here();
        orders += district.orders();
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
    sums(tpcc::district_of_district_key(view.key)).add(row);
    return Status();
  }

  Status add_next_delivery(const RowView& view) {
    tpcc::NextDeliveryRow row;
    RDMACC_RETURN_IF_ERROR(row_of(view, "a district's next delivery", row));
    sums(tpcc::district_of_district_key(view.key)).add(row);
    return Status();
  }

  Status add_customer(const RowView& view) {
    tpcc::CustomerRow row;
    RDMACC_RETURN_IF_ERROR(row_of(view, "a customer", row));
    sums(tpcc::district_of_customer_key(view.key))
        .add(tpcc::customer_of_customer_key(view.key), row);
    return Status();
  }

  Status add_payment(const RowView& view) {
    tpcc::HistoryRow row;
    RDMACC_RETURN_IF_ERROR(row_of(view, "a row of history", row));
    sums({row.warehouse, row.district}).add_paid_here(row.amount);
    sums({row.customer_warehouse, row.customer_district}).add_paid_by(row.customer, row.amount);
    return Status();
  }

  Status add_order(const RowView& view) {
    tpcc::OrderRow row;
    RDMACC_RETURN_IF_ERROR(row_of(view, "an order", row));
    sums(tpcc::district_of_order_key(view.key)).add(tpcc::order_of_order_key(view.key), row);
    return Status();
  }

  Status add_new_order(const RowView& view) {
    sums(tpcc::district_of_order_key(view.key)).add_new_order(tpcc::order_of_order_key(view.key));
    return Status();
  }

  Status add_order_line(const RowView& view) {
    tpcc::OrderLineRow row;
    RDMACC_RETURN_IF_ERROR(row_of(view, "an order line", row));
    sums(tpcc::district_of_order_line_key(view.key))
        .add_line(tpcc::order_of_order_line_key(view.key), row);
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
