#pragma once
#include <unordered_map>

#include "engine/workloads/tpcc_rows.h"

// TPC-C's consistency conditions (TPC-C 5.11, clause 3.3.2) as sums over the rows of one district.
// Condition 11 is kept as it holds at all times, and not only after loading: the orders that are no
// new orders are those that are delivered.

namespace rdmacc::tpcc {

class DistrictSums {
 public:
  // ---- Its rows, in any order. Of a payment and an order line the customer and the order that
  // they belong to may be added later.
  void add(const DistrictRow& row);
  void add_paid_here(int64_t amount) { paid_here_ += amount; }  // by customers of any district
  void add_paid_by(uint64_t customer, int64_t amount) { customers_[customer].paid += amount; }
  void add(uint64_t customer, const CustomerRow& row);
  void add(uint64_t order, const OrderRow& row);
  void add_new_order(uint64_t order);
  void add_line(uint64_t order, const OrderLineRow& row);
  void add(const NextDeliveryRow& row) { next_delivery_ = row.order; }

  int64_t ytd() const { return ytd_; }
  int64_t paid_here() const { return paid_here_; }
  uint64_t orders() const { return orders_; }

  // The first that does not hold, or nothing. `full`: so do what deliveries and order-statuses look
  // orders up by.
  std::string violation(bool full) const;

 private:
  struct Order {
    bool found = false, is_new = false;
    uint32_t customer = 0, carrier = 0, lines_wanted = 0, lines = 0, lines_delivered = 0;
    int64_t amount_delivered = 0;
  };
  struct Customer {
    bool found = false;
    int64_t balance = 0, ytd_payment = 0, paid = 0;
    uint64_t last_order = 0;
  };

  std::string violation_of_sums() const;
  std::string violation_of_orders() const;
  std::string violation_of_customers() const;
  std::string violation_of_look_ups() const;

  bool found_ = false;
  int64_t ytd_ = 0, paid_here_ = 0;
  uint64_t next_order_ = 0, next_delivery_ = 0;
  uint64_t orders_ = 0, orders_max_ = 0, carried_ = 0, lines_wanted_ = 0, lines_ = 0;
  uint64_t new_orders_ = 0, new_orders_min_ = UINT64_MAX, new_orders_max_ = 0;
  std::unordered_map<uint64_t, Order> by_order_;
  std::unordered_map<uint64_t, Customer> customers_;
};

}  // namespace rdmacc::tpcc
