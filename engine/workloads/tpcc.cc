#include "engine/workloads/tpcc.h"

#include <algorithm>

#include "engine/workloads/tpcc_random.h"

namespace rdmacc {
namespace {

using tpcc::kTableCount;

constexpr uint32_t kFirstTableNumber = 31;
// Customers of a district with one last name that fit a slot of customer_by_last; more overflow.
constexpr uint32_t kSameNameInline = 32;

constexpr uint32_t kNewOrdersOtherwise = 50;

constexpr std::array kSettings = {
    WorkloadSetting{"warehouses", nullptr, "warehouses", 1, tpcc::kWarehousesMax, 1},
    WorkloadSetting{"items", "records", "items, and stock rows of each warehouse", kTpccItemsMin,
                    tpcc::kItemsMax, tpcc::kItemsMax},
    WorkloadSetting{"customers", nullptr, "customers of each district", kTpccCustomersMin,
                    tpcc::kCustomersMax, tpcc::kCustomersMax},
    WorkloadSetting{"new-orders", nullptr, "percent of new orders, the others are payments", 0, 100,
                    kNewOrdersOtherwise},
    WorkloadSetting{"full-mix", nullptr,
                    "1: all five transactions, as the specification mixes them", 0, 1, 0},
    WorkloadSetting{"order-statuses", nullptr, "percent of order-statuses, beside the others", 0,
                    100, 0},
    WorkloadSetting{"deliveries", nullptr, "percent of deliveries, beside the others", 0, 100, 0},
    WorkloadSetting{"stock-levels", nullptr, "percent of stock-levels, beside the others", 0, 100,
                    0},
    WorkloadSetting{"remote-stock", nullptr, "percent of order lines from another warehouse", 0,
                    100, 1},
    WorkloadSetting{"remote-payment", nullptr, "percent of payments to another warehouse", 0, 100,
                    15},
    WorkloadSetting{"by-last-name", nullptr, "percent of payments by last name", 0, 100, 60},
    WorkloadSetting{"rollbacks", nullptr, "percent of new orders that the user rolls back", 0, 100,
                    1},
    kHistorySetting,
};

// Clause 5.2.3: at least 43, 4, 4 and 4 percent, and new orders are the rest.
Status take_mix(const WorkloadSettings& settings, TpccOptions& options) {
  options.new_order_weight = settings.number32("new-orders");
  options.payment_weight = 100 - options.new_order_weight;
  options.order_status_percent = settings.number32("order-statuses");
  options.delivery_percent = settings.number32("deliveries");
  options.stock_level_percent = settings.number32("stock-levels");
  if (options.others_percent() > 100) {
    return Status(Code::kInvalidArgument,
                  "--order-statuses, --deliveries and --stock-levels must be at most 100 together");
  }
  if (settings.number("full-mix") == 0) return Status();
  if (options.is_full() || options.new_order_weight != kNewOrdersOtherwise) {
    return Status(Code::kInvalidArgument,
                  "--full-mix excludes --new-orders, --order-statuses, --deliveries and "
                  "--stock-levels");
  }
  options.new_order_weight = 45;
  options.payment_weight = 43;
  options.order_status_percent = options.delivery_percent = options.stock_level_percent = 4;
  return Status();
}

Result<std::unique_ptr<Workload>> make_tpcc(const WorkloadSettings& settings,
                                            const WorkloadCluster&) {
  TpccOptions options;
  options.warehouses = settings.number32("warehouses");
  options.items = settings.number32("items");
  options.customers = settings.number32("customers");
  RDMACC_RETURN_IF_ERROR(take_mix(settings, options));
  options.remote_stock_percent = settings.number32("remote-stock");
  options.remote_payment_percent = settings.number32("remote-payment");
  options.by_last_name_percent = settings.number32("by-last-name");
  options.rollback_percent = settings.number32("rollbacks");
  options.history = settings.number32("history");
  return Result<std::unique_ptr<Workload>>(std::make_unique<Tpcc>(options));
}

}  // namespace

const WorkloadKind kTpccKind = {"tpcc", "TPC-C: new-order and payment, or all five", kSettings,
                                make_tpcc};

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
      sizeof(tpcc::ItemRow),      sizeof(tpcc::StockRow),    sizeof(tpcc::NextDeliveryRow)};
  std::vector<TableSpec> specs;
  for (uint32_t t = 0; t < table_count(); ++t) {
    specs.push_back(native_table(kFirstTableNumber + t,
                                 record_bytes(sizeof(NumberKey), kRowBytes[t]), options_.history));
  }
  return specs;
}

TxnInputs Tpcc::draw(Random& random) const {
  const uint32_t others = options_.others_percent();
  if (others > 0) {
    const uint64_t drawn = random.below(100);
    if (drawn < options_.order_status_percent) return draw_order_status(random);
    if (drawn < options_.order_status_percent + options_.delivery_percent) {
      return draw_delivery(random);
    }
    if (drawn < others) return draw_stock_level(random);
  }
  const uint64_t drawn = random.below(options_.new_order_weight + options_.payment_weight);
  return drawn < options_.new_order_weight ? draw_new_order(random) : draw_payment(random);
}

Status Tpcc::execute(Session& session, const TxnInputs& inputs, TxnEffect& effect) const {
  switch (static_cast<Kind>(inputs.kind)) {
    case kNewOrderKind:
      return new_order(session, inputs, effect);
    case kPaymentKind:
      return payment(session, inputs);
    case kOrderStatusKind: {
      OrderStatus answer;
      return order_status(session, inputs, answer);
    }
    case kDeliveryKind:
      return delivery(session, inputs);
    case kStockLevelKind: {
      uint32_t low = 0;
      return stock_level(session, inputs, low);
    }
  }
  CHECK(false);
}

bool Tpcc::declare(const TxnInputs& inputs, KeyDeclaration& keys) const {
  if (inputs.kind == kPaymentKind) return declare_payment(inputs, keys);
  if (inputs.kind != kNewOrderKind) return false;
  declare_new_order(inputs, keys);
  return true;
}

// What is read here is not of one moment: where it does not fit together the transaction finds out
// for itself whether rows are wrong.
Status Tpcc::survey(Session& session, const TxnOptions& options, const TxnInputs& inputs,
                    KeyDeclaration& keys, bool& known) const {
  known = inputs.kind == kPaymentKind || inputs.kind == kOrderStatusKind ||
          inputs.kind == kDeliveryKind;
  if (!known) return Status();
  RDMACC_RETURN_IF_ERROR(session.begin(options));
  Status status;
  if (inputs.kind == kPaymentKind) status = survey_payment(session, inputs, keys);
  if (inputs.kind == kOrderStatusKind) status = survey_order_status(session, inputs, keys);
  if (inputs.kind == kDeliveryKind) status = survey_delivery(session, inputs, keys, known);
  session.abort();
  if (status.code() != Code::kCorrupt) return status;
  known = false;
  return Status();
}

bool Tpcc::knows(const TxnInputs& inputs) const {
  switch (inputs.kind) {
    case kNewOrderKind:
      return knows_new_order(inputs);
    case kPaymentKind:
      return knows_payment(inputs);
    case kOrderStatusKind:
      return options_.is_full() && knows_order_status(inputs);
    case kDeliveryKind:
      return options_.is_full() && knows_delivery(inputs);
    case kStockLevelKind:
      return options_.is_full() && knows_stock_level(inputs);
    default:
      return false;
  }
}

// Any but the home warehouse, unless it is the only one.
uint64_t Tpcc::other_warehouse(Random& random, uint64_t home) const {
  if (options_.warehouses == 1) return home;
  const uint64_t drawn = random.between(1, options_.warehouses - 1);
  return drawn < home ? drawn : drawn + 1;
}

}  // namespace rdmacc
