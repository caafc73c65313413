#pragma once
#include <memory>
#include <vector>

#include "engine/log/log_ring.h"
#include "engine/txn/transaction/write_plan.h"

namespace rdmacc {

// What a transaction needs beside its sets on the way through its stages. It is used again by the
// next one, so that after some transactions none of them takes memory from the heap.
struct TxnFrame {
  explicit TxnFrame(RegisteredPool& pool) : scratch(pool) {}

  VerbArena scratch;  // of the operation under way
  WritePlan writes;
  LogRecord record;
  std::vector<LogPlacement> placements;
  std::vector<GlobalAddress> evicted;  // blocks of versions that made room
  // DRTM: of the transaction that has the frame, and of no other that runs. Those before it that
  // had it have ended, so that what they leased is as good as its own.
  uint64_t lease = 0;

  // For the next transaction. False: it has grown too large to be kept.
  bool reset() {
    constexpr size_t kWritesKept = 1024;
    if (std::max(record.writes.capacity(), writes.room()) > kWritesKept) return false;
    scratch.reset();
    writes.clear();
    record.writes.clear();
    record.copy_head(LogRecord());
    placements.clear();
    evicted.clear();
    return true;
  }
};

// The frames of one coordinator. One thread.
class TxnFrames {
 public:
  explicit TxnFrames(RegisteredPool& pool) : pool_(pool) {}

  std::unique_ptr<TxnFrame> take() {
    if (free_.empty()) return std::make_unique<TxnFrame>(pool_);
    std::unique_ptr<TxnFrame> frame = std::move(free_.back());
    free_.pop_back();
    return frame;
  }
  void give_back(std::unique_ptr<TxnFrame> frame) {
    if (frame->reset()) free_.push_back(std::move(frame));
  }

 private:
  RegisteredPool& pool_;
  std::vector<std::unique_ptr<TxnFrame>> free_;
};

}  // namespace rdmacc
