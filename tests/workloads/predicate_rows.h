#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// What the two tables of the predicate workload (predicate.h) may hold: keys, first rows, and the
// invariants over all rows. Plain values; any thread.

namespace rdmacc {

struct PredicateOptions {
  uint32_t classes = 2;             // of each table, each with a quota of rows
  uint32_t quota = 2;               // rows of one class; it has twice as many keys
  uint32_t staff = 2;               // keys of each table for those on call; one at least stays
  uint32_t pairs = 3;               // a key in each table; never both are there
  uint32_t tokens = 4;              // at least 2; each in one table, their values' sum is constant
  uint32_t read_only_percent = 20;  // of the transactions
  uint32_t history = 3;             // old versions kept of a row
};

// What is there, by key, in each table.
using PredicateRows = std::array<std::map<std::string, std::string, std::less<>>, 2>;

// The first letter says whose a row is, so a scan of a table tells all of them apart.
std::string quota_prefix(uint64_t group);
std::string quota_key(uint64_t group, uint64_t n);
std::string staff_key(uint64_t n);
std::string pair_key(uint64_t n);
std::string token_key(uint64_t n);
// Every key that a table may hold.
std::vector<std::string> all_predicate_keys(const PredicateOptions& options);

uint64_t count_rows(const PredicateRows& rows, size_t table, std::string_view prefix);
// A token's value; nothing when the row is no number.
std::optional<int64_t> token_value(std::string_view row);

PredicateRows first_predicate_rows(const PredicateOptions& options);
// Which invariant the rows break, in words; empty if none.
std::string predicate_violation(const PredicateRows& rows, const PredicateOptions& options);

}  // namespace rdmacc
