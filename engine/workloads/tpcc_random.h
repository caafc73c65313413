#pragma once
#include <string>

#include "engine/workloads/tpcc_rows.h"

// TPC-C's random values (TPC-C 5.11, clauses 2.1.5, 2.1.6 and 4.3).

namespace rdmacc::tpcc {

// The constants C of NURand. Those of last names differ between loading and running by what
// clause 2.1.6.1 asks for: 65 .. 119, but not 96 or 112.
constexpr uint64_t kLastNameConstantOfLoad = 157;
constexpr uint64_t kLastNameConstantOfRun = 223;
constexpr uint64_t kCustomerConstant = 259;
constexpr uint64_t kItemConstant = 7'911;

constexpr uint64_t kLoadDate = 1;

// NURand(a, least, most) with the constant `c`.
uint64_t non_uniform(Random& random, uint64_t a, uint64_t c, uint64_t least, uint64_t most);
// Of `customers` and `items`, which may be fewer than TPC-C's; the last name is one that a
// district of so many customers has.
uint64_t draw_customer(Random& random, uint32_t customers);
uint64_t draw_item(Random& random, uint32_t items);
uint64_t draw_last_name(Random& random, uint64_t constant, uint32_t customers);

// A date of a transaction; those of loaded rows are smaller.
inline uint64_t draw_date(Random& random) {
  constexpr uint64_t kDatesMax = 1ull << 40;
  return kLoadDate + 1 + random.below(kDatesMax);
}

// A number for a new row of history; those of loaded rows are smaller.
inline uint64_t history_number(Random& random) { return random.next() | 1ull << 63; }

// "BARBARBAR" .. "EINGEINGEING", of numbers below kLastNames.
std::string last_name(uint64_t number);

// Random letters and digits, `least` .. `most` of them; random digits.
std::string letters(Random& random, uint64_t least, uint64_t most);
std::string digits(Random& random, uint64_t count);
// 26 .. 50 letters; one in ten has "ORIGINAL" in it (clause 4.3.3.1).
std::string item_text(Random& random);
Address random_address(Random& random);
uint32_t random_tax(Random& random);  // 0 .. 20 percent

}  // namespace rdmacc::tpcc
