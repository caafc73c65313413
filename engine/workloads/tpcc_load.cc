// TPC-C's first rows (clause 4.3.3.1), in units that follow from their number alone: chunks of
// items, chunks of each warehouse's stock, and each district with its customers and orders.
#include <algorithm>
#include <map>

#include "engine/workloads/bulk_load.h"
#include "engine/workloads/tpcc.h"
#include "engine/workloads/tpcc_random.h"

namespace rdmacc {
namespace {

using tpcc::bytes_of;
using tpcc::DistrictId;
using tpcc::kDistricts;
using tpcc::set_text;

constexpr uint32_t kItemsPerUnit = 1'000;
constexpr int64_t kInitialPayment = 1'000;  // of each customer, in cents

// The first order that is not delivered is 2,101 of 3,000; as many of a hundred in a district
// with fewer customers.
uint32_t first_undelivered(uint32_t customers) {
  return customers - customers * 900 / tpcc::kCustomersMax + 1;
}

class Loader {
 public:
  Loader(Session& session, const TxnOptions& txn, const TpccOptions& options,
         std::span<const TableId> tables, uint64_t unit)
      : rows_(session, txn), options_(options), tables_(tables), random_(unit * 2 + 1) {}

  Status items(uint32_t first, uint32_t last) {
    for (uint32_t i = first; i <= last; ++i) {
      tpcc::ItemRow item;
      item.price = static_cast<int64_t>(random_.between(100, 10'000));
      item.image = static_cast<uint32_t>(random_.between(1, 10'000));
      set_text(item.name, tpcc::letters(random_, 14, 24));
      set_text(item.text, tpcc::item_text(random_));
      RDMACC_RETURN_IF_ERROR(add(tpcc::kItem, tpcc::item_key(i), bytes_of(item)));
    }
    return rows_.finish();
  }

  Status stock(uint32_t warehouse, uint32_t first, uint32_t last) {
    for (uint32_t i = first; i <= last; ++i) {
      tpcc::StockRow stock;
      stock.quantity = static_cast<int32_t>(random_.between(10, 100));
      for (auto& text : stock.district_text) set_text(text, tpcc::letters(random_, 24, 24));
      set_text(stock.text, tpcc::item_text(random_));
      RDMACC_RETURN_IF_ERROR(add(tpcc::kStock, tpcc::stock_key(warehouse, i), bytes_of(stock)));
    }
    return rows_.finish();
  }

  Status district(DistrictId of) {
    if (of.district == 1) RDMACC_RETURN_IF_ERROR(warehouse(of.warehouse));
    tpcc::DistrictRow district;
    district.ytd = kInitialPayment * options_.customers;
    district.tax = tpcc::random_tax(random_);
    district.next_order = options_.customers + 1;
    set_text(district.name, tpcc::letters(random_, 6, 10));
    district.address = tpcc::random_address(random_);
    RDMACC_RETURN_IF_ERROR(add(tpcc::kDistrict, tpcc::district_key(of), bytes_of(district)));
    // Every customer has one order, in a random order.
    std::vector<uint32_t> ordering(options_.customers), order_of(options_.customers + 1);
    for (uint32_t c = 0; c < options_.customers; ++c) {
      ordering[c] = c + 1;
      std::swap(ordering[c], ordering[random_.below(c + 1)]);
    }
    for (uint32_t o = 1; o <= options_.customers; ++o) order_of[ordering[o - 1]] = o;
    RDMACC_RETURN_IF_ERROR(customers(of, order_of));
    RDMACC_RETURN_IF_ERROR(orders(of, ordering));
    if (options_.is_full()) {
      const tpcc::NextDeliveryRow next{first_undelivered(options_.customers)};
      RDMACC_RETURN_IF_ERROR(add(tpcc::kNextDelivery, tpcc::district_key(of), bytes_of(next)));
    }
    return rows_.finish();
  }

 private:
  // First name and number of customers with one last name.
  using SameName = std::vector<std::pair<std::string, uint16_t>>;

  Status add(tpcc::Table table, const NumberKey& key, std::string_view row) {
    return rows_.add(tables_[table], key, row);
  }

  Status warehouse(uint64_t number) {
    tpcc::WarehouseRow warehouse;
    warehouse.ytd = kInitialPayment * options_.customers * kDistricts;
    warehouse.tax = tpcc::random_tax(random_);
    set_text(warehouse.name, tpcc::letters(random_, 6, 10));
    warehouse.address = tpcc::random_address(random_);
    return add(tpcc::kWarehouse, tpcc::warehouse_key(number), bytes_of(warehouse));
  }

  Status customers(DistrictId of, std::span<const uint32_t> order_of) {
    std::map<uint64_t, SameName> by_last;
    for (uint32_t c = 1; c <= options_.customers; ++c) {
      const uint64_t name =
          c <= tpcc::kLastNames
              ? c - 1
              : tpcc::draw_last_name(random_, tpcc::kLastNameConstantOfLoad, options_.customers);
      const std::string first = tpcc::letters(random_, 8, 16);
      by_last[name].emplace_back(first, static_cast<uint16_t>(c));
      RDMACC_RETURN_IF_ERROR(customer(of, c, name, first, order_of[c]));
    }
    for (auto& [name, same] : by_last) {
      std::sort(same.begin(), same.end());
      std::string row;
      for (const auto& [first, number] : same) {
        row.append(reinterpret_cast<const char*>(&number), sizeof(number));
      }
      RDMACC_RETURN_IF_ERROR(add(tpcc::kCustomerByLast, tpcc::by_last_key(of, name), row));
    }
    return Status();
  }

  Status customer(DistrictId of, uint32_t number, uint64_t name, const std::string& first,
                  uint32_t order) {
    tpcc::CustomerRow customer;
    customer.balance = -kInitialPayment;
    customer.ytd_payment = kInitialPayment;
    customer.credit_limit = 5'000'000;
    customer.since = tpcc::kLoadDate;
    customer.discount = static_cast<uint32_t>(random_.below(5'001));
    customer.payments = 1;
    customer.last_order = order;
    set_text(customer.first, first);
    set_text(customer.middle, "OE");
    set_text(customer.last, tpcc::last_name(name));
    set_text(customer.phone, tpcc::digits(random_, 16));
    set_text(customer.credit, random_.percent(10) ? "BC" : "GC");
    customer.address = tpcc::random_address(random_);
    const NumberKey key = tpcc::customer_key(of, number);
    RDMACC_RETURN_IF_ERROR(add(tpcc::kCustomer, key, bytes_of(customer)));
    RDMACC_RETURN_IF_ERROR(add(tpcc::kCustomerData, key, tpcc::letters(random_, 300, 500)));
    tpcc::HistoryRow history;
    history.date = tpcc::kLoadDate;
    history.amount = kInitialPayment;
    history.customer = number;
    history.customer_district = history.district = static_cast<uint32_t>(of.district);
    history.customer_warehouse = history.warehouse = static_cast<uint32_t>(of.warehouse);
    set_text(history.text, tpcc::letters(random_, 12, 24));
    const uint64_t paid = of.warehouse << 24 | of.district << 16 | number;
    return add(tpcc::kHistory, tpcc::history_key(paid), bytes_of(history));
  }

  Status orders(DistrictId of, std::span<const uint32_t> customers) {
    for (uint32_t o = 1; o <= options_.customers; ++o) {
      const bool delivered = o < first_undelivered(options_.customers);
      tpcc::OrderRow order;
      order.entry_date = tpcc::kLoadDate;
      order.customer = customers[o - 1];
      order.carrier = delivered ? static_cast<uint32_t>(random_.between(1, 10)) : 0;
      order.lines = static_cast<uint32_t>(random_.between(tpcc::kLinesMin, tpcc::kLinesMax));
      order.all_local = 1;
      RDMACC_RETURN_IF_ERROR(add(tpcc::kOrders, tpcc::order_key(of, o), bytes_of(order)));
      for (uint32_t l = 1; l <= order.lines; ++l) {
        RDMACC_RETURN_IF_ERROR(order_line(of, o, l, delivered));
      }
      if (delivered) continue;
      RDMACC_RETURN_IF_ERROR(
          add(tpcc::kNewOrder, tpcc::order_key(of, o), bytes_of(tpcc::NewOrderRow{o})));
    }
    return Status();
  }

  Status order_line(DistrictId of, uint32_t order, uint32_t line, bool delivered) {
    tpcc::OrderLineRow row;
    row.delivery_date = delivered ? tpcc::kLoadDate : 0;
    row.amount = delivered ? 0 : static_cast<int64_t>(random_.between(1, 999'999));
    row.item = static_cast<uint32_t>(random_.between(1, options_.items));
    row.supply_warehouse = static_cast<uint32_t>(of.warehouse);
    row.quantity = 5;
    set_text(row.district_text, tpcc::letters(random_, 24, 24));
    return add(tpcc::kOrderLine, tpcc::order_line_key(of, order, line), bytes_of(row));
  }

  BulkLoad rows_;
  const TpccOptions& options_;
  const std::span<const TableId> tables_;
  Random random_;
};

uint64_t chunks_of_items(const TpccOptions& options) {
  return (options.items + kItemsPerUnit - 1) / kItemsPerUnit;
}

}  // namespace

uint64_t Tpcc::load_parts() const {
  const uint64_t chunks = chunks_of_items(options_);
  return chunks + options_.warehouses * (kDistricts + chunks);
}

Status Tpcc::load(Session& session, const TxnOptions& txn, uint64_t part, uint64_t parts) {
  const uint64_t chunks = chunks_of_items(options_);
  const LoadPart units = part_of_load(load_parts(), part, parts);
  for (uint64_t unit = units.begin; unit < units.end; ++unit) {
    Loader loader(session, txn, options_, tables(), unit);
    // The items first; then of each warehouse its districts and its stock.
    const uint64_t within = unit < chunks ? unit : (unit - chunks) % (kDistricts + chunks);
    const auto warehouse =
        static_cast<uint32_t>(unit < chunks ? 0 : (unit - chunks) / (kDistricts + chunks) + 1);
    if (warehouse > 0 && within < kDistricts) {
      RDMACC_RETURN_IF_ERROR(loader.district({warehouse, within + 1}));
      continue;
    }
    const auto chunk = static_cast<uint32_t>(warehouse > 0 ? within - kDistricts : within);
    const uint32_t first = chunk * kItemsPerUnit + 1;
    const uint32_t last = std::min(options_.items, first + kItemsPerUnit - 1);
    RDMACC_RETURN_IF_ERROR(warehouse > 0 ? loader.stock(warehouse, first, last)
                                         : loader.items(first, last));
  }
  return Status();
}

}  // namespace rdmacc
