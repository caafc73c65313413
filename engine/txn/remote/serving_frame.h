#pragma once
#include <memory>
#include <vector>

#include "engine/log/log_record.h"
#include "engine/txn/stages/find.h"
#include "engine/txn/stages/lock.h"
#include "engine/txn/stages/scan_work.h"

namespace rdmacc {

// What one request is served in. It is used again by the next one, so that after some requests none
// of them takes memory from the heap.
struct ServingFrame {
  explicit ServingFrame(RegisteredPool& pool) : arena(pool) {}

  VerbArena arena;
  std::vector<KeyWork> keys;
  std::vector<ScanWork> groups;
  std::vector<Access> accesses;
  std::vector<Access*> reads;
  std::vector<LockWork> locks;
  std::vector<EntryWork> entries;  // of each lock, if it has some
  std::vector<Held> held;
  LogRecord record;
  std::vector<GlobalAddress> evicted;

  // For the next request. False: it has grown too large to be kept.
  bool reset() {
    constexpr size_t kItemsKept = 256;
    const size_t room =
        std::max({keys.capacity(), groups.capacity(), accesses.capacity(), reads.capacity(),
                  locks.capacity(), held.capacity(), record.writes.capacity(), evicted.capacity()});
    if (room > kItemsKept) return false;
    arena.reset();
    keys.clear();
    groups.clear();
    accesses.clear();
    reads.clear();
    locks.clear();
    entries.clear();
    held.clear();
    record.writes.clear();
    evicted.clear();
    return true;
  }
};

// The frames of one node's thread, one for each handler at a time.
class ServingFrames {
 public:
  explicit ServingFrames(RegisteredPool& pool) : pool_(pool) {}

  class Taken {
   public:
    explicit Taken(ServingFrames& from) : from_(from), frame_(from.take()) {}
    ~Taken() { from_.give_back(std::move(frame_)); }
    Taken(const Taken&) = delete;
    Taken& operator=(const Taken&) = delete;
    ServingFrame& operator*() const { return *frame_; }

   private:
    ServingFrames& from_;
    std::unique_ptr<ServingFrame> frame_;
  };

 private:
  std::unique_ptr<ServingFrame> take() {
    if (free_.empty()) return std::make_unique<ServingFrame>(pool_);
    std::unique_ptr<ServingFrame> frame = std::move(free_.back());
    free_.pop_back();
    return frame;
  }
  void give_back(std::unique_ptr<ServingFrame> frame) {
    constexpr size_t kFramesKept = 64;
    if (free_.size() < kFramesKept && frame->reset()) free_.push_back(std::move(frame));
  }

  RegisteredPool& pool_;
  std::vector<std::unique_ptr<ServingFrame>> free_;
};

}  // namespace rdmacc
