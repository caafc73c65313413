#pragma once
#include <memory>
#include <string>

#include "engine/txn/history.h"

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

std::string to_json_line(const HistoryTransaction& transaction);
// kCorrupt names the line and what is wrong with it.
Result<std::vector<HistoryTransaction>> read_history(const std::string& path);

}  // namespace rdmacc
