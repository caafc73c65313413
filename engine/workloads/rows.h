#pragma once
#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <cstring>

#include "engine/workloads/number_key.h"
#include "engine/workloads/workload.h"

// Rows that are the bytes of a struct, and rows that are read together.

namespace rdmacc {

// Padded with zero bytes.
template <size_t N>
using Text = std::array<char, N>;

// The first characters of `text`; the rest is zero.
template <size_t N>
void set_text(Text<N>& to, std::string_view text) {
  to = {};
  std::memcpy(to.data(), text.data(), std::min(N, text.size()));
}

template <size_t N>
void draw_letters(Random& random, Text<N>& to) {
  for (char& letter : to) letter = static_cast<char>('A' + random.below(26));
}

// The bytes of a row; a view of `row`.
template <typename Row>
std::string_view bytes_of(const Row& row) {
  static_assert(std::is_trivially_copyable_v<Row>);
  return {reinterpret_cast<const char*>(&row), sizeof(Row)};
}

// kCorrupt when it is not there or has another length.
template <typename Row>
Status row_of(const RowView& view, const char* what, Row& row) {
  if (!view.found) return Status(Code::kCorrupt, std::string(what) + " is missing");
  if (view.row.size() != sizeof(Row)) {
    return Status(Code::kCorrupt, std::string(what) + " has a wrong length");
  }
  std::memcpy(&row, view.row.data(), sizeof(Row));
  return Status();
}

template <typename Row>
Status read_row(Session& session, TableId table, std::string_view key, const char* what, Row& row) {
  RowView view;
  RDMACC_RETURN_IF_ERROR(session.get(table, key, view));
  return row_of(view, what, row);
}

// Rows of one table that a transaction asks for together, in one batch of rounds: ask() for each,
// then get(). Views of the rows live as long as the transaction's.
class RowBatch {
 public:
  void ask(const NumberKey& number) { numbers_.push_back(number); }

  Status get(Session& session, TableId table, bool to_write = false) {
    rows_.resize(numbers_.size());
    boost::container::small_vector<std::string_view, kInline> keys;
    for (const NumberKey& number : numbers_) keys.emplace_back(number);
    return session.get_many(table, std::span(keys.data(), keys.size()),
                            std::span(rows_.data(), rows_.size()), kEveryCommand, to_write);
  }

  size_t size() const { return numbers_.size(); }
  std::string_view key(size_t i) const { return numbers_[i]; }  // ends with the batch
  const RowView& row(size_t i) const { return rows_[i]; }

 private:
  static constexpr size_t kInline = 16;
  boost::container::small_vector<NumberKey, kInline> numbers_;
  boost::container::small_vector<RowView, kInline> rows_;
};

}  // namespace rdmacc
