#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/txn/transaction/history.h"

namespace rdmacc {

// A HistoryWriter onto a file, buffered; the file is complete once it is closed.
class HistoryFile : public HistoryWriter {
 public:
  static Result<std::unique_ptr<HistoryFile>> create(const std::string& path);
  virtual Status close() = 0;
};

// A HistoryWriter into memory, for the simulator's tests.
class HistoryMemory : public HistoryWriter {
 public:
  void add(HistoryTransaction transaction) override {
    transactions_.push_back(std::move(transaction));
  }
  const std::vector<HistoryTransaction>& transactions() const { return transactions_; }
  void clear() { transactions_.clear(); }

 private:
  std::vector<HistoryTransaction> transactions_;
};

// The key as text, bytes that are not printable ASCII (and the backslash) as \xHEX; and back.
std::string printable_key(std::string_view key);
std::optional<std::string> parse_printable_key(std::string_view text);

// Without the newline.
std::string to_json_line(const HistoryTransaction& transaction);
// One line; kCorrupt says what is wrong with it.
Result<HistoryTransaction> parse_json_line(const std::string& line);
// kCorrupt names the line and what is wrong with it.
Result<std::vector<HistoryTransaction>> read_history(const std::string& path);

}  // namespace rdmacc
