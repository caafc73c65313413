#include "tests/workloads/predicate_rows.h"

#include <charconv>

namespace rdmacc {
namespace {

constexpr int64_t kTokenValue = 100;

std::string tokens_violation(const PredicateRows& rows, const PredicateOptions& options) {
  int64_t sum = 0;
  for (uint64_t n = 0; n < options.tokens; ++n) {
    const std::string key = token_key(n);
    if (rows[0].contains(key) == rows[1].contains(key)) {
      return key + " is in " + (rows[0].contains(key) ? "both tables" : "no table");
    }
    const std::string& row = rows[rows[0].contains(key) ? 0 : 1].find(key)->second;
    const std::optional<int64_t> value = token_value(row);
    if (!value) return "the row of " + key + " is no number: " + row;
    sum += *value;
  }
  const int64_t expected = kTokenValue * static_cast<int64_t>(options.tokens);
  if (sum == expected) return "";
  return "the tokens add up to " + std::to_string(sum) + ", not " + std::to_string(expected);
}

}  // namespace

std::string quota_prefix(uint64_t group) { return "q" + std::to_string(group) + "."; }
std::string quota_key(uint64_t group, uint64_t n) {
  return quota_prefix(group) + std::to_string(n);
}
std::string staff_key(uint64_t n) { return "s" + std::to_string(n); }
std::string pair_key(uint64_t n) { return "p" + std::to_string(n); }
std::string token_key(uint64_t n) { return "t" + std::to_string(n); }

std::vector<std::string> all_predicate_keys(const PredicateOptions& options) {
  std::vector<std::string> keys;
  for (uint64_t c = 0; c < options.classes; ++c) {
    for (uint64_t n = 0; n < 2 * options.quota; ++n) keys.push_back(quota_key(c, n));
  }
  for (uint64_t n = 0; n < options.staff; ++n) keys.push_back(staff_key(n));
  for (uint64_t n = 0; n < options.pairs; ++n) keys.push_back(pair_key(n));
  for (uint64_t n = 0; n < options.tokens; ++n) keys.push_back(token_key(n));
  return keys;
}

uint64_t count_rows(const PredicateRows& rows, size_t table, std::string_view prefix) {
  uint64_t found = 0;
  for (auto at = rows[table].lower_bound(prefix);
       at != rows[table].end() && at->first.starts_with(prefix); ++at) {
    ++found;
  }
  return found;
}

std::optional<int64_t> token_value(std::string_view row) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(row.data(), row.data() + row.size(), value);
  if (error != std::errc() || end != row.data() + row.size()) return std::nullopt;
  return value;
}

PredicateRows first_predicate_rows(const PredicateOptions& options) {
  PredicateRows rows;
  for (uint64_t n = 0; n < options.staff; ++n) rows[n % 2].emplace(staff_key(n), "1");
  for (uint64_t n = 0; n < options.tokens; ++n) {
    rows[n % 2].emplace(token_key(n), std::to_string(kTokenValue));
  }
  return rows;
}

std::string predicate_violation(const PredicateRows& rows, const PredicateOptions& options) {
  for (size_t table = 0; table < rows.size(); ++table) {
    for (uint64_t c = 0; c < options.classes; ++c) {
      const uint64_t there = count_rows(rows, table, quota_prefix(c));
      if (there > options.quota) {
        return "class " + std::to_string(c) + " has " + std::to_string(there) +
               " rows, its quota is " + std::to_string(options.quota);
      }
    }
  }
  if (count_rows(rows, 0, "s") + count_rows(rows, 1, "s") == 0) return "no row is on call";
  for (uint64_t n = 0; n < options.pairs; ++n) {
    const std::string key = pair_key(n);
    if (rows[0].contains(key) && rows[1].contains(key)) return "both of " + key + " are there";
  }
  return tokens_violation(rows, options);
}

}  // namespace rdmacc
