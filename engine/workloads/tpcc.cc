#include "engine/workloads/tpcc.h"

#include <algorithm>

#include "engine/workloads/tpcc_random.h"

namespace rdmacc {
namespace {

using tpcc::kTableCount;

constexpr uint32_t kFirstTableNumber = 31;
// Customers of a district with one last name that fit a slot of customer_by_last; more overflow.
constexpr uint32_t kSameNameInline = 32;

constexpr std::array kSettings = {
    WorkloadSetting{"warehouses", nullptr, "warehouses", 1, tpcc::kWarehousesMax, 1},
    WorkloadSetting{"items", "records", "items, and stock rows of each warehouse", kTpccItemsMin,
                    tpcc::kItemsMax, tpcc::kItemsMax},
    WorkloadSetting{"customers", nullptr, "customers of each district", kTpccCustomersMin,
                    tpcc::kCustomersMax, tpcc::kCustomersMax},
    WorkloadSetting{"new-orders", nullptr, "percent of new orders, the others are payments", 0, 100,
                    50},
    WorkloadSetting{"remote-stock", nullptr, "percent of order lines from another warehouse", 0,
                    100, 1},
    WorkloadSetting{"remote-payment", nullptr, "percent of payments to another warehouse", 0, 100,
                    15},
    WorkloadSetting{"by-last-name", nullptr, "percent of payments by last name", 0, 100, 60},
    WorkloadSetting{"rollbacks", nullptr, "percent of new orders that the user rolls back", 0, 100,
                    1},
    kHistorySetting,
};

Result<std::unique_ptr<Workload>> make_tpcc(const WorkloadSettings& settings,
                                            const WorkloadCluster&) {
  TpccOptions options;
  options.warehouses = settings.number32("warehouses");
  options.items = settings.number32("items");
  options.customers = settings.number32("customers");
  options.new_order_percent = settings.number32("new-orders");
  options.remote_stock_percent = settings.number32("remote-stock");
  options.remote_payment_percent = settings.number32("remote-payment");
  options.by_last_name_percent = settings.number32("by-last-name");
  options.rollback_percent = settings.number32("rollbacks");
  options.history = settings.number32("history");
  return Result<std::unique_ptr<Workload>>(std::make_unique<Tpcc>(options));
}

}  // namespace

const WorkloadKind kTpccKind = {"tpcc", "TPC-C's new-order and payment", kSettings, make_tpcc};

Tpcc::Tpcc(const TpccOptions& options) : options_(options) {
  CHECK(options.warehouses >= 1 && options.warehouses <= tpcc::kWarehousesMax);
  CHECK(options.items >= kTpccItemsMin && options.items <= tpcc::kItemsMax);
  CHECK(options.customers >= kTpccCustomersMin && options.customers <= tpcc::kCustomersMax);
}

std::vector<TableSpec> Tpcc::table_specs() const {
  constexpr std::array<size_t, kTableCount> kRowBytes = {
      sizeof(tpcc::WarehouseRow), sizeof(tpcc::DistrictRow), sizeof(tpcc::CustomerRow),
      tpcc::kCustomerDataMax,     kSameNameInline * 2,       sizeof(tpcc::HistoryRow),
      sizeof(tpcc::NewOrderRow),  sizeof(tpcc::OrderRow),    sizeof(tpcc::OrderLineRow),
      sizeof(tpcc::ItemRow),      sizeof(tpcc::StockRow)};
  std::vector<TableSpec> specs;
  for (uint32_t t = 0; t < kTableCount; ++t) {
    specs.push_back(native_table(kFirstTableNumber + t,
                                 record_bytes(sizeof(NumberKey), kRowBytes[t]), options_.history));
  }
  return specs;
}

TxnInputs Tpcc::draw(Random& random) const {
  return random.percent(options_.new_order_percent) ? draw_new_order(random) : draw_payment(random);
}

Status Tpcc::execute(Session& session, const TxnInputs& inputs, TxnEffect& effect) const {
  return inputs.kind == kNewOrderKind ? new_order(session, inputs, effect)
                                      : payment(session, inputs);
}

bool Tpcc::declare(const TxnInputs& inputs, KeyDeclaration& keys) const {
  if (inputs.kind != kNewOrderKind) return declare_payment(inputs, keys);
  declare_new_order(inputs, keys);
  return true;
}

bool Tpcc::knows(const TxnInputs& inputs) const {
  if (inputs.kind == kNewOrderKind) return knows_new_order(inputs);
  return inputs.kind == kPaymentKind && knows_payment(inputs);
}

// Any but the home warehouse, unless it is the only one.
uint64_t Tpcc::other_warehouse(Random& random, uint64_t home) const {
  if (options_.warehouses == 1) return home;
  const uint64_t drawn = tpcc::between(random, 1, options_.warehouses - 1);
  return drawn < home ? drawn : drawn + 1;
}

}  // namespace rdmacc
