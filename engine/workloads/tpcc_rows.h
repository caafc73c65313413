#pragma once
#include "engine/workloads/rows.h"

// TPC-C's tables: their keys and rows (TPC-C 5.11, clause 1.3). A row is the bytes of its struct;
// texts are padded with zero bytes. Money is in cents, rates in ten-thousandths, dates are
// numbers that the inputs bring. Warehouses, districts, customers, items and order lines count
// from 1.

namespace rdmacc::tpcc {

using rdmacc::bytes_of;
using rdmacc::row_of;
using rdmacc::set_text;

constexpr uint32_t kDistricts = 10;  // of a warehouse
constexpr uint32_t kLinesMin = 5, kLinesMax = 15;
constexpr uint32_t kWarehousesMax = 10'000;
constexpr uint32_t kCustomersMax = 3'000;  // of a district
constexpr uint32_t kItemsMax = 100'000;
constexpr uint32_t kLastNames = 1'000;
constexpr uint32_t kCustomerDataMax = 500;

// The numbers of the tables, in the order of Tpcc::tables(). Two are not TPC-C's own: customer
// data are split from the customer (clause 1.4.5 allows it), as few transactions need them and
// they would not fit a slot; customer_by_last says which customers of a district have a last name.
// The last one is there with the full mix alone: of each district the oldest order that is not
// delivered, so that deliveries neither search nor touch what new orders want.
enum Table : uint32_t {
  kWarehouse,
  kDistrict,
  kCustomer,
  kCustomerData,
  kCustomerByLast,
  kHistory,
  kNewOrder,
  kOrders,
  kOrderLine,
  kItem,
  kStock,
  kNextDelivery,
  kTableCount
};

// ---- Keys

struct DistrictId {
  uint64_t warehouse, district;
};

inline NumberKey warehouse_key(uint64_t warehouse) { return NumberKey(warehouse); }
inline NumberKey district_key(DistrictId of) { return NumberKey(of.warehouse << 8 | of.district); }
inline NumberKey customer_key(DistrictId of, uint64_t customer) {
  return NumberKey(of.warehouse << 24 | of.district << 16 | customer);
}
// Last names are numbers 0 .. 999 (last_name() spells them).
inline NumberKey by_last_key(DistrictId of, uint64_t name) { return customer_key(of, name); }
// Of orders and new_order: 24 bits warehouse, 8 district, 32 order.
inline NumberKey order_key(DistrictId of, uint64_t order) {
  return NumberKey(of.warehouse << 40 | of.district << 32 | order);
}
// 16 bits warehouse, 4 district, 32 order, 12 line.
inline NumberKey order_line_key(DistrictId of, uint64_t order, uint64_t line) {
  return NumberKey(of.warehouse << 48 | of.district << 44 | order << 12 | line);
}
inline NumberKey item_key(uint64_t item) { return NumberKey(item); }
inline NumberKey stock_key(uint64_t warehouse, uint64_t item) {
  return NumberKey(warehouse << 32 | item);
}
// History has no key of its own: a 64-bit number that is drawn with the inputs.
inline NumberKey history_key(uint64_t number) { return NumberKey(number); }

inline DistrictId district_of_district_key(std::string_view key) {
  const uint64_t number = NumberKey::number_of(key);
  return {number >> 8, number & 0xFF};
}
inline DistrictId district_of_customer_key(std::string_view key) {
  const uint64_t number = NumberKey::number_of(key);
  return {number >> 24, number >> 16 & 0xFF};
}
inline uint64_t customer_of_customer_key(std::string_view key) {
  return NumberKey::number_of(key) & 0xFFFF;
}
inline DistrictId district_of_order_key(std::string_view key) {
  const uint64_t number = NumberKey::number_of(key);
  return {number >> 40, number >> 32 & 0xFF};
}
inline uint64_t order_of_order_key(std::string_view key) {
  return NumberKey::number_of(key) & 0xFFFFFFFF;
}
inline DistrictId district_of_order_line_key(std::string_view key) {
  const uint64_t number = NumberKey::number_of(key);
  return {number >> 48, number >> 44 & 0xF};
}
inline uint64_t order_of_order_line_key(std::string_view key) {
  return NumberKey::number_of(key) >> 12 & 0xFFFFFFFF;
}

// ---- Rows

struct Address {
  Text<20> street_1{}, street_2{}, city{};
  Text<2> state{};
  Text<9> zip{};
};

struct WarehouseRow {
  int64_t ytd = 0;
  uint32_t tax = 0;
  Text<10> name{};
  Address address;
};

struct DistrictRow {
  int64_t ytd = 0;
  uint32_t tax = 0;
  uint32_t next_order = 0;
  Text<10> name{};
  Address address;
};

struct CustomerRow {
  int64_t balance = 0, ytd_payment = 0;
  uint64_t since = 0;
  uint32_t credit_limit = 0, discount = 0, payments = 0, deliveries = 0;
  uint32_t last_order = 0;  // new orders keep it with the full mix alone
  Text<16> first{}, last{}, phone{};
  Text<2> middle{}, credit{};
  Address address;
};

struct HistoryRow {
  uint64_t date = 0;
  int64_t amount = 0;
  uint32_t customer = 0, customer_district = 0, customer_warehouse = 0;
  uint32_t district = 0, warehouse = 0;
  Text<24> text{};
};

struct NewOrderRow {
  uint64_t order = 0;
};

struct OrderRow {
  uint64_t entry_date = 0;
  uint32_t customer = 0;
  uint32_t carrier = 0;  // 0: none yet
  uint32_t lines = 0;
  uint32_t all_local = 0;
};

struct OrderLineRow {
  uint64_t delivery_date = 0;  // 0: not delivered
  int64_t amount = 0;
  uint32_t item = 0, supply_warehouse = 0, quantity = 0;
  Text<24> district_text{};
};

struct ItemRow {
  int64_t price = 0;
  uint32_t image = 0;
  Text<24> name{};
  Text<50> text{};
};

struct StockRow {
  int64_t ytd = 0;
  int32_t quantity = 0;
  uint32_t orders = 0, remote_orders = 0;
  std::array<Text<24>, kDistricts> district_text{};
  Text<50> text{};
};

struct NextDeliveryRow {
  uint64_t order = 0;  // one that may not be there yet
};

}  // namespace rdmacc::tpcc
