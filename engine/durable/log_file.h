#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "engine/durable/segment.h"

namespace rdmacc {

// The log of one node: appended to by the node's thread, written and synced by a thread of its own.
// While one block is synced, what is appended becomes the next: so transactions share syncs.
//
//  L1  durable() grows only when everything before it is on disk.
//  L2  After an error of the disk it never grows again, and failed() says so: the node has to end,
//      since what the failed sync was for may be on disk or not.
//  L3  A block is written when the one before it is on disk.
class LogFile {
 public:
  struct Options {
    std::string folder;
    SegmentIdentity identity;  // its number is that of the first segment to be made
    FileOps* ops = &FileOps::posix();
    // Called by the other thread when durable() has grown, or on failure; may be empty.
    std::function<void()> on_progress;
  };

  // Makes the segment.
  static Result<std::unique_ptr<LogFile>> open(Options options);
  // Writes what is appended, and ends.
  ~LogFile();
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  // Where it ends: durable() >= that once it is on disk.
  uint64_t append(uint8_t kind, std::span<const std::byte> body);
  uint64_t durable() const { return durable_.load(std::memory_order_acquire); }
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  Status failure() const;

  // What is appended from now on goes into a new segment, whose number is returned.
  uint64_t begin_segment();
  // Bytes of records in the newest segment, written or not.
  uint64_t segment_bytes() const { return segment_bytes_; }
  uint64_t syncs() const { return syncs_.load(std::memory_order_relaxed); }

  // Waits, with the thread, for at most `ms`: false on failure or when that is over. For a caller
  // that has nothing else to do.
  bool wait_durable(uint64_t position, uint64_t ms);

 private:
  struct Batch {
    std::vector<std::byte> records;
    uint64_t end = 0;          // position behind it
    uint64_t new_segment = 0;  // begins with it; 0: none does
  };

  explicit LogFile(Options options) : options_(std::move(options)) {}
  void run();
  Status write(const Batch& batch);

  Options options_;
  SegmentWriter writer_;  // of the thread, once that runs

  // Of the appending thread.
  uint64_t appended_ = 0;
  uint64_t segment_bytes_ = 0;
  uint64_t last_segment_ = 0;

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable work_, progress_;
  std::deque<Batch> batches_;
  bool stop_ = false;
  Status failure_;

  std::atomic<uint64_t> durable_{0}, syncs_{0};
  std::atomic<bool> failed_{false};
  std::thread thread_;
};

// NUMBER.log, in the folder.
std::string segment_path(const std::string& folder, uint64_t number);

}  // namespace rdmacc
