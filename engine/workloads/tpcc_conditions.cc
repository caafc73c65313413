#include "engine/workloads/tpcc_conditions.h"

#include <algorithm>

namespace rdmacc::tpcc {

void DistrictSums::add(const DistrictRow& row) {
  found_ = true;
  ytd_ = row.ytd;
  next_order_ = row.next_order;
}

void DistrictSums::add(uint64_t customer, const CustomerRow& row) {
  Customer& of = customers_[customer];
  of.found = true;
  of.balance = row.balance;
  of.ytd_payment = row.ytd_payment;
  of.last_order = row.last_order;
}

void DistrictSums::add(uint64_t order, const OrderRow& row) {
  ++orders_;
  orders_max_ = std::max(orders_max_, order);
  lines_wanted_ += row.lines;
  if (row.carrier != 0) ++carried_;
  Order& of = by_order_[order];
  of.found = true;
  of.customer = row.customer;
  of.carrier = row.carrier;
  of.lines_wanted = row.lines;
}

void DistrictSums::add_new_order(uint64_t order) {
  ++new_orders_;
  new_orders_min_ = std::min(new_orders_min_, order);
  new_orders_max_ = std::max(new_orders_max_, order);
  by_order_[order].is_new = true;
}

void DistrictSums::add_line(uint64_t order, const OrderLineRow& row) {
  ++lines_;
  Order& of = by_order_[order];
  ++of.lines;
  if (row.delivery_date == 0) return;
  ++of.lines_delivered;
  of.amount_delivered += row.amount;
}

std::string DistrictSums::violation(bool full) const {
  std::string wrong = violation_of_sums();
  if (wrong.empty()) wrong = violation_of_orders();
  if (wrong.empty()) wrong = violation_of_customers();
  if (wrong.empty() && full) wrong = violation_of_look_ups();
  return wrong;
}

std::string DistrictSums::violation_of_sums() const {
  if (!found_) return "there is no row";
  if (next_order_ != orders_max_ + 1) {
    return "condition 2: D_NEXT_O_ID - 1 is not the largest O_ID";
  }
  if (new_orders_ > 0) {
    if (new_orders_max_ != orders_max_) {
      return "condition 2: the largest NO_O_ID is not the largest O_ID";
    }
    if (new_orders_max_ - new_orders_min_ + 1 != new_orders_)
      return "condition 3: NO_O_ID has gaps";
  }
  if (lines_wanted_ != lines_) {
    return "condition 4: the sum of O_OL_CNT is not the number of order lines";
  }
  if (orders_ - new_orders_ != carried_) {
    return "condition 11: the orders that are no new orders are not those with O_CARRIER_ID";
  }
  if (ytd_ != paid_here_) return "condition 9: D_YTD is not the sum of H_AMOUNT";
  return "";
}

std::string DistrictSums::violation_of_orders() const {
  for (const auto& [number, order] : by_order_) {
    const std::string of = " for order " + std::to_string(number);
    if (!order.found || order.is_new != (order.carrier == 0)) {
      return "condition 5: O_CARRIER_ID is not null just where there is a NEW-ORDER row" + of;
    }
    if (order.lines != order.lines_wanted) {
      return "condition 6: O_OL_CNT is not the number of order lines" + of;
    }
    if (order.lines_delivered != (order.carrier == 0 ? 0 : order.lines)) {
      return "condition 7: OL_DELIVERY_D is not null just where O_CARRIER_ID is" + of;
    }
  }
  return "";
}

std::string DistrictSums::violation_of_customers() const {
  std::unordered_map<uint64_t, int64_t> delivered;
  for (const auto& [number, order] : by_order_) {
    delivered[order.customer] += order.amount_delivered;
  }
  for (const auto& [number, customer] : customers_) {
    const std::string of = " for customer " + std::to_string(number);
    const auto found = delivered.find(number);
    const int64_t amount = found == delivered.end() ? 0 : found->second;
    if (!customer.found || customer.balance != amount - customer.paid) {
      return "condition 10: C_BALANCE is not what was delivered less what was paid" + of;
    }
    if (customer.balance + customer.ytd_payment != amount) {
      return "condition 12: C_BALANCE and C_YTD_PAYMENT are not what was delivered" + of;
    }
  }
  return "";
}

std::string DistrictSums::violation_of_look_ups() const {
  if (next_delivery_ != (new_orders_ > 0 ? new_orders_min_ : next_order_)) {
    return "the next delivery is not the smallest NO_O_ID";
  }
  std::unordered_map<uint64_t, uint64_t> last;
  for (const auto& [number, order] : by_order_) {
    last[order.customer] = std::max(last[order.customer], number);
  }
  for (const auto& [number, customer] : customers_) {
    if (last[number] != customer.last_order) {
      return "the last order is not the largest O_ID for customer " + std::to_string(number);
    }
  }
  return "";
}

}  // namespace rdmacc::tpcc
