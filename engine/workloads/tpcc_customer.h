#pragma once
#include "engine/workloads/tpcc_rows.h"

// How a payment or an order-status names its customer: by number, or by last name (TPC-C 5.11,
// clauses 2.5.1.2 and 2.6.1.2). Both are one input.

namespace rdmacc::tpcc {

constexpr uint64_t kByLastBit = 1ull << 63;  // the rest is the number of a last name

inline bool is_by_last(uint64_t named) { return (named & kByLastBit) != 0; }
inline uint64_t customer_or_name(uint64_t named) { return named & ~kByLastBit; }
inline NumberKey named_key(DistrictId of, uint64_t named) {
  return by_last_key(of, customer_or_name(named));
}

uint64_t draw_named(Random& random, uint32_t by_last_percent, uint32_t customers);
// The customer's number; a last name is looked up in the table customer_by_last.
Status find_named(Session& session, TableId customer_by_last, DistrictId of, uint64_t named,
                  uint64_t& customer);

}  // namespace rdmacc::tpcc
